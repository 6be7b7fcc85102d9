//! How much of a provider's capacity is used after it asked everybody to slow down.
//!
//! The lane asks [`Pace::allowed`] how many calls may be under way. A project-wide throttle halves what was under
//! way; each call that is answered well earns a little back, like TCP's congestion window, and never faster than
//! full capacity in a minute, which is the ramp that FCM's scaling guide asks for.
//!
//! ```text
//!   Full --- throttled: half of the calls under way ---> Reduced --- throttled again: half of it
//!    ^                                                    |  ^
//!    |--- grown to the capacity, or quiet for long -------'  `--- each success: a little more
//! ```

use std::time::Duration;

/// From nothing to full capacity, at least. FCM: "ramp up over at least 60 seconds".
const RAMP: Duration = Duration::from_secs(60);
/// A throttle that was so long ago says nothing of now.
const FORGOTTEN: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(super) enum Pace {
    /// As the provider's capacity says.
    Full,
    /// Fewer calls.
    Reduced {
        /// Calls that may be under way; parts of a call add up.
        window: f64,
        /// When it was last made smaller.
        cut_at: Duration,
        /// When it last grew.
        grown_at: Duration,
    },
}

impl Pace {
    /// Calls that may be under way, at least one.
    pub(super) fn allowed(&mut self, capacity: usize, now: Duration) -> usize {
        let capacity = capacity.max(1);
        let Self::Reduced { window, cut_at, .. } = *self else {
            return capacity;
        };
        if window >= as_calls(capacity) || now.saturating_sub(cut_at) >= FORGOTTEN {
            *self = Self::Full;
            return capacity;
        }
        whole_calls(window).min(capacity)
    }

    /// A project-wide throttle of a call that began at `began`, with `under_way` calls at the time. The answers
    /// to calls that began before the last cut are news of the same jam and cut nothing again.
    pub(super) fn throttled(&mut self, under_way: usize, began: Duration, now: Duration) {
        let window = match *self {
            Self::Full => as_calls(under_way),
            Self::Reduced { cut_at, .. } if began <= cut_at => return,
            Self::Reduced { window, .. } => window.min(as_calls(under_way)),
        };
        *self = Self::Reduced {
            window: (window / 2.0).max(1.0),
            cut_at: now,
            grown_at: now,
        };
    }

    /// A call was answered well.
    pub(super) fn succeeded(&mut self, capacity: usize, now: Duration) {
        let Self::Reduced { window, grown_at, .. } = self else {
            return;
        };
        let elapsed = now.saturating_sub(*grown_at).as_secs_f64();
        let ramp = as_calls(capacity) * elapsed / RAMP.as_secs_f64();
        *window += ramp.min(1.0 / *window);
        *grown_at = now;
    }
}

fn as_calls(calls: usize) -> f64 {
    f64::from(u32::try_from(calls).unwrap_or(u32::MAX))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at least 1 and below the capacity"
)]
fn whole_calls(window: f64) -> usize {
    window as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_burst_of_throttled_answers_halves_once() {
        let mut pace = Pace::Full;
        for under_way in (1..=100).rev() {
            pace.throttled(under_way, s(1), s(2));
        }
        assert_eq!(pace.allowed(1_000, s(2)), 50);
        pace.throttled(50, s(3), s(4));
        assert_eq!(pace.allowed(1_000, s(4)), 25);
    }

    #[test]
    fn it_grows_with_successes_and_takes_a_minute_to_the_full_capacity() {
        let mut pace = Pace::Full;
        pace.throttled(2, s(0), s(0));
        let mut full_after = None;
        for millis in 1..200_000_u64 {
            let now = Duration::from_millis(millis);
            for _ in 0..100 {
                pace.succeeded(100, now);
            }
            if full_after.is_none() && pace.allowed(100, now) == 100 {
                full_after = Some(now);
            }
        }
        assert!(
            full_after.is_some_and(|after| after >= s(59) && after < s(90)),
            "{full_after:?}"
        );
    }

    #[test]
    fn without_successes_it_stays_reduced_until_the_throttle_is_forgotten() {
        let mut pace = Pace::Full;
        pace.throttled(64, s(0), s(0));
        assert_eq!(pace.allowed(100, s(599)), 32);
        assert_eq!(pace.allowed(100, s(600)), 100);
    }

    proptest! {
        #[test]
        fn at_least_one_and_never_more_than_the_capacity(
            events in proptest::collection::vec((any::<bool>(), 0..500_usize, 0..20_000_u64), 0..200),
            capacity in 0..300_usize,
        ) {
            let (mut pace, mut now) = (Pace::Full, Duration::ZERO);
            for (throttled, under_way, millis) in events {
                let began = now;
                now += Duration::from_millis(millis);
                if throttled { pace.throttled(under_way, began, now) } else { pace.succeeded(capacity, now) }
                let allowed = pace.allowed(capacity, now);
                prop_assert!((1..=capacity.max(1)).contains(&allowed));
            }
        }
    }
}
