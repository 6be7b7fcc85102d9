//! One push as the HTTP layer hands it in, and what comes back: the contract between http/, the instance's
//! actor and the lanes.

use std::time::Duration;

use sovereign_relay_protocol::{
    envelope::CollapseTag,
    id::InstanceId,
    push::{PushAnswer, PushMessage},
};

use crate::{
    ports::{Delivery, TokenHash},
    wait::Wait,
};

/// An authenticated push. Hashes are computed by the edge, which has the keys.
#[derive(Clone, Debug)]
pub struct Push {
    /// The notification.
    pub message: PushMessage,
    /// Keyed hash of platform and device token.
    pub token: TokenHash,
    /// Hashed collapse id.
    pub collapse: Option<CollapseTag>,
    /// Where the caller gave an idempotency key.
    pub idempotency: Option<Idempotency>,
    /// What to assume of an instance without a record.
    pub newcomer: Newcomer,
}

/// What identifies a push for its repeats: a name under each enrollment secret that is configured, since a replica that
/// has another one as its current may have seen the push first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idempotency {
    current: PushName,
    /// In order. Mostly none, which takes no memory.
    others: Box<[PushName]>,
}

/// Keyed hashes under one secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PushName {
    /// Of instance and key.
    pub key: u128,
    /// Of the parsed message without the instance key.
    pub message: u128,
}

impl Idempotency {
    /// `current`: under the current secret. Nothing is named twice.
    pub fn new(current: PushName, others: impl IntoIterator<Item = PushName>) -> Self {
        let mut others: Vec<_> = others
            .into_iter()
            .filter(|other| other.key != current.key)
            .collect();
        others.sort_unstable_by_key(|name| name.key);
        others.dedup_by_key(|name| name.key);
        Self {
            current,
            others: others.into(),
        }
    }

    /// Under the current secret: enough within one process, which has only one such.
    pub fn current(&self) -> PushName {
        self.current
    }

    /// All names, in an order that is the same whichever secret is the current one.
    pub fn names(&self) -> impl Iterator<Item = PushName> {
        let (before, after) = self
            .others
            .split_at(self.others.partition_point(|name| name.key < self.current.key));
        before
            .iter()
            .copied()
            .chain([self.current])
            .chain(after.iter().copied())
    }
}

/// An instance without a record: grown when its key is of the earlier relay, else young.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Newcomer {
    /// A key without `gen`.
    EarlierRelay,
    /// Any other; grouped by the address of its call.
    Young {
        /// Keyed hash of the caller's address (IPv4, or the IPv6 /64).
        group: u64,
    },
}

/// A push that was answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The answer.
    pub answer: PushAnswer,
    /// Whether it is the remembered answer of an earlier push with the same idempotency key.
    pub replayed: bool,
}

/// A push that was refused: no statement about the device. Order of the checks as in the contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// 403. `None`: until the operator resumes the instance.
    Suspended {
        /// Until it ends by itself.
        retry_after: Option<Duration>,
    },
    /// 413.
    PayloadTooLarge,
    /// 429: when this very push would pass.
    RateLimited(Wait),
    /// 409: the idempotency key was used for another message.
    IdempotencyConflict,
    /// 503.
    PlatformNotConfigured,
    /// 502: the provider could not be reached before the deadline.
    SendFailed {
        /// Earliest useful retry.
        retry_after: Duration,
    },
    /// 503: breaker open, queue full, or no turn before the deadline.
    Overloaded {
        /// Earliest useful retry.
        retry_after: Duration,
    },
    /// 503: the relay is stopping.
    Draining,
    /// 500: the actor died of a bug while it had this push; it may have been delivered.
    Internal,
}

/// Who takes turns: an instance by itself, or the young instances of one address together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TurnKey {
    /// A grown instance.
    Instance(InstanceId),
    /// Young instances enrolled from one address.
    Group(u64),
}

/// What an instance's actor hands to a provider's lane.
#[derive(Clone, Debug)]
pub struct LaneJob {
    /// Whose turn it takes, and whom a bad token counts for.
    pub turn: TurnKey,
    /// Keyed hash of the device token.
    pub token: TokenHash,
    /// The push.
    pub delivery: Delivery,
}
