//! Time in the test's hands, for relays in this process: budgets refill and patience ends when the test says so,
//! however slow the machine is.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use sovereign_relay::{app::Ports, clock::SystemClock};
use sovereign_relay_actors::{now::Now, ports::Clock};

/// Stands still unless it is put forward.
pub struct HandClock(Mutex<Now>);

impl HandClock {
    /// It shows what the system's shows now.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(SystemClock::new().now())))
    }

    pub fn advance(&self, time: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = now.plus(time);
    }

    /// Of a relay that goes by it.
    pub fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            clock: self.clone(),
            ..Ports::default()
        }
    }
}

impl Clock for HandClock {
    fn now(&self) -> Now {
        *self.0.lock().unwrap()
    }
}
