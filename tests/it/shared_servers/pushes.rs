//! Pushes through both replicas while something happens to their Redis: none fails, none is doubled, and what was
//! answered before is remembered afterwards.

use serde_json::{Value, json};

use super::*;
use crate::support::device::random;

/// How often each replica is asked to push: for minutes, if need be, and the simulator keeps them all.
const PUSH_EVERY: Duration = Duration::from_millis(20);

impl Replicas {
    /// One push after the other through each of the two, until told to stop; what they were.
    pub(super) async fn push_on(&self, pushed: &[AtomicUsize], stop: &AtomicBool) -> Vec<Vec<Value>> {
        let pushing = self.relays.iter().zip(pushed).map(async |(relay, pushed)| {
            let (mut pushes, mut turns) = (Vec::new(), tokio::time::interval(PUSH_EVERY));
            while !stop.load(Ordering::SeqCst) {
                turns.tick().await;
                let push = fresh_push();
                let answer = relay.push(&self.instance, &push).await;
                assert_eq!(answer.word(), "sent", "{answer:?}");
                pushes.push(push);
                pushed.fetch_add(1, Ordering::SeqCst);
            }
            pushes
        });
        join_all(pushing).await
    }

    /// All are delivered once, also when those are repeated that each replica had sent `before`, at the other one.
    pub(super) async fn were_delivered_once(&self, pushes: &[Vec<Value>], before: &[usize]) {
        for ((pushes, before), other) in pushes.iter().zip(before).zip(self.relays.iter().rev()) {
            for push in pushes.iter().take(*before) {
                self.is_remembered(other, push).await;
            }
        }
        let mut sent: Vec<_> = pushes.iter().flatten().map(token).collect();
        let delivered = self.simulators.apns.inbox().all();
        let mut delivered: Vec<_> = delivered.into_iter().map(|delivery| delivery.token).collect();
        sent.sort();
        delivered.sort();
        assert_eq!(sent, delivered);
    }

    /// A repeat gets the first answer.
    pub(super) async fn is_remembered(&self, relay: &Relay, push: &Value) {
        let answer = relay.push(&self.instance, push).await;
        let is_replayed = answer.headers.contains_key("idempotent-replayed");
        assert!(answer.word() == "sent" && is_replayed, "{answer:?}");
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
