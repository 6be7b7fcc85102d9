//! APNs as documented: answers, rules, stream limits, GOAWAY, JWTs.

use std::time::Duration;

use crate::{
    Behaviour, SimulatorOptions, Simulators,
    apns::verdict,
    tests::kit::{Apns, SOON, read, sign, simulators, until},
};

#[tokio::test]
async fn a_good_push_is_delivered_with_all_that_it_said() {
    let simulators = simulators().await;
    let apns = &simulators.apns;
    let (client, token) = (Apns::connect(&simulators, apns).await, apns.new_token());
    let id = "0190b4a6-8c1e-7d3a-9f00-0123456789ab";
    let headers = [
        ("apns-id", id),
        ("apns-priority", "5"),
        ("apns-expiration", "1900000000"),
        ("apns-collapse-id", "c1"),
        ("apns-push-type", "alert"),
    ];
    let answer = client.push_with(&token, &headers).await;
    assert_eq!((answer.status.as_u16(), answer.body.as_str()), (200, ""));
    assert_eq!(answer.headers["apns-id"], id);
    assert!(
        !answer.headers.contains_key("apns-unique-id"),
        "the sandbox alone has it"
    );
    let delivery = apns.inbox().wait_for(1, SOON).await.unwrap().remove(0);
    assert_eq!(
        (delivery.token, delivery.apns_id.as_str(), delivery.order),
        (token, id, 1)
    );
    assert_eq!(
        (delivery.priority, delivery.expiration),
        (Some(5), Some(1_900_000_000))
    );
    assert_eq!(
        (delivery.collapse_id.as_deref(), delivery.jwt),
        (Some("c1"), client.jwt.clone())
    );
    assert_eq!(delivery.payload, "{\"aps\":{\"mutable-content\":1}}");
    assert_eq!((apns.connections_accepted(), apns.answered_with(200)), (1, 1));
    simulators.stop().await;
}

#[tokio::test]
async fn the_sandbox_is_another_world_and_has_a_unique_id() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns_sandbox).await;
    let answer = client.push(&simulators.apns_sandbox.new_token()).await.unwrap();
    assert!(answer.headers.contains_key("apns-unique-id"));
    let answer = client.push(&simulators.apns.new_token()).await.unwrap();
    assert_eq!(answer.reason(), "BadDeviceToken");
    simulators.stop().await;
}

#[tokio::test]
async fn what_breaks_a_rule_is_refused_with_the_documented_reason_and_an_id() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    let stale = sign(
        &simulators.apns.key(),
        "SIMTEAM001",
        simulators.clock().unix_seconds() - 3700,
    );
    for (headers, status, reason) in [
        (
            &[("apns-priority", "10"), ("apns-push-type", "background")][..],
            400,
            "BadPriority",
        ),
        (&[("apns-id", "123")], 400, "BadMessageId"),
        (&[("apns-topic", "com.example.other")], 400, "TopicDisallowed"),
        (
            &[("apns-priority", "5"), ("apns-priority", "5")],
            400,
            "DuplicateHeaders",
        ),
        (&[("authorization", "bearer a.b.c")], 403, "InvalidProviderToken"),
        (
            &[("authorization", &format!("bearer {stale}"))],
            403,
            "ExpiredProviderToken",
        ),
    ] {
        let answer = client.push_with("00ff", headers).await;
        assert_eq!(
            (answer.status.as_u16(), answer.reason().as_str()),
            (status, reason)
        );
        assert!(answer.headers.contains_key("apns-id"));
        assert_eq!(answer.headers["content-type"], "application/json");
    }
    assert_eq!(client.push("not-hex").await.unwrap().reason(), "BadDeviceToken");
    assert_eq!(simulators.apns.inbox().total(), 0);
    let requests = simulators.apns.requests().all();
    assert_eq!(
        requests.iter().map(|request| request.status.unwrap()).max(),
        Some(403)
    );
    assert_eq!(requests.last().unwrap().refusal, "BadDeviceToken");
    simulators.stop().await;
}

#[tokio::test]
async fn a_strict_simulator_knows_only_the_tokens_it_made() {
    let options = SimulatorOptions {
        strict: true,
        ..SimulatorOptions::default()
    };
    let simulators = Simulators::start(options).await.unwrap();
    let client = Apns::connect(&simulators, &simulators.apns).await;
    assert_eq!(client.push("00ff").await.unwrap().reason(), "BadDeviceToken");
    assert_eq!(
        client.push(&simulators.apns.new_token()).await.unwrap().status,
        200
    );
    simulators.stop().await;
}

