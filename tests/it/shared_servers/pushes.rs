//! Pushes through both replicas while something happens to their Redis: none fails, none is doubled, and what was
//! answered before is remembered afterwards.

use std::time::Instant;

use serde_json::{Value, json};

use super::*;
use crate::support::device::random;

/// How often each replica is asked to push: for minutes, if need be, and the simulator keeps them all.
const PUSH_EVERY: Duration = Duration::from_millis(20);
/// A push waits so long for Redis to tell or to keep an outcome, and goes on without it.
const REDIS_PATIENCE: Duration = Duration::from_millis(800);

/// A push that was sent, and how long it took.
pub(super) struct Sent {
    push: Value,
    took: Duration,
}

impl Replicas {
    /// One push after the other through each of the two, until told to stop; what they were.
    pub(super) async fn push_on(&self, pushed: &[AtomicUsize], stop: &AtomicBool) -> Vec<Vec<Sent>> {
        let pushing = self.relays.iter().zip(pushed).map(async |(relay, pushed)| {
            let (mut pushes, mut turns) = (Vec::new(), tokio::time::interval(PUSH_EVERY));
            while !stop.load(Ordering::SeqCst) {
                turns.tick().await;
                let (push, began) = (fresh_push(), Instant::now());
                let answer = relay.push(&self.instance, &push).await;
                assert_eq!(answer.word(), "sent", "{answer:?}");
                let took = began.elapsed();
                pushes.push(Sent { push, took });
                pushed.fetch_add(1, Ordering::SeqCst);
            }
            pushes
        });
        join_all(pushing).await
    }

    /// All are delivered once, also when those are repeated that each replica had sent `before`, at the other one.
    pub(super) async fn were_delivered_once(&self, pushes: &[Vec<Sent>], before: &[usize]) {
        let mut again = Vec::new();
        for ((pushes, before), other) in pushes.iter().zip(before).zip(self.relays.iter().rev()) {
            let kept = pushes.iter().take(*before);
            for Sent { push, .. } in kept.filter(|sent| sent.took < REDIS_PATIENCE) {
                if !self.is_remembered(other, push).await {
                    again.push(token(push));
                }
            }
        }
        let sent = pushes.iter().flatten().map(|sent| token(&sent.push));
        let mut sent: Vec<_> = sent.chain(again).collect();
        let delivered = self.simulators.apns.inbox().all();
        let mut delivered: Vec<_> = delivered.into_iter().map(|delivery| delivery.token).collect();
        sent.sort();
        delivered.sort();
        assert_eq!(sent, delivered);
    }

    /// A repeat gets the first answer, unless Redis is too slow to tell; whether it did.
    pub(super) async fn is_remembered(&self, relay: &Relay, push: &Value) -> bool {
        let began = Instant::now();
        let answer = relay.push(&self.instance, push).await;
        let is_replayed = answer.headers.contains_key("idempotent-replayed");
        let is_right = is_replayed || began.elapsed() >= REDIS_PATIENCE;
        assert!(answer.word() == "sent" && is_right, "{answer:?}");
        is_replayed
    }
}

/// To a device of its own, under a key of its own.
pub(super) fn fresh_push() -> Value {
    let mut push = fresh_message();
    push["idempotencyKey"] = push["deviceToken"].clone();
    push
}

/// To a device of its own.
pub(super) fn fresh_message() -> Value {
    let mut token = [0; 32];
    random(&mut token);
    let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "deviceToken": token, "platform": "ios", "encryptedPayload": "sealed" })
}

fn token(push: &Value) -> String {
    push["deviceToken"].as_str().unwrap().to_owned()
}
