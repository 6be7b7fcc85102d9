//! A slot that has to be given back, whatever becomes of the actor that does it.
//!
//! ```text
//! connection gone -> Depart(debt) -> actor: store.unbind until it answers -> paid
//!                        |                |
//!                        `-- fell undone -'-> the session's next actor, a few times
//! ```
//!
//! An actor that panics, or leaves while a message is on its way to it, drops what it was told; a debt that is dropped
//! unpaid finds the next one. The registry waits a moment for all of them when it closes.

use std::sync::{Arc, atomic::Ordering};

use actix::dev::SendError;
use sovereign_relay_protocol::signal::id::{SessionId, Slot};
use tracing::error;

use super::{messages::Depart, port::Departure, registry::Kit};
use crate::registry::tracker::Tracked;

/// Actors that one debt may outlive, and how often each of them looks for a living one. One that kills more is the bug.
const TRIES: u32 = 4;

/// A slot that is to be given back.
pub(crate) struct Debt {
    kit: Arc<Kit>,
    id: SessionId,
    slot: Slot,
    epoch: u64,
    departure: Departure,
    /// How many actors more may have it.
    tries: u32,
    is_paid: bool,
    _tracked: Tracked,
}

impl Debt {
    /// Of the connection that was given this epoch.
    pub(super) fn new(kit: &Arc<Kit>, id: SessionId, slot: Slot, epoch: u64, departure: Departure) -> Self {
        Self {
            kit: kit.clone(),
            id,
            slot,
            epoch,
            departure,
            tries: TRIES,
            is_paid: false,
            _tracked: kit.debts.enter(),
        }
    }

    /// The store has the slot back, or somebody else sees to it.
    pub(super) fn paid(mut self) {
        self.is_paid = true;
    }

    /// Which slot.
    pub(super) fn slot(&self) -> Slot {
        self.slot
    }

    /// Of which connection.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How it left.
    pub(super) fn departure(&self) -> Departure {
        self.departure
    }

    /// Has the session's actor pay it.
    pub(super) fn hand_over(self) {
        let (kit, id) = (self.kit.clone(), self.id);
        let mut depart = Depart(self);
        for _ in 0..TRIES {
            let seat = kit.directory.seat(id, &kit);
            depart = match seat.address.try_send(depart) {
                Ok(()) => return,
                // One more for each connection is no flood.
                Err(SendError::Full(depart)) => return seat.address.do_send(depart),
                Err(SendError::Closed(depart)) => {
                    kit.directory.leave(id, seat.generation);
                    depart
                }
            };
        }
        depart.0.write_off();
    }

    fn write_off(self) {
        self.paid();
        error!(
            "a slot could not be given back; its peer sees it online until the session ends, which mends it"
        );
    }
}

impl Drop for Debt {
    fn drop(&mut self) {
        // Without arbiters there is no next one; a registry that closes says so itself.
        if self.is_paid || self.kit.is_closed.load(Ordering::SeqCst) {
            return;
        }
        let (id, slot, epoch, departure) = (self.id, self.slot, self.epoch, self.departure);
        let mut next = Self::new(&self.kit, id, slot, epoch, departure);
        next.tries = self.tries.saturating_sub(1);
        if next.tries > 0 {
            next.hand_over();
        } else {
            next.write_off();
        }
    }
}
