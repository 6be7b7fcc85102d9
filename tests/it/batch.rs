//! A batch is its messages: each answered in its place, none spoiling another.

use reqwest::Method;
use serde_json::{Value, json};
use sovereign_relay_protocol::{limits, platform::Platform};
use sovereign_relay_simulator::{Behaviour, SimulatorOptions, apns::verdict as apns};
use std::time::Duration;

use crate::support::{
    relay::{Answer, RelayOptions},
    world::World,
};

/// `result` or `error` of each place.
fn words(answer: &Answer) -> Vec<&str> {
    let results = answer.body["results"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer:?}"));
    let word = |result: &'_ Value| result.get("result").or_else(|| result.get("error")).is_some();
    assert!(results.iter().all(word), "{answer:?}");
    results
        .iter()
        .map(|result| result["result"].as_str().or(result["error"].as_str()).unwrap())
        .collect()
}

#[tokio::test]
async fn results_come_in_the_order_of_the_messages_though_the_first_is_answered_last() {
    let world = World::start().await;
    let owner = world.relay.enroll().await;
    let apns_script = world.simulators.apns.script();
    let mut messages = Vec::new();
    let mut expected = Vec::new();
    for number in 0..40_u64 {
        let device = world.device(Platform::Ios);
        let gone = number % 4 == 1;
        let verdict = if gone {
            apns::unregistered(1_700_000_000_000)
        } else {
            Behaviour::accept()
        };
        let delay = Duration::from_millis(400 - 10 * number);
        apns_script.device(&device.token).always(verdict.after(delay));
        messages.push(device.push(&json!({ "number": number })));
        expected.push(if gone { "invalid_token" } else { "sent" });
    }
    let answer = world.relay.batch(&owner, &messages).await;
    assert_eq!(answer.status, 200);
    assert_eq!(words(&answer), expected);
}

#[tokio::test]
async fn a_bad_message_is_an_error_in_its_own_place_whatever_is_wrong_with_it() {
    let options = RelayOptions::new().without("FCM_SERVICE_ACCOUNT_JSON");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let owner = world.relay.enroll().await;
    let stranger = world.relay.enroll().await;
    let good = || world.device(Platform::Ios).push(&json!({ "title": "Hello" }));
    let with = |name: &str, value: Value| {
        let mut message = good();
        message[name] = value;
        message
    };
    let mut keyed = good();
    keyed["idempotencyKey"] = json!("one key");
    let once = with("idempotencyKey", json!("a-key"));
    let bad = [
        (json!(null), "invalid_request"),
        (json!({}), "invalid_request"),
        (json!([1, 2]), "invalid_request"),
        (with("platform", json!("amiga")), "invalid_request"),
        (with("deviceToken", json!("")), "invalid_request"),
        (with("deviceToken", json!("not hexadecimal")), "invalid_token"),
        (with("ttlSeconds", json!(-1)), "invalid_request"),
        (with("instanceKey", json!(stranger.key)), "invalid_request"),
        (
            with("encryptedPayload", json!("x".repeat(5000))),
            "payload_too_large",
        ),
        (keyed, "invalid_request"),
        (
            world.device(Platform::Android).push(&json!({})),
            "platform_not_configured",
        ),
        (once, "sent"),
        (with("instanceKey", json!(owner.key)), "sent"),
    ];
    let mut messages = Vec::new();
    let mut expected = Vec::new();
    for (message, word) in bad {
        messages.extend([message, good()]);
        expected.extend([word, "sent"]);
    }
    let answer = world.relay.batch(&owner, &messages).await;
    assert_eq!(words(&answer), expected, "{answer:?}");
    for result in answer.body["results"].as_array().unwrap() {
        let is_error = result.get("error").is_some();
        let says = result["message"]
            .as_str()
            .is_some_and(|message| message.len() > 10);
        assert_eq!(is_error, says, "{result}");
    }
    let delivered = world.simulators.apns.inbox().all().len();
    assert_eq!(delivered, expected.iter().filter(|word| **word == "sent").count());
}

#[tokio::test]
async fn a_batch_that_is_none_is_refused_whole_and_sends_nothing() {
    let world = World::start().await;
    let owner = world.relay.enroll().await;
    let message = json!({ "deviceToken": "abcd", "platform": "ios", "encryptedPayload": "sealed" });
    let too_many = vec![message.clone(); limits::BATCH_MESSAGES + 1];
    for body in [
        json!({}),
        json!([message]),
        json!({ "messages": [] }),
        json!({ "messages": {} }),
        json!({ "messages": too_many }),
    ] {
        let request = world
            .relay
            .request(Method::POST, "/v1/push/batch")
            .bearer_auth(&owner.key);
        let answer = Answer::from(request.json(&body)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.word()),
            (400, "invalid_request"),
            "{body}"
        );
    }
    assert_eq!(world.simulators.apns.requests().total(), 0);
}

#[tokio::test]
async fn each_message_of_a_batch_counts_against_the_limit_and_those_beyond_it_name_their_moment() {
    let options = RelayOptions::new().set("RELAY_PUSHES_PER_MINUTE", "10");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let owner = world.relay.enroll().await;
    let messages: Vec<Value> = (0..15)
        .map(|_| world.device(Platform::Ios).push(&json!({})))
        .collect();
    let answer = world.relay.batch(&owner, &messages).await;
    let refused: Vec<&Value> = answer.body["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["error"] == "rate_limited")
        .collect();
    assert_eq!(
        (
            words(&answer).iter().filter(|word| **word == "sent").count(),
            refused.len()
        ),
        (10, 5)
    );
    assert!(
        refused
            .iter()
            .all(|result| (1..=60).contains(&result["retryAfterSeconds"].as_u64().unwrap()))
    );
}
