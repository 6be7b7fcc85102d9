//! The stream limit of APNs: moving, overrun, kept.

use std::time::Duration;

use crate::{
    ApnsOptions, Behaviour, LimitEnforcement, SimulatorOptions, Simulators,
    apns::verdict,
    tests::kit::{Apns, read, simulators},
};

#[tokio::test]
async fn the_stream_limit_is_one_until_a_valid_jwt_and_moves_on_command() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    client.await_limit(1).await;
    client
        .push_with("00ff", &[("authorization", "bearer a.b.c")])
        .await;
    assert_eq!(
        client.send.current_max_send_streams(),
        1,
        "an invalid JWT raises nothing"
    );
    client.push("00ff").await.unwrap();
    client.await_limit(1000).await;
    for limit in [10, 1, 500] {
        simulators.apns.set_stream_limit(limit);
        client.await_limit(usize::try_from(limit).unwrap()).await;
        assert_eq!(
            client.push("00ff").await.unwrap().status,
            200,
            "the connection lives on"
        );
    }
    assert_eq!(simulators.apns.limit_violations(), 0);
    let other = Apns::connect(&simulators, &simulators.apns).await;
    other.push("00ff").await.unwrap();
    other.await_limit(500).await;
    simulators.stop().await;
}

#[tokio::test]
async fn a_rejection_can_cost_the_stream_limit_until_the_next_success() {
    let apns = ApnsOptions {
        drop_limit_after_rejection: true,
        ..ApnsOptions::default()
    };
    let simulators = Simulators::start(SimulatorOptions {
        apns,
        ..SimulatorOptions::default()
    })
    .await
    .unwrap();
    let client = Apns::connect(&simulators, &simulators.apns).await;
    client.push("00ff").await.unwrap();
    client.await_limit(1000).await;
    simulators.apns.script().next(1, verdict::bad_device_token());
    client.push("00ff").await.unwrap();
    client.await_limit(1).await;
    client.push("00ff").await.unwrap();
    client.await_limit(1000).await;
    simulators.stop().await;
}

/// Opens `count` streams at once on a connection that has not yet been told a limit.
async fn overrun(enforcement: LimitEnforcement, count: usize) -> (Simulators, Vec<Result<u16, h2::Error>>) {
    let apns = ApnsOptions {
        limit_enforcement: enforcement,
        ..ApnsOptions::default()
    };
    let simulators = Simulators::start(SimulatorOptions {
        apns,
        ..SimulatorOptions::default()
    })
    .await
    .unwrap();
    // The answers take long enough for all streams to be open together.
    simulators
        .apns
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(200)));
    let client = Apns::connect(&simulators, &simulators.apns).await;
    let mut responses = Vec::new();
    for _ in 0..count {
        let (response, mut body) = client
            .send
            .clone()
            .send_request(client.request("00ff", &[]), false)
            .unwrap();
        body.send_data(bytes::Bytes::from_static(b"{\"aps\":{}}"), true)
            .unwrap();
        responses.push(response);
    }
    let mut answers = Vec::new();
    for response in responses {
        answers.push(read(response).await.map(|answer| answer.status.as_u16()));
    }
    (simulators, answers)
}

#[tokio::test]
async fn streams_beyond_the_limit_are_counted_and_refused() {
    let (simulators, answers) = overrun(LimitEnforcement::Refuse, 5).await;
    let refused = |answer: &&Result<u16, h2::Error>| {
        answer
            .as_ref()
            .is_err_and(|error| error.reason() == Some(h2::Reason::REFUSED_STREAM))
    };
    let beyond = answers.iter().filter(refused).count();
    let stats = simulators.apns.stats();
    assert!(beyond > 0, "{answers:?}");
    assert_eq!(stats.limit_violations, u64::try_from(beyond).unwrap());
    assert!((1..=4).contains(&stats.most_streams_beyond_limit), "{stats:?}");
    assert_eq!(
        answers.iter().filter(|answer| answer.is_ok()).count(),
        answers.len() - beyond
    );
    simulators.stop().await;
}

#[tokio::test]
async fn streams_beyond_the_limit_can_be_served_or_cost_the_connection() {
    let (simulators, answers) = overrun(LimitEnforcement::CountOnly, 5).await;
    assert!(
        answers
            .iter()
            .all(|answer| answer.as_ref().is_ok_and(|status| *status == 200)),
        "{answers:?}"
    );
    assert!(simulators.apns.limit_violations() > 0);
    simulators.stop().await;
    let (simulators, answers) = overrun(LimitEnforcement::GoAway, 5).await;
    assert!(
        answers.first().unwrap().is_ok(),
        "the stream within the limit is finished"
    );
    assert!(
        answers
            .iter()
            .any(|answer| answer.as_ref().is_err_and(h2::Error::is_go_away)),
        "{answers:?}"
    );
    simulators.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_keeps_to_moving_limits_is_never_accused() {
    let simulators = simulators().await;
    let client = std::sync::Arc::new(Apns::connect(&simulators, &simulators.apns).await);
    client.push("00ff").await.unwrap();
    let mut pushes = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let client = std::sync::Arc::clone(&client);
        pushes.spawn(async move {
            for _ in 0..20 {
                assert_eq!(client.push("00ff").await.unwrap().status, 200);
            }
        });
    }
    let mut limits = [1, 10, 1000, 3].into_iter().cycle();
    while let Some(done) = pushes.join_next().await {
        done.unwrap();
        simulators.apns.set_stream_limit(limits.next().unwrap());
    }
    assert_eq!(simulators.apns.limit_violations(), 0);
    assert_eq!(simulators.apns.inbox().total(), 1001);
    simulators.stop().await;
}
