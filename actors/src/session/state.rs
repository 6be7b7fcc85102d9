//! What a replica decides about the connections of one session that it holds. Pure.
//!
//! The record (`record.rs`) decides what is stored; this decides what is worth asking it, and what a client is told:
//!
//! ```text
//! message n -> sealed? in step? within the rate? -> append -> ack n
//!                |        |           |               \-----> err n, and frames above n are dropped until n comes again
//!              4400     4500        err n
//! ```
//!
//! Invariant: only the message that is next is ever refused, so that what an `err` names is never stored.

use std::{cmp::Ordering, time::Duration};

use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        close::CloseCode,
        frame::{Opaque, Refused},
        id::Slot,
        session::{EndToEnd, SessionLimits},
    },
};

use super::{
    bucket::Bucket,
    link::Refusal,
    port::{Appended, Bound, Gone, Trimmed},
};
use crate::now::Now;

/// A full mailbox is tried again after this: its reader acknowledges every 200 ms or is gone.
const MAILBOX_RETRY: Duration = Duration::from_millis(1000);
/// A store that can't be reached is tried again after this.
pub(crate) const STORE_RETRY: Duration = Duration::from_millis(1000);

/// Both slots as this replica sees them.
pub(crate) struct SessionState {
    a: Side,
    b: Side,
}

struct Side {
    bucket: Bucket,
    live: Option<Live>,
}

/// A connection that has the slot, as far as this replica knows.
struct Live {
    epoch: u64,
    /// The first message that is not known to be stored.
    next: u64,
    /// Whether it was refused and has not come again.
    is_refused: bool,
    e2e: EndToEnd,
    instance: InstanceId,
}

/// What to do with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Ask the store to keep it.
    Append,
    /// Acknowledge: everything up to this one was stored before.
    Repeat(u64),
    /// Say nothing: it comes again.
    Skip,
    /// Not now.
    Refuse(Refusal),
    /// End the connection.
    Close(CloseCode),
}

/// What to tell a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// Stored; the flag says whether it was news for the receiver.
    Ack(u64, bool),
    /// Not stored.
    Refuse(Refusal),
    /// End the connection.
    Close(CloseCode),
}

impl SessionState {
    /// Nobody is connected here.
    pub(crate) fn new(limits: &SessionLimits) -> Self {
        let side = || Side {
            bucket: Bucket::new(limits.messages_per_second, limits.burst),
            live: None,
        };
        Self { a: side(), b: side() }
    }

    /// A connection got its slot; `false` if a newer one has it already.
    pub(crate) fn on_bound(&mut self, slot: Slot, bound: &Bound) -> bool {
        let side = self.side_mut(slot);
        if side.live.as_ref().is_some_and(|live| live.epoch > bound.epoch) {
            return false;
        }
        side.live = Some(Live {
            epoch: bound.epoch,
            next: bound.next,
            is_refused: false,
            e2e: bound.settings.e2e,
            instance: bound.instance,
        });
        true
    }

    /// A connection is gone.
    pub(crate) fn on_departed(&mut self, slot: Slot, epoch: u64) {
        let side = self.side_mut(slot);
        if side.live.as_ref().is_some_and(|live| live.epoch == epoch) {
            side.live = None;
        }
    }

    /// Whether the connection of `epoch` has the slot.
    pub(crate) fn is_live(&self, slot: Slot, epoch: u64) -> bool {
        self.side(slot)
            .live
            .as_ref()
            .is_some_and(|live| live.epoch == epoch)
    }

    /// The epoch of the connection whose ticket names `instance`, if it holds the slot.
    pub(crate) fn epoch_of(&self, slot: Slot, instance: InstanceId) -> Option<u64> {
        let live = self.side(slot).live.as_ref()?;
        (live.instance == instance).then_some(live.epoch)
    }

    /// A message came.
    pub(crate) fn judge(&mut self, slot: Slot, epoch: u64, n: u64, content: &Opaque, now: Now) -> Verdict {
        let Side { bucket, live } = self.side_mut(slot);
        let Some(live) = live.as_mut().filter(|live| live.epoch == epoch) else {
            return Verdict::Close(CloseCode::Replaced);
        };
        if n == 0 || (live.e2e == EndToEnd::Required && !content.is_sealed()) {
            return Verdict::Close(CloseCode::Malformed);
        }
        match n.cmp(&live.next) {
            Ordering::Less => return Verdict::Repeat(live.next - 1),
            Ordering::Greater if live.is_refused => return Verdict::Skip,
            Ordering::Greater => return Verdict::Close(CloseCode::OutOfStep),
            Ordering::Equal => {}
        }
        match bucket.take(now.mono) {
            Ok(()) => Verdict::Append,
            Err(retry) => Verdict::Refuse(live.refuse(Refused::RateLimited, n, retry)),
        }
    }

    /// The store answered.
    pub(crate) fn on_appended(
        &mut self,
        slot: Slot,
        epoch: u64,
        n: u64,
        outcome: &Result<Appended, Gone>,
    ) -> Answer {
        let Some(live) = self
            .side_mut(slot)
            .live
            .as_mut()
            .filter(|live| live.epoch == epoch)
        else {
            // Stored or not: its connection is gone, and the client asks again.
            return Answer::Close(CloseCode::Replaced);
        };
        match outcome {
            Ok(appended @ (Appended::Stored | Appended::Duplicate)) => {
                // A duplicate was stored when the store could not say so any more.
                live.is_refused = false;
                live.next = n + 1;
                Answer::Ack(n, *appended == Appended::Stored)
            }
            Ok(Appended::MailboxFull) => Answer::Refuse(live.refuse(Refused::MailboxFull, n, MAILBOX_RETRY)),
            Ok(Appended::OutOfStep) => Answer::Close(CloseCode::OutOfStep),
            Ok(Appended::SessionTotal) => Answer::Close(CloseCode::SessionTotal),
            Err(Gone::Unavailable(_)) => Answer::Refuse(live.refuse(Refused::Unavailable, n, STORE_RETRY)),
            Err(gone @ (Gone::NoSession | Gone::Fenced | Gone::Behind)) => Answer::Close(code_of(gone)),
        }
    }

    fn side(&self, slot: Slot) -> &Side {
        match slot {
            Slot::A => &self.a,
            Slot::B => &self.b,
        }
    }

    fn side_mut(&mut self, slot: Slot) -> &mut Side {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }
}

impl Live {
    fn refuse(&mut self, code: Refused, n: u64, retry: Duration) -> Refusal {
        self.is_refused = true;
        Refusal { code, n, retry }
    }
}

/// How an acknowledgement ends the connection, if it does.
pub(crate) fn after_trim(outcome: &Result<Trimmed, Gone>) -> Option<CloseCode> {
    match outcome {
        Ok(Trimmed::Trimmed) => None,
        Ok(Trimmed::BeyondSent) => Some(CloseCode::NoSuchSession),
        // The client will say it again, with a higher number or in its next hello.
        Err(Gone::Unavailable(_)) => None,
        Err(gone @ (Gone::NoSession | Gone::Fenced | Gone::Behind)) => Some(code_of(gone)),
    }
}

/// How a live connection ends when the store has nothing for it.
pub(crate) fn code_of(gone: &Gone) -> CloseCode {
    match gone {
        // The session's actor finds out more (`ending.rs`).
        Gone::NoSession => CloseCode::NoSuchSession,
        Gone::Fenced => CloseCode::Replaced,
        Gone::Behind => CloseCode::OutOfStep,
        Gone::Unavailable(_) => CloseCode::TryAgainLater,
    }
}

#[cfg(test)]
mod tests;
