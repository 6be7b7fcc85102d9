//! The outcome memory, asked about one push under all its names.
//!
//! While the enrollment secret is changed, replicas side by side have different ones as their current, and what one has
//! written others must find. Each replica therefore asks, claims, remembers and releases under every secret that it
//! has: the steps of the change are such that neighbours share one. Called by `instance/work.rs`.
//!
//! ```text
//! recall:  name 1 -> nothing: claimed -> name 2 -> nothing: claimed -> .. -> First
//!                 -> an outcome              -> an outcome: what was claimed before it goes back
//!                                                -> Replay, or Conflict if it is of another message under that name
//! remember, release: all names at once
//! ```
//!
//! Invariant: whoever goes on holds the claims of all names, and takes them in the one order, so that no two replicas
//! each hold what the other waits for. A task that dies between two names leaves what one that dies after the last does:
//! claims that this replica takes up again, and that otherwise end by themselves.

use futures_util::future::join_all;
use sovereign_relay_protocol::push::PushAnswer;

use super::{OutcomeMemory, Remembered};
use crate::{
    ports::Clock,
    push::{Idempotency, PushName},
};

/// What the memory knows of a push.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Recall {
    /// Nothing: it goes on as the first, and is followed by [`remember`] or [`release`].
    First,
    /// It was answered.
    Replay(PushAnswer),
    /// Another message was answered under its key.
    Conflict,
}

/// Asks for a push, and claims it where nothing is known. Waits for one under way at another replica.
pub(crate) async fn recall(memory: &dyn OutcomeMemory, identity: &Idempotency, clock: &dyn Clock) -> Recall {
    for (claimed, name) in identity.names().enumerate() {
        let Some(remembered) = memory.get(name.key, clock.now()).await else {
            continue;
        };
        give_back(memory, identity.names().take(claimed)).await;
        return if remembered.message == name.message {
            Recall::Replay(remembered.answer)
        } else {
            Recall::Conflict
        };
    }
    Recall::First
}

/// Remembers the final outcome of a push that was claimed.
pub(crate) async fn remember(
    memory: &dyn OutcomeMemory,
    identity: &Idempotency,
    answer: &PushAnswer,
    clock: &dyn Clock,
) {
    let now = clock.now();
    let put = |PushName { key, message }| {
        let answer = answer.clone();
        memory.put(key, Remembered { message, answer }, now)
    };
    join_all(identity.names().map(put)).await;
}

/// Nothing that is remembered came of a push that was claimed.
pub(crate) async fn release(memory: &dyn OutcomeMemory, identity: &Idempotency) {
    give_back(memory, identity.names()).await;
}

async fn give_back(memory: &dyn OutcomeMemory, names: impl Iterator<Item = PushName>) {
    join_all(names.map(|name| memory.release(name.key))).await;
}

#[cfg(test)]
mod tests;
