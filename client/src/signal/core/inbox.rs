//! What the relay sends us in sequence, and our acknowledgements.
//!
//! `received` is the highest seq that was queued for the application, `processed` the highest that it took: only that
//! is acknowledged, so that a program that dies in between finds the rest again.
//!
//! Invariant: each seq is accepted once and in order, and the peer's generations never go back.

use std::time::Duration;

/// An acknowledgement waits so long for company: half of what the contract allows, the rest is for late timers.
const ACK_DELAY: Duration = Duration::from_millis(100);
/// So many are acknowledged at once, whatever the delay.
const ACK_BATCH: u64 = 32;

#[derive(Default)]
pub(crate) struct Inbox {
    welcomed: bool,
    received: u64,
    processed: u64,
    /// Highest seq that the relay knows as processed.
    acknowledged: u64,
    /// Where the relay is on this connection.
    at: u64,
    ack_at: Option<Duration>,
    generation: u32,
}

/// What a sequenced frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// The next one.
    New,
    /// It came before, most likely on an earlier connection.
    Known,
    /// Of a generation of the peer that another has replaced. It counts, but means nothing.
    Stale,
    /// One before it is missing.
    Gap,
}

impl Inbox {
    /// Highest seq that the application took, for a `hello`.
    pub(crate) fn greet(&mut self) -> u64 {
        self.acknowledged = self.processed;
        self.at = self.processed;
        self.processed
    }

    /// The relay dropped everything up to `base`. False when we never saw some of that.
    pub(crate) fn welcomed(&mut self, base: u64, now: Duration) -> bool {
        if !self.welcomed {
            self.welcomed = true;
            (self.received, self.processed, self.acknowledged) = (base, base, base);
        }
        if base > self.received {
            return false;
        }
        self.at = self.at.max(base);
        self.schedule(now);
        true
    }

    /// Something with this number came from this generation of the peer.
    pub(crate) fn arrived(&mut self, seq: u64, generation: u32) -> Arrival {
        if seq > self.at.saturating_add(1) {
            return Arrival::Gap;
        }
        self.at = self.at.max(seq);
        if seq <= self.received {
            return Arrival::Known;
        }
        self.received = seq;
        if generation < self.generation {
            return Arrival::Stale;
        }
        self.generation = generation;
        Arrival::New
    }

    /// The application took `seq` and all before it.
    pub(crate) fn processed(&mut self, seq: u64, now: Duration) {
        self.processed = self.processed.max(seq.min(self.received));
        self.schedule(now);
    }

    /// The seq to acknowledge now, if any. In a `hurry` it doesn't wait for company.
    pub(crate) fn transmit(&mut self, now: Duration, hurry: bool) -> Option<u64> {
        let due = self.ack_at.is_some_and(|at| hurry || at <= now);
        if !due {
            return None;
        }
        self.ack_at = None;
        self.acknowledged = self.processed;
        Some(self.processed)
    }

    /// When the next acknowledgement is due.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.ack_at
    }

    fn schedule(&mut self, now: Duration) {
        let waiting = self.processed - self.acknowledged;
        if waiting == 0 {
            self.ack_at = None;
        } else if waiting >= ACK_BATCH {
            self.ack_at = Some(now);
        } else {
            self.ack_at.get_or_insert(now + ACK_DELAY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn inbox(base: u64) -> Inbox {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.greet(), 0);
        assert!(inbox.welcomed(base, NOW));
        inbox
    }

    #[test]
    fn a_new_page_load_starts_where_the_old_one_had_got() {
        let mut inbox = inbox(17);
        assert_eq!(inbox.arrived(18, 1), Arrival::New);
        assert_eq!(inbox.arrived(18, 1), Arrival::Known);
        assert_eq!(inbox.arrived(20, 1), Arrival::Gap);
        assert_eq!(inbox.arrived(19, 1), Arrival::New);
    }

    #[test]
    fn what_comes_again_after_a_resume_is_known() {
        let mut inbox = inbox(0);
        for seq in 1..=3 {
            inbox.arrived(seq, 1);
        }
        inbox.processed(1, NOW);
        assert_eq!(inbox.greet(), 1);
        assert!(inbox.welcomed(1, NOW));
        assert_eq!(inbox.arrived(2, 1), Arrival::Known);
        assert_eq!(inbox.arrived(3, 1), Arrival::Known);
        assert_eq!(inbox.arrived(4, 1), Arrival::New);
    }

    #[test]
    fn a_relay_that_dropped_what_we_never_saw_is_out_of_step() {
        let mut inbox = inbox(0);
        inbox.arrived(1, 1);
        inbox.greet();
        assert!(!inbox.welcomed(2, NOW));
    }

    #[test]
    fn acknowledgements_are_cumulative_and_wait_for_company_but_not_for_long() {
        let mut inbox = inbox(0);
        for seq in 1..=40 {
            inbox.arrived(seq, 1);
        }
        inbox.processed(1, NOW);
        assert_eq!(inbox.transmit(NOW, false), None);
        inbox.processed(2, NOW + ACK_DELAY / 2);
        assert_eq!(inbox.deadline(), Some(ACK_DELAY));
        assert_eq!(inbox.transmit(ACK_DELAY, false), Some(2));
        assert_eq!(inbox.transmit(ACK_DELAY, true), None);
        inbox.processed(2 + ACK_BATCH, ACK_DELAY);
        assert_eq!(inbox.transmit(ACK_DELAY, false), Some(34));
        inbox.processed(1000, ACK_DELAY);
        assert_eq!(inbox.transmit(ACK_DELAY, true), Some(40), "never more than came");
    }

    #[test]
    fn a_message_of_a_replaced_generation_counts_but_means_nothing() {
        let mut inbox = inbox(0);
        assert_eq!(inbox.arrived(1, 2), Arrival::New);
        assert_eq!(inbox.arrived(2, 1), Arrival::Stale);
        assert_eq!(inbox.arrived(3, 2), Arrival::New);
    }
}
