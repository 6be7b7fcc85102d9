//! Single pushes: keys, idempotency, what reaches the actor.

use serde_json::json;
use sovereign_relay_actors::push::{Answered, Newcomer};
use sovereign_relay_protocol::push::{PushAnswer, Reason};

use super::kit::{Relay, Request, message, sent};

#[actix_web::test]
async fn the_deployed_runtimes_form_with_the_key_in_the_body_is_sent() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let mut body = message();
    body["instanceKey"] = json!(key);
    let answer = relay.send(Request::new("POST", "/v1/push").json(&body)).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"result": "sent"})));
}

#[actix_web::test]
async fn a_key_in_both_places_must_be_the_same() {
    let relay = Relay::start().await;
    let (key, other) = (relay.enroll().await, relay.enroll().await);
    let mut body = message();
    body["instanceKey"] = json!(key);
    let same = relay
        .send(Request::new("POST", "/v1/push").key(&key).json(&body))
        .await;
    assert_eq!(same.status, 200);
    let different = relay
        .send(Request::new("POST", "/v1/push").key(&other).json(&body))
        .await;
    assert_eq!(different.refusal(), (400, "invalid_request".to_owned()));
}

#[actix_web::test]
async fn the_answer_of_the_actor_is_passed_on_whole() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay.pushes.answer(|_| {
        Ok(Answered {
            answer: PushAnswer::failed(Reason::ProviderThrottled, true, Some(37)),
            replayed: false,
        })
    });
    let answer = relay.send(Request::push().key(&key)).await;
    let expected = json!({"result": "failed", "reason": "provider_throttled", "retryable": true, "retryAfterSeconds": 37});
    assert_eq!((answer.status, answer.json()), (200, expected));
    assert_eq!(answer.header("idempotent-replayed"), None);
}

#[actix_web::test]
async fn a_replayed_answer_says_so_in_its_head() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay.pushes.answer(|_| {
        Ok(Answered {
            replayed: true,
            ..sent()
        })
    });
    let answer = relay.send(Request::push().key(&key)).await;
    assert_eq!(answer.header("idempotent-replayed"), Some("true"));
}

#[actix_web::test]
async fn the_idempotency_key_means_the_same_in_header_and_body() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let mut body = message();
    body["idempotencyKey"] = json!("once");
    relay
        .send(Request::new("POST", "/v1/push").key(&key).json(&body))
        .await;
    let in_body = relay.pushes.last().idempotency.expect("a key was given");
    relay
        .send(Request::push().key(&key).header("Idempotency-Key", "once"))
        .await;
    assert_eq!(relay.pushes.last().idempotency, Some(in_body));
    relay.send(Request::push().key(&key)).await;
    assert_eq!(relay.pushes.last().idempotency, None);
    let both = Request::new("POST", "/v1/push").key(&key).json(&body);
    assert_eq!(
        relay.send(both.header("Idempotency-Key", "once")).await.status,
        200
    );
    let both = Request::new("POST", "/v1/push").key(&key).json(&body);
    let answer = relay.send(both.header("Idempotency-Key", "twice")).await;
    assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()));
}

#[actix_web::test]
async fn a_default_that_is_spelled_out_makes_no_other_message_of_a_repeat() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let default = relay.services.providers.default_environment;
    let identity = async |platform: &str, fields: serde_json::Value| {
        let mut body = message();
        body["platform"] = json!(platform);
        body["idempotencyKey"] = json!("once");
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let request = Request::new("POST", "/v1/push").key(&key).json(&body);
        assert_eq!(relay.send(request).await.status, 200);
        relay.pushes.last().idempotency
    };
    let plain = identity("ios", json!({})).await;
    for fields in [
        json!({ "environment": default.as_str() }),
        json!({ "environment": null }),
        json!({ "priority": "high" }),
        json!({ "ttlSeconds": 2_419_200 }),
        json!({ "unknown": 1 }),
    ] {
        assert_eq!(identity("ios", fields.clone()).await, plain, "{fields}");
    }
    assert_ne!(identity("ios", json!({ "environment": "sandbox" })).await, plain);
    assert_eq!(
        identity("android", json!({ "environment": "sandbox" })).await,
        identity("android", json!({})).await,
        "of no meaning there"
    );
}

#[actix_web::test]
async fn an_idempotency_key_of_the_wrong_form_is_a_400() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for wrong in ["", "a b", &"x".repeat(129)] {
        let answer = relay
            .send(Request::push().key(&key).header("Idempotency-Key", wrong))
            .await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{wrong:?}");
    }
}

#[actix_web::test]
async fn a_newcomer_is_grouped_by_the_address_that_the_proxy_names() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let group_of = async |forwarded: &str| {
        relay
            .send(Request::push().key(&key).header("X-Forwarded-For", forwarded))
            .await;
        match relay.pushes.last().newcomer {
            Newcomer::Young { group } => group,
            Newcomer::EarlierRelay => panic!("this key has a generation"),
        }
    };
    let first = group_of("1.2.3.4").await;
    assert_eq!(group_of("9.9.9.9, 1.2.3.4").await, first);
    assert_ne!(group_of("1.2.3.5").await, first);
    assert_eq!(
        group_of("2001:db8:1:1::1").await,
        group_of("2001:db8:1:1:ffff::2").await
    );
}

#[actix_web::test]
async fn content_is_not_in_any_error() {
    let relay = Relay::start().await;
    let body = json!({"deviceToken": "SECRET", "platform": "SECRET", "encryptedPayload": "SECRET", "instanceKey": 1});
    let answer = relay.send(Request::new("POST", "/v1/push").json(&body)).await;
    assert_eq!(answer.status, 400);
    assert!(!String::from_utf8_lossy(&answer.body).contains("SECRET"));
}
