//! The simulators' clock: the machine's, plus an offset that a test moves to live through hours in an instant.
//!
//! Called by every simulator; JWT and OAuth lifetimes are judged by it.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Wall clock with an offset. Shared by all simulators of one [`crate::Simulators`].
#[derive(Debug, Default)]
pub struct SimulatorClock {
    offset_millis: AtomicI64,
}

impl SimulatorClock {
    /// Milliseconds since 1970, offset included.
    pub fn unix_millis(&self) -> i64 {
        system_unix_millis().saturating_add(self.offset_millis.load(Ordering::Relaxed))
    }

    /// Seconds since 1970, offset included.
    pub fn unix_seconds(&self) -> i64 {
        self.unix_millis().div_euclid(1000)
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.offset_millis.fetch_add(millis, Ordering::Relaxed);
    }

    /// Sets the clock: from here it runs on at the machine's pace.
    pub fn set_unix_millis(&self, unix_millis: i64) {
        self.offset_millis.store(
            unix_millis.saturating_sub(system_unix_millis()),
            Ordering::Relaxed,
        );
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the one place of this crate that asks the system for the time"
)]
fn system_unix_millis() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_clock_stays_moved_and_can_be_set() {
        let clock = SimulatorClock::default();
        clock.set_unix_millis(1_000_000);
        assert!((1_000..1_060).contains(&clock.unix_seconds()));
        clock.advance(Duration::from_secs(3600));
        assert!((4_600..4_660).contains(&clock.unix_seconds()));
    }
}
