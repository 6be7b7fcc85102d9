//! What a caller sees when a relay can't be reached or is lost half-way: never a push twice, always the API's form.

use reqwest::Method;
use serde_json::json;

use crate::support::{
    answer::Answer,
    caddy::Caddy,
    fleet::{Fleet, client},
    grown::grown_instance,
    raw,
    redis::own_place,
    relay::Caller,
    until,
    upstream::{Fate, Upstream},
};

const PUSHES: usize = 20;

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!(
        (answer.status.as_u16(), answer.word()),
        (status, code),
        "{answer:?}"
    );
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(answer.body["message"].is_string(), "{answer:?}");
}

#[tokio::test]
async fn a_replica_that_is_not_there_is_passed_over_once_a_check_has_missed_it() {
    let fleet = Fleet::start(1).await;
    let nobody = own_place();
    let places = [nobody, fleet.replicas[0].place()];
    let caddy = Caddy::start(Caddy::choose(), &places).await;
    until("a check has failed", async || caddy.has_missed(nobody)).await;
    let (caller, instance) = (Caller::of(&caddy.url()), grown_instance());
    for _ in 0..PUSHES {
        let push = json!({
            "platform": "ios",
            "deviceToken": fleet.simulators.apns.new_token(),
            "encryptedPayload": "sealed",
        });
        let answer = caller.try_push(&instance, &push).await.unwrap();
        assert_eq!(answer.word(), "sent", "{answer:?}");
    }
}

#[tokio::test]
async fn a_push_whose_replica_is_lost_before_it_answers_is_not_sent_to_another() {
    let upstreams = [
        Upstream::start(Fate::BrokenOff).await,
        Upstream::start(Fate::BrokenOff).await,
    ];
    let caddy = Caddy::start(Caddy::choose(), &upstreams.each_ref().map(Upstream::address)).await;
    let (caller, instance) = (Caller::of(&caddy.url()), grown_instance());
    for _ in 0..PUSHES {
        let answer = caller.try_push(&instance, &json!({})).await.unwrap();
        assert_refused(&answer, 502, "send_failed");
        assert_eq!(answer.retry_after(), 1);
    }
    let seen: usize = upstreams.iter().map(|upstream| upstream.heads().len()).sum();
    assert_eq!(seen, PUSHES, "each went to one");
}

#[tokio::test]
async fn where_no_relay_can_be_reached_the_answer_says_when_to_come_again() {
    let caddy = Caddy::start(Caddy::choose(), &[own_place()]).await;
    let answer = Answer::from(client(None).get(format!("{}/v1/capabilities", caddy.url()))).await;
    assert_refused(&answer, 503, "overloaded");
    assert_eq!(answer.retry_after(), 1);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_in_the_apis_form_by_the_relay_or_by_caddy() {
    let fleet = Fleet::start(1).await;
    let push = fleet
        .request(Method::POST, "/v1/push")
        .bearer_auth(grown_instance().key);
    let body = format!("{{\"padding\":\"{}\"}}", "x".repeat(17 * 1024));
    let request = push.header("content-type", "application/json").body(body);
    assert_refused(&Answer::from(request).await, 413, "payload_too_large");
    // Nobody waits for these.
    for (path, bytes) in [
        ("/v1/push", 100_000),
        ("/v1/enroll", 1 << 20),
        ("/v1/push/batch", 8 << 20),
    ] {
        let authority = fleet.caddy.url().replace("http://", "");
        let head = format!("POST {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-length: {bytes}\r\n");
        let answer = raw::exchange(&fleet.caddy.url(), &format!("{head}connection: close\r\n\r\n")).await;
        assert_refused(&answer, 413, "payload_too_large");
    }
}
