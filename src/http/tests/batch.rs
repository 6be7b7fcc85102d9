//! Batches: order, isolation, bounds.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use sovereign_relay_actors::{push::Refusal, wait::Limit};
use sovereign_relay_protocol::{redacted::Redacted, time::UnixMillis};

use super::kit::{Relay, Request, message, sent};
use crate::store::revocation::{Cause, Entry, Gone, State};

fn batch(messages: &[Value]) -> Request {
    Request::new("POST", "/v1/push/batch").json(&json!({"messages": messages}))
}

#[actix_web::test]
async fn results_come_in_the_order_of_the_messages_and_one_bad_message_spoils_no_other() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay
        .pushes
        .answer(|push| match push.message.device_token.expose() {
            "limited" => Err(Refusal::RateLimited(
                Limit::Device.wait(std::time::Duration::from_secs(7)),
            )),
            _ => Ok(sent()),
        });
    let with = |token: &str| {
        let mut message = message();
        message["deviceToken"] = json!(token);
        message
    };
    let messages = [
        with("a"),
        json!({"platform": "ios"}),
        with("limited"),
        json!(7),
        with("b"),
    ];
    let answer = relay.send(batch(&messages).key(&key)).await;
    assert_eq!(answer.status, 200);
    let results = answer.json()["results"].clone();
    assert_eq!(results[0], json!({"result": "sent"}));
    assert_eq!(results[1]["error"], "invalid_request");
    assert_eq!(
        (&results[2]["error"], &results[2]["retryAfterSeconds"]),
        (&json!("rate_limited"), &json!(7))
    );
    assert_eq!(results[3]["error"], "invalid_request");
    assert_eq!(results[4], json!({"result": "sent"}));
    assert_eq!(results.as_array().unwrap().len(), 5);
}

#[actix_web::test]
async fn a_full_batch_of_500_is_answered_whole() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let answer = relay.send(batch(&vec![message(); 500]).key(&key)).await;
    assert_eq!(answer.json()["results"].as_array().unwrap().len(), 500);
    assert_eq!(relay.pushes.seen.lock().unwrap().len(), 500);
    let most = relay.pushes.most_under_way.load(Ordering::SeqCst);
    assert_eq!(most, 64, "as many as one batch may have under way, and no more");
}

#[actix_web::test]
async fn an_empty_batch_and_one_too_many_are_a_400() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for messages in [Vec::new(), vec![message(); 501]] {
        let answer = relay.send(batch(&messages).key(&key)).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()));
    }
}

#[actix_web::test]
async fn a_message_with_another_key_is_refused_in_its_own_place() {
    let relay = Relay::start().await;
    let (key, other) = (relay.enroll().await, relay.enroll().await);
    let with_key = |key: &str| {
        let mut message = message();
        message["instanceKey"] = json!(key);
        message
    };
    let answer = relay
        .send(batch(&[with_key(&key), with_key(&other)]).key(&key))
        .await;
    let results = answer.json()["results"].clone();
    assert_eq!(
        (&results[0]["result"], &results[1]["error"]),
        (&json!("sent"), &json!("invalid_request"))
    );
}

#[actix_web::test]
async fn what_has_not_begun_when_the_relay_closes_is_answered_draining() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let (lifecycle, begun) = (relay.lifecycle.clone(), AtomicUsize::new(0));
    relay.pushes.answer(move |_| {
        if begun.fetch_add(1, Ordering::SeqCst) == 2 {
            lifecycle.advance(crate::shutdown::Phase::Closing);
        }
        Ok(sent())
    });
    let answer = relay.send(batch(&vec![message(); 10]).key(&key)).await;
    let results = answer.json()["results"].clone();
    assert_eq!(results[2]["result"], "sent");
    assert_eq!(
        (&results[3]["error"], &results[9]["error"]),
        (&json!("draining"), &json!("draining"))
    );
}

#[actix_web::test]
async fn one_idempotency_key_for_a_whole_batch_is_refused_and_the_answer_says_where_keys_go() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let keyed = batch(&[message()]).header("Idempotency-Key", "all").key(&key);
    let answer = relay.send(keyed).await;
    assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()));
    let sentence = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(
        sentence.contains("idempotencyKey into each message"),
        "{sentence}"
    );
    assert!(relay.pushes.seen.lock().unwrap().is_empty());
}

#[actix_web::test]
async fn what_has_not_begun_when_the_key_is_revoked_is_answered_revoked() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let authority = relay.services.authority.clone();
    let caller = authority
        .verify(&Redacted::new(key.clone()), relay.services.now())
        .unwrap();
    let begun = AtomicUsize::new(0);
    let gone = Entry {
        kids: Vec::new(),
        state: State::Gone(Gone {
            at: UnixMillis(0),
            cause: Cause::Revoked,
        }),
    };
    relay.pushes.answer(move |_| {
        if begun.fetch_add(1, Ordering::SeqCst) == 2 {
            authority.learn(caller.instance, &gone);
        }
        Ok(sent())
    });
    let answer = relay.send(batch(&vec![message(); 100]).key(&key)).await;
    let results = answer.json()["results"].clone();
    assert_eq!(results[2]["result"], "sent");
    assert_eq!(
        (&results[3]["error"], &results[99]["error"]),
        (&json!("revoked"), &json!("revoked"))
    );
    assert_eq!(relay.pushes.seen.lock().unwrap().len(), 3);
}