#[tokio::test]
async fn a_410_has_its_timestamp_in_milliseconds() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    let token = simulators.apns.new_token();
    simulators
        .apns
        .script()
        .device(&token)
        .always(verdict::unregistered(1_800_000_000_123));
    let answer = client.push(&token).await.unwrap();
    assert_eq!(answer.status, 410);
    assert_eq!(
        answer.body,
        r#"{"reason":"Unregistered","timestamp":1800000000123}"#
    );
    assert_eq!(
        client.push(&simulators.apns.new_token()).await.unwrap().status,
        200
    );
    simulators.stop().await;
}

#[tokio::test]
async fn goaway_names_its_reason_finishes_old_streams_and_closes() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    client.push("00ff").await.unwrap();
    client.await_limit(1000).await;
    simulators.apns.script().hold(true);
    let slow = client.start(client.request("00ff", &[])).await.unwrap();
    until(|| simulators.apns.requests_under_way() > 0).await;
    simulators.apns.goaway("Shutdown");
    simulators.apns.script().hold(false);
    assert_eq!(
        read(slow).await.unwrap().status,
        200,
        "a stream at or below the last id is finished"
    );
    let error = client.push("00ff").await.unwrap_err();
    assert!(
        error.is_go_away() && error.to_string().contains(r#"{\"reason\":\"Shutdown\"}"#),
        "{error}"
    );
    let ended = tokio::time::timeout(SOON, client.connection)
        .await
        .unwrap()
        .unwrap();
    assert!(ended.is_ok() || ended.is_err_and(|error| error.is_go_away()));
    assert_eq!(simulators.apns.inbox().total(), 2);
    simulators.stop().await;
}

#[tokio::test]
async fn goaway_at_a_lower_id_leaves_later_streams_unprocessed() {
    let simulators = simulators().await;
    let client = Apns::connect(&simulators, &simulators.apns).await;
    client.push("00ff").await.unwrap();
    client.await_limit(1000).await;
    simulators
        .apns
        .script()
        .next(2, Behaviour::accept().after(Duration::from_millis(200)));
    let kept = client.start(client.request("aa", &[])).await.unwrap();
    let cut_off = client.start(client.request("bb", &[])).await.unwrap();
    until(|| simulators.apns.requests_under_way() == 2).await;
    simulators.apns.goaway_at("Shutdown", kept.stream_id().as_u32());
    assert_eq!(read(kept).await.unwrap().status, 200);
    assert!(read(cut_off).await.is_err());
    let delivered = simulators.apns.inbox().all();
    assert_eq!(
        delivered
            .iter()
            .map(|delivery| delivery.token.as_str())
            .collect::<Vec<_>>(),
        ["00ff", "aa"]
    );
    simulators.stop().await;
}

#[tokio::test]
async fn jwts_are_recorded_per_connection_and_a_second_change_is_one_too_many() {
    let simulators = simulators().await;
    let apns = &simulators.apns;
    let mut client = Apns::connect(&simulators, apns).await;
    let first = client.jwt.clone();
    client.push("00ff").await.unwrap();
    client.jwt = sign(
        &apns.key(),
        &apns.options().team_id,
        simulators.clock().unix_seconds() + 1,
    );
    client.push("00ff").await.unwrap();
    client.jwt = first.clone();
    let answer = client.push("00ff").await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), answer.reason().as_str()),
        (429, "TooManyProviderTokenUpdates")
    );
    simulators.clock().advance(Duration::from_secs(20 * 60));
    assert_eq!(client.push("00ff").await.unwrap().status, 200);
    let jwts = apns.jwts();
    assert_eq!(jwts.iter().map(|jwt| jwt.connection).collect::<Vec<_>>(), [1, 1]);
    assert_eq!((jwts[0].jwt.as_str(), apns.jwt_changes()), (first.as_str(), 2));
    simulators.stop().await;
}

#[tokio::test]
async fn a_further_key_is_good_until_revoked_but_not_on_the_connection_of_another() {
    let simulators = simulators().await;
    let apns = &simulators.apns;
    let mut client = Apns::connect(&simulators, apns).await;
    client.push("00ff").await.unwrap();
    let key = apns.new_key().unwrap();
    client.jwt = sign(&key, &apns.options().team_id, simulators.clock().unix_seconds());
    assert_eq!(
        client.push("00ff").await.unwrap().reason(),
        "UnrelatedKeyIdInToken"
    );
    let mut other = Apns::connect(&simulators, apns).await;
    other.jwt = client.jwt.clone();
    assert_eq!(other.push("00ff").await.unwrap().status, 200);
    apns.revoke_key(&key.key_id);
    assert_eq!(other.push("00ff").await.unwrap().reason(), "InvalidProviderToken");
    simulators.stop().await;
}
