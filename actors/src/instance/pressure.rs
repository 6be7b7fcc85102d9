//! Dead-token pressure: what an instance's `invalid_token` answers say about the instance.
//!
//! An honest instance deletes a device at the first `invalid_token`. Two things stand out from that:
//!
//! - **Repeats**: pushes to a token already reported gone. First the instance is slowed to a tenth of its rate, then
//!   suspended for an hour with a reason for the operator.
//! - **Strangers**: dead tokens that never took a push. A guesser makes nothing else, but so does a large instance
//!   in its first honest sweep, so beyond 500 an hour only pushes to tokens that never took one wait.
//!
//! Only `invalid_token` really answered by this actor counts; answers from memory (`recently_invalid`, replays)
//! never come here. A push that was already under way when its token was reported is no repeat. The same memory
//! answers repeats within the minute.
//!
//! An idle actor keeps living while anything here counts, so idling does not wipe the slate.

use std::time::Duration;

use sovereign_relay_protocol::limits::{
    CONCURRENT_PUSHES, NEVER_SENT_DEAD_PER_HOUR, RECENTLY_INVALID_SECONDS,
};

use super::memory::{TokenMemory, Window};
use crate::ports::TokenHash;

/// Repeats within an hour that slow an instance down. Software that deletes at once makes none; a handful come
/// from copies of one registration.
pub(crate) const REPEATS_SLOW: usize = 50;
/// Repeats within an hour that suspend it. Slowed down it needs minutes more to get here, so it isn't an accident.
pub(crate) const REPEATS_SUSPEND: usize = 200;
/// How long the suspension lasts: long enough that the loop costs its makers something, short enough to heal over
/// lunch.
pub(crate) const SUSPENDED_FOR: Duration = Duration::from_secs(3600);
/// What the operator reads in the CLI.
pub(crate) const SUSPENSION_REASON: &str =
    "200 pushes within an hour to tokens already reported gone: its software does not delete dead devices";

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a token just called gone is answered from memory.
const RECENTLY: Duration = Duration::from_secs(RECENTLY_INVALID_SECONDS);
/// Tokens remembered of each kind, about 50 bytes each when full; beyond, the older half is forgotten, which only
/// makes the policy milder (a forgotten dead token) or slower (a forgotten good one).
const TOKENS: usize = 16_384;
const STRANGERS: usize = NEVER_SENT_DEAD_PER_HOUR as usize;

/// One instance's record with dead tokens.
pub(crate) struct Pressure {
    gone: TokenMemory,
    sent: TokenMemory,
    repeats: Window,
    strangers: Window,
}

/// What one more dead token leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Consequence {
    /// Nothing beyond what the limits already say.
    Nothing,
    /// The instance is to be suspended for [`SUSPENDED_FOR`].
    Suspend,
}

impl Pressure {
    /// A clean record.
    pub(crate) fn new() -> Self {
        Self {
            gone: TokenMemory::new(TOKENS, DAY),
            sent: TokenMemory::new(TOKENS, DAY),
            repeats: Window::new(REPEATS_SUSPEND, HOUR),
            // Pushes already under way when the limit is reached still count.
            strangers: Window::new(STRANGERS + CONCURRENT_PUSHES, HOUR),
        }
    }

    /// A push to `token` was sent.
    pub(crate) fn on_sent(&mut self, token: TokenHash, now: Duration) {
        self.gone.forget(token);
        self.sent.remember(token, now);
    }

    /// A push to `token` that began at `began` was answered `invalid_token`.
    pub(crate) fn on_gone(&mut self, token: TokenHash, began: Duration, now: Duration) -> Consequence {
        let reported = self.gone.last(token, now);
        let was_good = self.sent.last(token, now).is_some();
        self.gone.remember(token, now);
        match reported {
            Some(at) if began > at => self.repeats.add(now),
            Some(_) => {}
            None if was_good => {}
            None => self.strangers.add(now),
        }
        if self.repeats.count(now) < REPEATS_SUSPEND {
            return Consequence::Nothing;
        }
        self.repeats.clear();
        Consequence::Suspend
    }

    /// How much longer `token` is answered from memory.
    pub(crate) fn recently_gone(&self, token: TokenHash, now: Duration) -> Option<Duration> {
        let until = self.gone.last(token, now)?.saturating_add(RECENTLY);
        (until > now).then(|| until.saturating_sub(now))
    }

    /// How much longer the instance is slowed down.
    pub(crate) fn slowed(&self, now: Duration) -> Option<Duration> {
        self.repeats.wait_below(REPEATS_SLOW, now)
    }

    /// How long a push to `token` waits because too many strangers were dead.
    pub(crate) fn stranger_wait(&self, token: TokenHash, now: Duration) -> Option<Duration> {
        let wait = self.strangers.wait_below(STRANGERS, now)?;
        self.sent.last(token, now).is_none().then_some(wait)
    }

