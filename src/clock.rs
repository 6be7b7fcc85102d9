//! The system's clocks, behind the port. One of the two files that may ask the system.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the adapter that the ban points to"
)]

use std::time::{SystemTime, UNIX_EPOCH};

use sovereign_relay_actors::{now::Now, ports::Clock};
use sovereign_relay_protocol::time::UnixMillis;

/// Tokio's monotonic clock (so that a paused test clock counts) and the system's wall clock.
pub struct SystemClock {
    start: tokio::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> Self {
        Self {
            start: tokio::time::Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix = UnixMillis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX));
        Now {
            mono: self.start.elapsed(),
            unix,
        }
    }
}
