//! Repeats of a push under the same idempotency key.
//!
//! Two memories. `InFlight` is this process's: which keys have a push under way, and who waits for it.
//! [`OutcomeMemory`] is a port: the final outcomes of the last ten minutes, shared by replicas where there are any. It
//! is asked through [`names`], since replicas may name one push differently.
//!
//! ```text
//! begin(identity) -> First(claim)   look into the outcome memory, go on, then claim.finish(result)
//!                 -> Wait(receiver) the first one's result
//!                 -> Conflict       the key has another message under way
//! ```
//!
//! The claim travels with the push. Where it is dropped unfinished (a panic), whoever waits is answered
//! [`Refusal::Internal`]: none of them becomes the first, since the first may already have reached the provider
//! and a second delivery is what the key is there to prevent. The table belongs to the registry and not to an
//! actor, so that a push under way keeps its claim when its actor dies.
//!
//! Invariant: at most one push per key is between `begin` and `finish`, and a final outcome is in the outcome
//! memory before `finish`, so no repeat slips between the two memories.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use futures_util::{FutureExt as _, future::BoxFuture};
use sovereign_relay_protocol::{limits, push::PushAnswer};
use tokio::sync::oneshot;

use crate::{
    now::Now,
    push::{Answered, Idempotency, Refusal},
};

pub(crate) mod names;

/// How long a final outcome is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(limits::IDEMPOTENCY_SECONDS);

/// A final outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// Keyed hash of the message it was about.
    pub message: u128,
    /// What was answered.
    pub answer: PushAnswer,
}

/// Final outcomes of the last [`REMEMBERED`]. Bounded; what it cannot keep or reach counts as not remembered, so
/// that pushes go on without it. Where replicas share it, `get` also waits for a push of the key that another one has
/// under way; each `get` that finds nothing is followed by `put` or `release`.
pub trait OutcomeMemory: Send + Sync + 'static {
    /// The outcome under this keyed hash of instance and key.
    fn get(&self, key: u128, now: Now) -> BoxFuture<'static, Option<Remembered>>;
    /// Remembers an outcome; one that is there already stays.
    fn put(&self, key: u128, outcome: Remembered, now: Now) -> BoxFuture<'static, ()>;
    /// Nothing that is remembered came of the push for which `get` found nothing: another one may be the first.
    fn release(&self, _key: u128) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

type Outcome = Result<Answered, Refusal>;

/// Keys with a push under way. Clones are the same table. It holds no more entries than there are pushes.
#[derive(Clone, Default)]
pub(crate) struct InFlight {
    claims: Arc<DashMap<u128, Claimed>>,
    serial: Arc<AtomicU64>,
}

struct Claimed {
    serial: u64,
    message: u128,
    /// Each holds one of its instance's slots while it waits, which bounds them.
    waiters: Vec<oneshot::Sender<Outcome>>,
}

/// What a push is to its key.
pub(crate) enum Begin {
    /// The first: it goes on with this claim.
    First(Claim),
    /// A repeat: the first one's result will come, or nothing if the first dies.
    Wait(oneshot::Receiver<Outcome>),
    /// The key is under way with another message.
    Conflict,
}

impl InFlight {
    /// Claims the key for this push, or says who has it.
    pub(crate) fn begin(&self, identity: &Idempotency) -> Begin {
        let name = identity.current();
        match self.claims.entry(name.key) {
            Entry::Vacant(place) => {
                let serial = self.serial.fetch_add(1, Ordering::Relaxed);
                place.insert(Claimed {
                    serial,
                    message: name.message,
                    waiters: Vec::new(),
                });
                Begin::First(Claim {
                    table: self.clone(),
                    identity: identity.clone(),
                    serial,
                })
            }
            Entry::Occupied(mut place) => place.get_mut().join(name.message),
        }
    }

    /// Keys under way.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Repeats that wait for a key.
    #[cfg(test)]
    pub(crate) fn waiters(&self, key: u128) -> usize {
        self.claims.get(&key).map_or(0, |claimed| claimed.waiters.len())
    }

    fn remove(&self, key: u128, serial: u64) -> Option<Claimed> {
        self.claims
            .remove_if(&key, |_, claimed| claimed.serial == serial)
            .map(|(_, claimed)| claimed)
    }
}

impl Claimed {
    fn join(&mut self, message: u128) -> Begin {
        if self.message != message {
            return Begin::Conflict;
        }
        self.waiters.retain(|waiter| !waiter.is_closed());
        let (sender, receiver) = oneshot::channel();
        self.waiters.push(sender);
        Begin::Wait(receiver)
    }
}

/// The right to be the one push of its key. Dropped unfinished, it frees the key and disappoints the waiters.
pub(crate) struct Claim {
    table: InFlight,
    identity: Idempotency,
    serial: u64,
}

impl Claim {
    /// What was claimed.
    pub(crate) fn identity(&self) -> &Idempotency {
        &self.identity
    }

    /// Frees the key and hands the result to the waiters: as a replay where a later repeat would get one too.
    pub(crate) fn finish(self, outcome: &Outcome) {
        let Some(claimed) = self.table.remove(self.identity.current().key, self.serial) else {
            return;
        };
        let repeated = outcome.clone().map(|answered| Answered {
            replayed: answered.answer.is_final(),
            ..answered
        });
        for waiter in claimed.waiters {
            // A waiter that hung up needs no answer.
            let _ = waiter.send(repeated.clone());
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.table.remove(self.identity.current().key, self.serial);
    }
}

#[cfg(test)]
mod tests;
