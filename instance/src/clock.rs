//! The time, for a core that takes it as an argument. The one place of this crate that asks the system.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the adapter that the ban points to"
)]

use std::{fmt, sync::Arc, time::SystemTime};

use sovereign_relay_protocol::time::UnixMillis;

/// Tells the time. The system's, unless a test brings its own.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> UnixMillis + Send + Sync>);

impl Clock {
    /// The system's time.
    pub fn system() -> Self {
        Self::new(system_time)
    }

    /// Whatever `now` says.
    pub fn new(now: impl Fn() -> UnixMillis + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Now.
    pub fn now(&self) -> UnixMillis {
        (self.0)()
    }

    /// Now, in whole seconds, as the store keeps it.
    pub fn seconds(&self) -> u64 {
        self.now().seconds()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A clock set before 1970 counts as 1970.
fn system_time() -> UnixMillis {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
}
