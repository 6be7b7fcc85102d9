//! The threads that a registry's actors run on, stopped once: by the registry that closes, or with the last of its clones.

use std::sync::{Mutex, PoisonError};

use actix::Arbiter;

/// The arbiters of one registry.
pub(crate) struct Arbiters(Mutex<Vec<Arbiter>>);

impl Arbiters {
    pub(crate) fn new(arbiters: Vec<Arbiter>) -> Self {
        Self(Mutex::new(arbiters))
    }

    /// All that were not taken before, stopped.
    pub(crate) fn take(&self) -> Vec<Arbiter> {
        let arbiters = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for arbiter in &arbiters {
            // One that has stopped already is fine.
            let _ = arbiter.stop();
        }
        arbiters
    }
}

impl Drop for Arbiters {
    fn drop(&mut self) {
        // A registry that was never closed ends its threads all the same.
        self.take();
    }
}
