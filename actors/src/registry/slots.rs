//! How many pushes of one instance may be anywhere between the registry and their answer.
//!
//! Every message that an actor gets about a push carries a slot, so slots bound its mailbox too: actix's own
//! bound gives each clone of an address a place more.

use std::sync::Arc;

use sovereign_relay_protocol::limits::CONCURRENT_PUSHES;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pushes beyond the limit that may still ask, so that a suspended instance hears 403 and an oversized payload 413
/// as the order of checks has it. They are refused within microseconds, so a few dozen do.
const DOORWAY: usize = 64;
/// Messages in an actor's mailbox: one per slot at most, and some room for refreshing and closing.
pub(crate) const MAILBOX: usize = CONCURRENT_PUSHES + DOORWAY + 64;

/// The slots of one instance. They outlive its actor: pushes under way keep theirs when it is replaced.
pub(crate) struct Slots {
    running: Arc<Semaphore>,
    doorway: Arc<Semaphore>,
}

/// Held by one push, given back by dropping.
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
    may_run: bool,
}

impl Slots {
    /// All free.
    pub(crate) fn new() -> Self {
        Self {
            running: Arc::new(Semaphore::new(CONCURRENT_PUSHES)),
            doorway: Arc::new(Semaphore::new(DOORWAY)),
        }
    }

    /// One of the slots, or nothing when even the doorway is full.
    pub(crate) fn take(&self) -> Option<Slot> {
        let running = self.running.clone().try_acquire_owned().map(|permit| Slot {
            _permit: permit,
            may_run: true,
        });
        let slot = running.or_else(|_| {
            self.doorway.clone().try_acquire_owned().map(|permit| Slot {
                _permit: permit,
                may_run: false,
            })
        });
        slot.ok()
    }

    /// Whether no push holds one.
    pub(crate) fn all_free(&self) -> bool {
        self.running.available_permits() == CONCURRENT_PUSHES && self.doorway.available_permits() == DOORWAY
    }
}

impl Slot {
    /// Whether it is one of those that may be under way at the same time.
    pub(crate) fn may_run(&self) -> bool {
        self.may_run
    }
}
