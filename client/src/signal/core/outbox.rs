//! What this side sends, until the relay has stored it.
//!
//! Each message has a number n: 1, 2, 3 .. over all connections. The relay acknowledges up to an n, or refuses from an
//! n on, or names the n that it expects in `welcome`.
//!
//! As many messages wait here as the relay keeps for a receiver: more would only wait here instead of there. A caller
//! with more waits.
//!
//! Invariant: messages are sent in order on each connection, from the one that the relay expects, no faster and no longer
//! than it allows; one that was acknowledged is never needed again.

use std::{collections::VecDeque, time::Duration};

use sovereign_relay_protocol::signal::{
    frame::{Opaque, Refused},
    session::SessionLimits,
};

use super::pace::Pace;
use crate::signal::limits::fits;

/// A relay with larger mailboxes makes this side keep no more than a session carries by default ...
const MESSAGES_MAX: usize = 4096;
/// ... and no more bytes than this, whatever a relay claims.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Messages under way without an acknowledgement; they bound what a refusal makes us send again.
const WINDOW: usize = 32;

pub(crate) struct Outbox {
    /// The relay's; before its first welcome, those that relays have by default.
    limits: SessionLimits,
    pace: Pace,
    waiting: VecDeque<Opaque>,
    /// Messages that fit when they were queued and don't any more, by the number they had.
    dropped: VecDeque<u64>,
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

/// The message is longer than the relay takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge;

impl Default for Outbox {
    fn default() -> Self {
        let limits = SessionLimits::default();
        Self {
            limits,
            pace: Pace::new(&limits),
            waiting: VecDeque::new(),
            dropped: VecDeque::new(),
            bytes: 0,
            stored: 0,
            sent: 0,
            ever_sent: 0,
            held_until: None,
        }
    }
}

impl Outbox {
    /// What the relay allows.
    pub(crate) fn limits(&self) -> SessionLimits {
        self.limits
    }

