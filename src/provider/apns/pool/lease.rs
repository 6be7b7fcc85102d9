//! One stream of one connection, for as long as a push needs it.

use std::{sync::Arc, time::Duration};

use super::Pool;
use crate::provider::apns::connection::Link;

/// Connections that answer but are of no use are replaced this often at most.
const REPLACE_EVERY: Duration = Duration::from_secs(1);

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

    /// The peer answered.
    pub(in crate::provider::apns) fn answered(&self) {
        self.pool.lock().slots.answered(self.link.id());
    }

    /// Takes this connection out of use; what is under way on it may end.
    pub(in crate::provider::apns) fn retire_connection(&self) {
        self.pool.take_out(self.link.id());
    }

    /// The same for a connection that answers but is of no use, which must not cost one handshake per push.
    pub(in crate::provider::apns) fn replace_connection(&self) {
        let now = self.pool.base.clock.now().mono;
        let due = {
            let mut state = self.pool.lock();
            let due = now >= state.next_replacement;
            if due {
                state.next_replacement = now + REPLACE_EVERY;
            }
            due
        };
        if due {
            self.retire_connection();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.pool.lock().slots.give_back(self.link.id());
        self.pool.settle();
    }
}
