//! What this side sends, until the relay has stored it.
//!
//! Each message has a number n: 1, 2, 3 .. over all connections. The relay acknowledges up to an n, or refuses from an
//! n on, or names the n that it expects in `welcome`.
//!
//! Invariant: messages are sent in order on each connection, from the one that the relay expects; one that was
//! acknowledged is never needed again.

use std::{collections::VecDeque, time::Duration};

use sovereign_relay_protocol::{limits, signal::frame::Opaque};

/// As many as the relay keeps for a receiver: more would only wait here instead of there. A caller with more waits.
const MESSAGES: usize = limits::MAILBOX_MESSAGES;
/// As many bytes as the relay keeps for a receiver.
const BYTES: usize = limits::MAILBOX_BYTES;
/// Messages under way without an acknowledgement; they bound what a refusal makes us send again.
const WINDOW: u64 = 32;

#[derive(Default)]
pub(crate) struct Outbox {
    waiting: VecDeque<Opaque>,
    bytes: usize,
    /// Highest n that the relay has stored.
    stored: u64,
    /// Highest n that was sent on this connection and not refused.
    sent: u64,
    /// Highest n that was ever sent: the relay can't speak of more.
    ever_sent: u64,
    held_until: Option<Duration>,
}

/// The relay says of our messages what can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Implausible;

impl Outbox {
    /// Whether another message may be queued.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.len() < MESSAGES && self.bytes < BYTES
    }

    /// Whether everything is stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Highest n that the relay has stored.
    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }

    /// Queues a message and gives its n. Whether there is room is the caller's to ask before.
    pub(crate) fn push(&mut self, content: Opaque) -> u64 {
        self.bytes += content.len();
        self.waiting.push_back(content);
        self.last()
    }

    /// A new connection, on which the relay expects `next`.
    pub(crate) fn welcomed(&mut self, next: u64) -> Result<(), Implausible> {
        if next <= self.stored || next > self.ever_sent + 1 {
            return Err(Implausible);
        }
        self.drop_to(next - 1);
        self.sent = next - 1;
        self.held_until = None;
        Ok(())
    }

    /// Everything up to `n` is stored.
    pub(crate) fn acknowledged(&mut self, n: u64) -> Result<(), Implausible> {
        if n > self.ever_sent {
            return Err(Implausible);
        }
        self.drop_to(n);
        self.sent = self.sent.max(self.stored);
        Ok(())
    }

    /// Nothing from `n` on was stored; it may come again at `until`.
    pub(crate) fn refused(&mut self, n: u64, until: Duration) -> Result<(), Implausible> {
        if n <= self.stored || n > self.ever_sent {
            return Err(Implausible);
        }
        self.sent = self.sent.min(n - 1);
        self.held_until = Some(until);
        Ok(())
    }

    /// The message that goes next, with its n. It counts as sent.
    pub(crate) fn transmit(&mut self, now: Duration) -> Option<(u64, Opaque)> {
        if self.held_until.is_some_and(|until| now < until) || self.sent >= self.stored + WINDOW {
            return None;
        }
        self.held_until = None;
        let index = usize::try_from(self.sent - self.stored).ok()?;
        let content = self.waiting.get(index)?.clone();
        self.sent += 1;
        self.ever_sent = self.ever_sent.max(self.sent);
        Some((self.sent, content))
    }

    /// When messages that the relay refused may go again.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.held_until
    }

    fn last(&self) -> u64 {
        self.stored + self.waiting.len() as u64
    }

    fn drop_to(&mut self, n: u64) {
        while self.stored < n {
            let Some(content) = self.waiting.pop_front() else {
                return;
            };
            self.bytes -= content.len();
            self.stored += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn outbox(messages: usize) -> Outbox {
        let mut outbox = Outbox::default();
        for n in 1..=messages {
            assert_eq!(outbox.push(Opaque::new(n.to_string())), n as u64);
        }
        outbox
    }

    fn sent(outbox: &mut Outbox, now: Duration) -> Vec<u64> {
        std::iter::from_fn(|| outbox.transmit(now))
            .map(|(n, _)| n)
            .collect()
    }

    #[test]
    fn messages_go_in_order_and_stop_at_the_window() {
        let mut outbox = outbox(40);
        assert_eq!(sent(&mut outbox, NOW), (1..=32).collect::<Vec<_>>());
        outbox.acknowledged(30).unwrap();
        assert_eq!(sent(&mut outbox, NOW), (33..=40).collect::<Vec<_>>());
        outbox.acknowledged(40).unwrap();
        assert!(outbox.is_empty() && outbox.bytes == 0);
    }

    #[test]
    fn a_welcome_drops_what_is_stored_and_sends_the_rest_again() {
        let mut outbox = outbox(5);
        sent(&mut outbox, NOW);
        outbox.welcomed(3).unwrap();
        assert_eq!(sent(&mut outbox, NOW), [3, 4, 5]);
        assert_eq!(outbox.welcomed(2), Err(Implausible));
        assert_eq!(outbox.welcomed(7), Err(Implausible));
        outbox.welcomed(6).unwrap();
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_refusal_holds_everything_from_its_n_until_the_delay_is_over() {
        let mut outbox = outbox(6);
        assert_eq!(sent(&mut outbox, NOW), [1, 2, 3, 4, 5, 6]);
        let until = Duration::from_millis(800);
        outbox.refused(3, until).unwrap();
        outbox.acknowledged(2).unwrap();
        assert_eq!(outbox.deadline(), Some(until));
        assert!(sent(&mut outbox, until - Duration::from_millis(1)).is_empty());
        assert_eq!(sent(&mut outbox, until), [3, 4, 5, 6]);
    }

    #[test]
    fn an_acknowledgement_or_refusal_of_what_was_not_sent_is_implausible() {
        let mut outbox = outbox(3);
        assert_eq!(outbox.acknowledged(1), Err(Implausible));
        sent(&mut outbox, NOW);
        assert_eq!(outbox.refused(4, NOW), Err(Implausible));
        outbox.acknowledged(2).unwrap();
        assert_eq!(outbox.refused(2, NOW), Err(Implausible));
        assert_eq!(
            outbox.acknowledged(1),
            Ok(()),
            "an old acknowledgement says nothing new"
        );
        assert_eq!(outbox.stored(), 2);
    }

    #[test]
    fn a_full_outbox_has_no_room_by_count_or_by_bytes() {
        assert!(outbox(MESSAGES - 1).has_room());
        assert!(!outbox(MESSAGES).has_room());
        let mut few = Outbox::default();
        while few.has_room() {
            few.push(Opaque::new("x".repeat(20_000)));
        }
        assert!(few.waiting.len() < 30);
    }
}