    /// Whether another message may be queued.
    pub(crate) fn has_room(&self) -> bool {
        let messages = self.limits.mailbox_messages.clamp(1, MESSAGES_MAX);
        let bytes = self.limits.mailbox_bytes.clamp(1, BYTES_MAX);
        self.waiting.len() < messages && self.bytes < bytes
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
    pub(crate) fn push(&mut self, content: Opaque) -> Result<u64, TooLarge> {
        if !fits(&content, &self.limits) {
            return Err(TooLarge);
        }
        self.bytes += content.len();
        self.waiting.push_back(content);
        Ok(self.last())
    }

    /// A new connection, on which the relay expects `next` and allows this much.
    pub(crate) fn welcomed(&mut self, next: u64, limits: SessionLimits) -> Result<(), Implausible> {
        if next <= self.stored || next > self.ever_sent + 1 {
            return Err(Implausible);
        }
        self.drop_to(next - 1);
        self.sent = next - 1;
        self.held_until = None;
        if limits != self.limits {
            self.limits = limits;
            self.pace.told(&limits);
            self.drop_too_large();
        }
        Ok(())
    }

    /// The number of a message that will never be sent. Those behind it move up by one.
    pub(crate) fn take_dropped(&mut self) -> Option<u64> {
        self.dropped.pop_front()
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
    pub(crate) fn refused(&mut self, n: u64, code: Refused, until: Duration) -> Result<(), Implausible> {
        if n <= self.stored || n > self.ever_sent {
            return Err(Implausible);
        }
        self.sent = self.sent.min(n - 1);
        self.held_until = Some(until);
        match code {
            Refused::RateLimited => self.pace.drained(until),
            Refused::MailboxFull | Refused::Unavailable => {}
        }
        Ok(())
    }

    /// The message that goes next, with its n. It counts as sent.
    pub(crate) fn transmit(&mut self, now: Duration) -> Option<(u64, Opaque)> {
        if self.held_until.is_some_and(|until| now < until) {
            return None;
        }
        self.held_until = None;
        let content = self.next()?.clone();
        if now < self.pace.ready_at() {
            return None;
        }
        self.pace.take(now);
        self.sent += 1;
        self.ever_sent = self.ever_sent.max(self.sent);
        Some((self.sent, content))
    }

    /// When the next message may go, if nothing else than time is missing.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let paced = self.next().map(|_| self.pace.ready_at());
        self.held_until.max(paced)
    }

    /// The message after the last one that was sent, if it is there and may be under way with those before it.
    fn next(&self) -> Option<&Opaque> {
        let under_way = usize::try_from(self.sent - self.stored).ok()?;
        let window = self.limits.mailbox_messages.clamp(1, WINDOW);
        self.waiting.get(under_way).filter(|_| under_way < window)
    }

    /// The relay has stored nothing of what still waits, so the numbers are ours to give again.
    fn drop_too_large(&mut self) {
        self.ever_sent = self.stored;
        let (limits, dropped) = (self.limits, &mut self.dropped);
        let (mut n, mut bytes) = (self.stored, 0);
        self.waiting.retain(|content| {
            let fits = fits(content, &limits);
            if fits {
                n += 1;
                bytes += content.len();
            } else {
                dropped.push_back(n + 1);
            }
            fits
        });
        self.bytes = bytes;
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
    use sovereign_relay_protocol::limits::{MAILBOX_MESSAGES, SIGNAL_FRAME_BYTES};

    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn outbox(messages: usize) -> Outbox {
        let mut outbox = Outbox::default();
        for n in 1..=messages {
            assert_eq!(outbox.push(Opaque::new(n.to_string())), Ok(n as u64));
        }
        outbox
    }

    fn usual() -> SessionLimits {
        SessionLimits::default()
    }

    fn x(length: usize) -> Opaque {
        Opaque::new("x".repeat(length))
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
        outbox.welcomed(3, usual()).unwrap();
        assert_eq!(sent(&mut outbox, NOW), [3, 4, 5]);
        assert_eq!(outbox.welcomed(2, usual()), Err(Implausible));
        assert_eq!(outbox.welcomed(7, usual()), Err(Implausible));
        outbox.welcomed(6, usual()).unwrap();
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_refusal_holds_everything_from_its_n_until_the_delay_is_over() {
        let mut outbox = outbox(6);
        assert_eq!(sent(&mut outbox, NOW), [1, 2, 3, 4, 5, 6]);
        let until = Duration::from_millis(800);
        outbox.refused(3, Refused::MailboxFull, until).unwrap();
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
        assert_eq!(outbox.refused(4, Refused::Unavailable, NOW), Err(Implausible));
        outbox.acknowledged(2).unwrap();
        assert_eq!(outbox.refused(2, Refused::Unavailable, NOW), Err(Implausible));
        assert_eq!(
            outbox.acknowledged(1),
            Ok(()),
            "an old acknowledgement says nothing new"
        );
        assert_eq!(outbox.stored(), 2);
    }

    #[test]
    fn a_full_outbox_has_no_room_by_count_or_by_bytes() {
        assert!(outbox(MAILBOX_MESSAGES - 1).has_room());
        assert!(!outbox(MAILBOX_MESSAGES).has_room());
        let mut few = Outbox::default();
        while few.has_room() {
            few.push(x(20_000)).unwrap();
        }
        assert!(few.waiting.len() < 30);
    }

    #[test]
    fn the_relays_mailbox_bounds_what_waits_and_what_is_under_way() {
        let mut outbox = outbox(2);
        let small = SessionLimits {
            mailbox_messages: 3,
            mailbox_bytes: 100,
            ..usual()
        };
        outbox.welcomed(1, small).unwrap();
        assert!(outbox.has_room());
        assert_eq!(outbox.push(x(1)), Ok(3));
        assert!(!outbox.has_room(), "by count");
        assert_eq!(outbox.push(x(1)), Ok(4), "the caller asked before");
        assert_eq!(sent(&mut outbox, NOW), [1, 2, 3]);
        outbox.acknowledged(3).unwrap();
        assert_eq!(sent(&mut outbox, NOW), [4]);
        outbox.push(x(99)).unwrap();
        assert!(!outbox.has_room(), "by bytes");
        let large = SessionLimits {
            mailbox_messages: usize::MAX,
            mailbox_bytes: usize::MAX,
            ..usual()
        };
        outbox.welcomed(5, large).unwrap();
        while outbox.has_room() {
            outbox.push(x(1)).unwrap();
        }
        assert_eq!(outbox.waiting.len(), MESSAGES_MAX);
    }

    #[test]
    fn messages_go_as_fast_as_the_relay_allows_and_no_faster() {
        let mut outbox = outbox(9);
        let slow = SessionLimits {
            messages_per_second: 2,
            burst: 4,
            ..usual()
        };
        outbox.welcomed(1, slow).unwrap();
        assert_eq!(sent(&mut outbox, NOW), [1, 2, 3]);
        let next = Duration::from_millis(500);
        assert_eq!(outbox.deadline(), Some(next));
        assert_eq!(sent(&mut outbox, next), [4]);
        outbox.acknowledged(4).unwrap();
        outbox.welcomed(5, slow).unwrap();
        assert_eq!(
            sent(&mut outbox, next),
            [0; 0],
            "another connection changes nothing"
        );
        let (code, until) = (Refused::RateLimited, Duration::from_secs(5));
        assert_eq!(sent(&mut outbox, until - next), [5, 6, 7]);
        outbox.refused(6, code, until).unwrap();
        assert_eq!(sent(&mut outbox, until), [6]);
        assert_eq!(outbox.deadline(), Some(until + next));
    }

    #[test]
    fn what_is_longer_than_the_relay_takes_is_refused_or_when_that_shows_late_dropped() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.push(x(SIGNAL_FRAME_BYTES)), Err(TooLarge));
        for length in [5, 900, 6, 800, 7] {
            outbox.push(x(length)).unwrap();
        }
        let small = SessionLimits {
            frame_bytes: 500,
            ..usual()
        };
        outbox.welcomed(1, small).unwrap();
        // The second, and the fourth, which is the third by then.
        assert_eq!(
            std::iter::from_fn(|| outbox.take_dropped()).collect::<Vec<_>>(),
            [2, 3]
        );
        assert_eq!((sent(&mut outbox, NOW), outbox.bytes), (vec![1, 2, 3], 18));
        assert_eq!(outbox.push(x(500)), Err(TooLarge));
        let large = SessionLimits {
            frame_bytes: 2 * SIGNAL_FRAME_BYTES,
            ..usual()
        };
        outbox.welcomed(4, large).unwrap();
        assert_eq!(outbox.push(x(SIGNAL_FRAME_BYTES)), Ok(4));
    }
}
