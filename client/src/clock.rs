//! The time, for a core that takes it as an argument. The one place of this crate that asks the system.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the adapter that the ban points to"
)]

use std::time::Duration;

use tokio::time::Instant;

/// Tokio's monotonic clock, so that a paused test clock counts.
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock whose time starts now.
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// Since the start.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// The moment that [`Clock::now`] will call `at`.
    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.start + at
    }
}
