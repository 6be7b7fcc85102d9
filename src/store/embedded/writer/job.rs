//! One write, from its caller to its answer.

use redb::WriteTransaction;
use sovereign_relay_actors::ports::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Urgency;

/// A write that waits for its transaction.
pub(super) trait Job: Send {
    /// Whether it has to be on disk before it is answered.
    fn urgency(&self) -> Urgency;
    /// Its part of a transaction; again, if that fails for another's sake.
    fn apply(&mut self, transaction: &WriteTransaction) -> Result<(), redb::Error>;
    /// Tells the caller how the transaction ended.
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

/// A job, its caller, and its place in the queue.
pub(super) struct Pending<T, F> {
    pub(super) urgency: Urgency,
    pub(super) apply: F,
    pub(super) outcome: Option<T>,
    pub(super) reply: oneshot::Sender<Result<T, StoreError>>,
    pub(super) _permit: OwnedSemaphorePermit,
}

impl<T, F> Job for Pending<T, F>
where
    T: Send,
    F: Fn(&WriteTransaction) -> Result<T, redb::Error> + Send,
{
    fn urgency(&self) -> Urgency {
        self.urgency
    }

    fn apply(&mut self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        self.outcome = Some((self.apply)(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { outcome, reply, .. } = *self;
        // A caller that went away wants no answer.
        let _ = reply.send(committed.and_then(|()| outcome.ok_or_else(stopped)));
    }
}

/// The answer of a store that is closed.
pub(super) fn stopped() -> StoreError {
    StoreError("the store is closed".to_owned())
}
