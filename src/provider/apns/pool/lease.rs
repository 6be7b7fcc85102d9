//! One stream of one connection, for as long as a push needs it.

use std::{sync::Arc, time::Duration};

use super::Pool;
use crate::provider::apns::connection::Link;

/// No stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::provider::apns) enum NoLease {
    /// There was no peer until the deadline: no connection, or none that showed any life.
    Unreachable,
    /// There was one, but no turn until the deadline, or too many wait already.
    Full,
    /// These credentials are no longer in use: ask the pool that is.
    Retired,
}

/// One stream of one connection.
pub(in crate::provider::apns) struct Lease {
    pub(super) pool: Arc<Pool>,
    pub(super) link: Arc<Link>,
}

impl Lease {
    pub(in crate::provider::apns) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// The peer answered a try that began then, well or with a fault of its own.
    pub(in crate::provider::apns) fn answered(&self, is_well: bool, began: Duration, now: Duration) {
        let id = self.link.id();
        let mut state = self.pool.lock();
        state.slots.answered(id);
        if is_well {
            return state.slots.answered_well(id, now);
        }
        drop(state);
        self.missed(began);
    }

    /// The try that began then had no good answer. Too many in a row, and the connection is replaced.
    pub(in crate::provider::apns) fn missed(&self, began: Duration) {
        self.pool.lock().slots.missed(self.link.id(), began);
        self.pool.replace_worn();
    }

    /// The peer said that this connection is of no more use.
    pub(in crate::provider::apns) fn condemn_connection(&self) {
        self.pool.lock().slots.condemn(self.link.id());
        self.pool.replace_worn();
    }

    /// Takes this connection out of use; what is under way on it may end.
    pub(in crate::provider::apns) fn retire_connection(&self) {
        self.pool.take_out(self.link.id());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.lock().slots.give_back(self.link.id());
        self.pool.settle();
    }
}
