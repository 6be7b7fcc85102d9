use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use proptest::prelude::*;
use sovereign_relay_protocol::time::UnixMillis;
use tokio::sync::Notify;

use super::*;
use crate::now::Now;

const A: PushName = PushName { key: 1, message: 10 };
const B: PushName = PushName { key: 2, message: 20 };

struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        Now {
            mono: Duration::ZERO,
            unix: UnixMillis(0),
        }
    }
}

/// Shared by replicas, as Redis is: a claimed name is waited for.
#[derive(Clone, Default)]
struct Shared(Arc<Inner>);

#[derive(Default)]
struct Inner {
    places: Mutex<HashMap<u128, Option<Remembered>>>,
    asked: Mutex<Vec<u128>>,
    changed: Notify,
}

impl Shared {
    fn claimed(&self) -> usize {
        let places = self.0.places.lock().unwrap();
        places.values().filter(|place| place.is_none()).count()
    }

    fn set(&self, key: u128, place: Option<Remembered>) {
        self.0.places.lock().unwrap().insert(key, place);
        self.0.changed.notify_waiters();
    }

    fn asked(&self) -> Vec<u128> {
        std::mem::take(&mut self.0.asked.lock().unwrap())
    }

    async fn recall(&self, identity: &Idempotency) -> Recall {
        recall(self, identity, &Still).await
    }

    async fn remember(&self, identity: &Idempotency) {
        remember(self, identity, &answer(), &Still).await;
    }
}

impl OutcomeMemory for Shared {
    fn get(&self, key: u128, _: Now) -> BoxFuture<'static, Option<Remembered>> {
        let inner = self.0.clone();
        async move {
            inner.asked.lock().unwrap().push(key);
            loop {
                let changed = inner.changed.notified();
                match inner.places.lock().unwrap().get(&key) {
                    Some(Some(remembered)) => return Some(remembered.clone()),
                    Some(None) => {}
                    None => break,
                }
                changed.await;
            }
            inner.places.lock().unwrap().insert(key, None);
            None
        }
        .boxed()
    }

    fn put(&self, key: u128, outcome: Remembered, _: Now) -> BoxFuture<'static, ()> {
        self.set(key, Some(outcome));
        std::future::ready(()).boxed()
    }

    fn release(&self, key: u128) -> BoxFuture<'static, ()> {
        let mut places = self.0.places.lock().unwrap();
        if places.get(&key) == Some(&None) {
            places.remove(&key);
        }
        drop(places);
        self.0.changed.notify_waiters();
        std::future::ready(()).boxed()
    }
}

fn answer() -> PushAnswer {
    PushAnswer::sent(Some("id".to_owned()))
}

/// The steps of a change from one secret to another, in turn: neighbours run side by side.
fn steps(old: PushName, new: PushName) -> [Idempotency; 4] {
    [
        Idempotency::new(old, []),
        Idempotency::new(old, [new]),
        Idempotency::new(new, [old]),
        Idempotency::new(new, []),
    ]
}

/// Whichever of the two names comes first.
fn both_ways() -> impl Iterator<Item = [Idempotency; 4]> {
    [steps(A, B), steps(B, A)].into_iter()
}

fn neighbours(steps: &[Idempotency; 4]) -> impl Iterator<Item = (&Idempotency, &Idempotency)> {
    let pairs = steps.iter().zip(steps.iter().skip(1));
    pairs.flat_map(|(one, other)| [(one, other), (other, one)])
}

#[tokio::test]
async fn what_one_step_has_answered_its_neighbours_replay() {
    for steps in both_ways() {
        for (one, other) in neighbours(&steps) {
            let memory = Shared::default();
            assert_eq!(memory.recall(one).await, Recall::First);
            memory.remember(one).await;
            assert_eq!(memory.recall(other).await, Recall::Replay(answer()));
            assert_eq!(memory.claimed(), 0);
        }
    }
}

