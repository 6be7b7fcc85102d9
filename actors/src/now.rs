//! The time, as an argument.

use std::time::Duration;

use sovereign_relay_protocol::time::UnixMillis;

/// One moment on both clocks. Durations and limits are computed on `mono`, anything told to others from `unix`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Since an arbitrary start; never goes back.
    pub mono: Duration,
    /// Wall clock.
    pub unix: UnixMillis,
}

impl Now {
    /// This moment plus `duration`, for tests and for computing deadlines.
    pub fn plus(self, duration: Duration) -> Self {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            mono: self.mono.saturating_add(duration),
            unix: self.unix.plus_millis(millis),
        }
    }

    /// Time left until `deadline` on the monotonic clock; zero when it is past.
    pub fn until(self, deadline: Duration) -> Duration {
        deadline.saturating_sub(self.mono)
    }
}
