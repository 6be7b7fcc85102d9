//! How fast one user may register: a bucket per user that refills steadily (GCRA, with one number per user).
//!
//! Apps register when they start and when their provider gives them a new token. What goes faster than a person with
//! many devices is a loop, and each turn of it is a write to the database. The bucket is this process's own: two
//! processes let twice as much through, which bounds a loop just as well.

use std::{collections::HashMap, time::Duration};

use crate::user::User;

/// Registrations that may come at once: somebody signs in on a household of devices.
pub(crate) const BURST: u32 = 20;
/// After that, one each.
pub(crate) const INTERVAL: Duration = Duration::from_secs(6);
/// Users remembered, about 100 bytes each. Each is forgotten once its bucket is full again, after two minutes at most.
const USERS: usize = 100_000;

/// The buckets. Times are milliseconds of one clock.
#[derive(Default)]
pub(crate) struct Pace {
    /// When the user's bucket will be full again.
    full_at: HashMap<User, u64>,
}

impl Pace {
    /// Takes one registration, or says how many seconds until one would pass.
    pub(crate) fn take(&mut self, user: &User, now_ms: u64) -> Result<(), u64> {
        let interval = millis(INTERVAL);
        let kept = self.full_at.get(user).copied();
        let full_at = kept.filter(|full_at| fills(*full_at, now_ms)).unwrap_or(now_ms);
        let room_for_one = now_ms + interval * u64::from(BURST - 1);
        if full_at > room_for_one {
            return Err((full_at - room_for_one).div_ceil(1000));
        }
        self.make_room(user, now_ms)?;
        self.full_at.insert(user.clone(), full_at + interval);
        Ok(())
    }

    /// When too many are remembered, those whose buckets are full are forgotten; if none is, a new user waits.
    fn make_room(&mut self, user: &User, now_ms: u64) -> Result<(), u64> {
        if self.full_at.len() < USERS || self.full_at.contains_key(user) {
            return Ok(());
        }
        self.full_at.retain(|_, full_at| fills(*full_at, now_ms));
        if self.full_at.len() < USERS {
            Ok(())
        } else {
            Err(INTERVAL.as_secs())
        }
    }
}

/// Whether a bucket that will be full at that time is still filling. What would take longer than from empty was written
/// while the clock was ahead.
fn fills(full_at: u64, now_ms: u64) -> bool {
    full_at > now_ms && full_at <= now_ms + millis(INTERVAL) * u64::from(BURST)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn user(id: &str) -> User {
        User::new(id)
    }

    #[test]
    fn a_burst_passes_then_one_each_interval_and_users_do_not_share() {
        let mut pace = Pace::default();
        for _ in 0..BURST {
            assert_eq!(pace.take(&user("a"), 1_000), Ok(()));
        }
        assert_eq!(pace.take(&user("a"), 1_000), Err(INTERVAL.as_secs()));
        assert_eq!(pace.take(&user("a"), 2_500), Err(5));
        assert_eq!(pace.take(&user("b"), 2_500), Ok(()));
        assert_eq!(pace.take(&user("a"), 7_000), Ok(()));
        assert_eq!(pace.take(&user("a"), 7_000), Err(INTERVAL.as_secs()));
    }

    #[test]
    fn a_full_memory_forgets_who_has_rested_and_turns_away_a_stranger_otherwise() {
        let mut pace = Pace::default();
        for number in 0..USERS {
            assert_eq!(pace.take(&user(&number.to_string()), 0), Ok(()));
        }
        assert_eq!(pace.take(&user("stranger"), 0), Err(INTERVAL.as_secs()));
        assert_eq!(pace.take(&user("0"), 0), Ok(()));
        assert_eq!(pace.take(&user("stranger"), millis(INTERVAL)), Ok(()));
        assert_eq!(pace.full_at.len(), 2);
    }

    #[test]
    fn a_clock_that_was_ahead_keeps_nobody_out() {
        let mut pace = Pace::default();
        for _ in 0..BURST {
            assert_eq!(pace.take(&user("a"), 1_000_000_000), Ok(()));
        }
        for _ in 0..BURST {
            assert_eq!(pace.take(&user("a"), 1_000), Ok(()));
        }
        assert_eq!(pace.take(&user("a"), 1_000), Err(INTERVAL.as_secs()));
    }

    proptest! {
        #[test]
        fn waiting_as_long_as_told_is_enough(steps in proptest::collection::vec(0u64..20_000, 1..100)) {
            let (mut pace, mut now) = (Pace::default(), 0);
            for step in steps {
                now += step;
                if let Err(seconds) = pace.take(&user("a"), now) {
                    now += seconds * 1000;
                    prop_assert_eq!(pace.take(&user("a"), now), Ok(()));
                }
            }
        }
    }
}
