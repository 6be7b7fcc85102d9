//! APNs misbehaving on command.

use std::time::Duration;

use h2::Reason;

use crate::{
    Behaviour, Pace,
    apns::verdict,
    tests::kit::{Apns, SOON, simulators, until},
};

#[tokio::test]
async fn a_push_can_be_delivered_and_answered_with_an_error() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    simulators
        .apns
        .script()
        .next(1, verdict::service_unavailable().delivered());
    let answer = client.push("00ff").await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.reason().as_str()),
        (503, "ServiceUnavailable")
    );
    assert_eq!(client.push("00ff").await.unwrap().status, 200);
    assert_eq!(simulators.apns.inbox().total(), 2);
    assert_eq!(
        (
            simulators.apns.answered_with(503),
            simulators.apns.requests().total()
        ),
        (1, 2)
    );
    simulators.stop().await;
}

#[tokio::test]
async fn a_stream_can_be_refused_or_reset() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    simulators.apns.script().next(1, Behaviour::refuse_stream());
    simulators
        .apns
        .script()
        .next(1, Behaviour::reset_stream(Reason::INTERNAL_ERROR.into()));
    assert_eq!(
        client.push("00ff").await.unwrap_err().reason(),
        Some(Reason::REFUSED_STREAM)
    );
    assert_eq!(
        client.push("00ff").await.unwrap_err().reason(),
        Some(Reason::INTERNAL_ERROR)
    );
    assert_eq!(client.push("00ff").await.unwrap().status, 200);
    assert_eq!(simulators.apns.inbox().total(), 1);
    simulators.stop().await;
}

#[tokio::test]
async fn no_answer_ever_leaves_the_connection_in_use_and_a_reset_is_counted() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    client.push("00ff").await.unwrap();
    client.await_limit(1000).await;
    simulators
        .apns
        .script()
        .device("aa")
        .always(Behaviour::never_answer().delivered());
    let silent = client.start(client.request("aa", &[])).await.unwrap();
    simulators.apns.inbox().wait_for(2, SOON).await.unwrap();
    assert_eq!(client.push("00ff").await.unwrap().status, 200);
    assert_eq!(simulators.apns.requests_under_way(), 1);
    drop(silent);
    until(|| simulators.apns.resets_received() > 0).await;
    until(|| simulators.apns.requests_under_way() == 0).await;
    simulators.stop().await;
}

#[tokio::test]
async fn the_connection_can_be_cut_before_or_after_the_request_is_read() {
    let simulators = simulators().await;
    for (behaviour, requests) in [
        (Behaviour::kill_before_reading(), 0),
        (Behaviour::kill_connection(), 1),
    ] {
        let client = Apns::connect(&simulators, &simulators.apns).await;
        simulators.apns.script().next(1, behaviour);
        assert!(client.push("00ff").await.is_err());
        tokio::time::timeout(SOON, client.connection)
            .await
            .unwrap()
            .unwrap()
            .ok();
        assert_eq!(simulators.apns.requests().total(), requests);
    }
    assert_eq!(simulators.apns.inbox().total(), 0);
    simulators.stop().await;
}

#[tokio::test]
async fn a_body_can_be_slow_oversized_stalled_or_cut() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    let refusal = verdict::refused(400, "BadTopic");
    let script = simulators.apns.script();
    script.next(
        1,
        refusal.clone().paced(Pace::Slow {
            chunk_bytes: 3,
            pause_ms: 1,
        }),
    );
    assert_eq!(client.push("00ff").await.unwrap().reason(), "BadTopic");
    script.next(1, refusal.clone().padded_to(50_000));
    let answer = client.push("00ff").await.unwrap();
    assert_eq!(
        (answer.body.len(), answer.reason().as_str()),
        (50_000, "BadTopic")
    );
    script.next(1, refusal.clone().paced(Pace::StallAfter { bytes: 4 }));
    let (_, mut body) = client
        .start(client.request("00ff", &[]))
        .await
        .unwrap()
        .await
        .unwrap()
        .into_parts();
    assert_eq!(body.data().await.unwrap().unwrap().len(), 4);
    let stalled = tokio::time::timeout(Duration::from_millis(200), body.data()).await;
    assert!(stalled.is_err(), "the end never comes");
    script.next(1, refusal.paced(Pace::CutAfter { bytes: 4 }));
    assert!(client.push("00ff").await.is_err());
    simulators.stop().await;
}

#[tokio::test]
async fn a_delay_holds_the_answer_back() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    simulators
        .apns
        .script()
        .always(Behaviour::accept().after(Duration::from_secs(3600)));
    let early = tokio::time::timeout(Duration::from_millis(100), client.push("00ff")).await;
    assert!(early.is_err());
    simulators.stop().await;
}

#[tokio::test]
async fn pings_are_answered_and_counted() {
    let simulators = simulators().await;
    let stream = crate::tests::kit::dial(&simulators.ca_pem, simulators.apns.port(), b"h2")
        .await
        .unwrap();
    let (_send, mut connection) = h2::client::handshake(stream).await.unwrap();
    let mut ping = connection.ping_pong().unwrap();
    let connection = tokio::spawn(connection);
    ping.ping(h2::Ping::opaque()).await.unwrap();
    assert_eq!(simulators.apns.pings_received(), 1);
    simulators.stop().await;
    connection.await.unwrap().ok();
}