    /// The operator has pardoned the instance.
    pub(crate) fn pardon(&mut self) {
        self.repeats.clear();
        self.strangers.clear();
    }

    /// Nothing counts against the instance.
    pub(crate) fn is_calm(&self, now: Duration) -> bool {
        self.repeats.count(now) == 0 && self.strangers.count(now) == 0
    }

    /// Forgets what is over. Called on a timer.
    pub(crate) fn clean(&mut self, now: Duration) {
        self.gone.clean(now);
        self.sent.clean(now);
        self.repeats.clean(now);
        self.strangers.clean(now);
    }

    /// Tokens remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.gone.len() + self.sent.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn report(pressure: &mut Pressure, token: u128, at: Duration) -> Consequence {
        pressure.on_gone(TokenHash(token), at, at + Duration::from_millis(50))
    }

    #[test]
    fn a_token_just_called_gone_is_answered_from_memory_for_sixty_seconds() {
        let mut pressure = Pressure::new();
        pressure.on_gone(TokenHash(1), SECOND, 2 * SECOND);
        assert_eq!(
            pressure.recently_gone(TokenHash(1), 12 * SECOND),
            Some(50 * SECOND)
        );
        assert_eq!(pressure.recently_gone(TokenHash(1), 62 * SECOND), None);
        assert_eq!(pressure.recently_gone(TokenHash(2), 12 * SECOND), None);
    }

    #[test]
    fn a_token_that_was_sent_again_is_forgotten_as_gone() {
        let mut pressure = Pressure::new();
        pressure.on_gone(TokenHash(1), SECOND, SECOND);
        pressure.on_sent(TokenHash(1), 2 * SECOND);
        assert_eq!(pressure.recently_gone(TokenHash(1), 3 * SECOND), None);
        report(&mut pressure, 1, 70 * SECOND);
        assert_eq!(pressure.repeats.count(71 * SECOND), 0);
    }

    #[test]
    fn repeats_first_slow_the_instance_and_then_suspend_it() {
        let mut pressure = Pressure::new();
        let mut at = SECOND;
        for token in 0..4 {
            report(&mut pressure, token, at);
        }
        for repeat in 1..=REPEATS_SUSPEND {
            at += 15 * SECOND;
            let consequence = report(&mut pressure, (repeat % 4) as u128, at);
            assert_eq!(
                pressure.slowed(at + SECOND).is_some(),
                (REPEATS_SLOW..REPEATS_SUSPEND).contains(&repeat)
            );
            assert_eq!(consequence == Consequence::Suspend, repeat == REPEATS_SUSPEND);
        }
    }

    #[test]
    fn pushes_under_way_when_their_token_is_reported_are_no_repeats() {
        let mut pressure = Pressure::new();
        for nth in 0..300 {
            let consequence =
                pressure.on_gone(TokenHash(7), SECOND, 2 * SECOND + nth * Duration::from_millis(1));
            assert_eq!(consequence, Consequence::Nothing);
        }
        assert_eq!(pressure.slowed(3 * SECOND), None);
        assert_eq!(pressure.strangers.count(3 * SECOND), 1);
    }

    #[test]
    fn more_than_five_hundred_dead_strangers_an_hour_hold_only_pushes_to_strangers() {
        let mut pressure = Pressure::new();
        pressure.on_sent(TokenHash(9_999), SECOND);
        for token in 0..500 {
            assert_eq!(pressure.stranger_wait(TokenHash(10_000), 2 * SECOND), None);
            report(&mut pressure, token, SECOND);
        }
        let now = 2 * SECOND;
        let wait = pressure.stranger_wait(TokenHash(10_000), now).unwrap();
        assert_eq!(pressure.stranger_wait(TokenHash(9_999), now), None);
        assert_eq!(pressure.stranger_wait(TokenHash(10_000), now + wait), None);
        assert!(
            pressure
                .stranger_wait(TokenHash(10_000), now + wait - Duration::from_nanos(1))
                .is_some()
        );
        assert_eq!(
            pressure.slowed(now),
            None,
            "an honest first sweep never slows or suspends"
        );
    }

    #[test]
    fn a_good_token_that_dies_counts_as_nothing() {
        let mut pressure = Pressure::new();
        for token in 0..1_000 {
            pressure.on_sent(TokenHash(token), SECOND);
            report(&mut pressure, token, 2 * SECOND);
        }
        assert!(pressure.is_calm(3 * SECOND));
    }

    #[test]
    fn the_record_is_calm_again_after_an_hour_and_at_once_after_a_pardon() {
        let mut pressure = Pressure::new();
        report(&mut pressure, 1, SECOND);
        assert!(!pressure.is_calm(2 * SECOND));
        assert!(pressure.is_calm(HOUR + 2 * SECOND));
        pressure.pardon();
        assert!(pressure.is_calm(2 * SECOND));
    }
}