#[tokio::test]
async fn what_the_first_step_of_the_swap_has_answered_is_replayed_when_the_old_secret_is_gone() {
    for [_, second, third, last] in both_ways() {
        for step in [second, third] {
            let memory = Shared::default();
            memory.recall(&step).await;
            memory.remember(&step).await;
            assert_eq!(memory.recall(&last).await, Recall::Replay(answer()));
        }
    }
}

#[tokio::test]
async fn a_push_under_way_at_one_step_is_waited_for_at_its_neighbours() {
    for steps in both_ways() {
        for (one, other) in neighbours(&steps) {
            let memory = Shared::default();
            assert_eq!(memory.recall(one).await, Recall::First);
            let mut repeat = Box::pin(memory.recall(other));
            assert!(repeat.as_mut().now_or_never().is_none());
            memory.remember(one).await;
            assert_eq!(repeat.await, Recall::Replay(answer()));
            assert_eq!(memory.claimed(), 0);
        }
    }
}

#[tokio::test]
async fn after_a_push_of_which_nothing_came_one_that_waits_is_the_first() {
    for steps in both_ways() {
        for (one, other) in neighbours(&steps) {
            let memory = Shared::default();
            memory.recall(one).await;
            let mut repeat = Box::pin(memory.recall(other));
            assert!(repeat.as_mut().now_or_never().is_none());
            release(&memory, one).await;
            assert_eq!(repeat.await, Recall::First);
            release(&memory, other).await;
            assert_eq!(memory.claimed(), 0);
        }
    }
}

#[tokio::test]
async fn another_message_is_a_conflict_under_whichever_name_it_is_found() {
    for name in [A, B] {
        let memory = Shared::default();
        let outcome = |message| Remembered {
            message,
            answer: answer(),
        };
        memory.set(name.key, Some(outcome(name.message + 1)));
        for identity in [Idempotency::new(A, [B]), Idempotency::new(B, [A])] {
            assert_eq!(memory.recall(&identity).await, Recall::Conflict);
            assert_eq!(memory.claimed(), 0, "nothing stays claimed");
        }
        memory.set(name.key, Some(outcome(name.message)));
        let identity = Idempotency::new(B, [A]);
        assert_eq!(memory.recall(&identity).await, Recall::Replay(answer()));
        assert_eq!(memory.claimed(), 0);
    }
}

#[tokio::test]
async fn with_one_secret_the_memory_is_asked_once() {
    let memory = Shared::default();
    memory.recall(&Idempotency::new(A, [])).await;
    assert_eq!(memory.asked(), [A.key]);
}

proptest! {
    #[test]
    fn all_who_have_the_same_secrets_name_a_push_in_the_same_order(
        keys in prop::collection::vec(0..20_u128, 1..9),
        current in any::<prop::sample::Index>(),
    ) {
        let name = |key: &u128| PushName { key: *key, message: key + 100 };
        let identity = Idempotency::new(name(current.get(&keys)), keys.iter().map(name));
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(identity.names().map(|name| name.key).collect::<Vec<_>>(), sorted);
        prop_assert!(identity.names().all(|name| name.message == name.key + 100));
        prop_assert_eq!(identity.current(), name(current.get(&keys)));
    }
}

/// Replicas of two neighbouring steps, and more than one of each, with repeats of one push at all of them: one is the
/// first, the rest replay, and nobody waits for ever.
#[tokio::test]
async fn repeats_at_replicas_of_neighbouring_steps_wait_for_one_of_them() {
    for steps in both_ways() {
        for (one, other) in neighbours(&steps) {
            let memory = Shared::default();
            let calls = [one, other].into_iter().cycle().take(8).map(|identity| async {
                let recall = memory.recall(identity).await;
                if recall == Recall::First {
                    tokio::task::yield_now().await;
                    memory.remember(identity).await;
                }
                recall
            });
            let recalls = join_all(calls).await;
            assert_eq!(
                recalls.iter().filter(|recall| **recall == Recall::First).count(),
                1
            );
            assert_eq!(memory.claimed(), 0);
        }
    }
}
