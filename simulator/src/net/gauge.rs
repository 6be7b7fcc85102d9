//! How many requests are under way at a time, and how many there ever were.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// A count with a high-water mark. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    current: AtomicU64,
    highest: AtomicU64,
}

/// One unit; gives itself back.
pub(crate) struct Held {
    shared: Arc<Shared>,
}

impl Gauge {
    pub(crate) fn hold(&self) -> Held {
        let now = self
            .shared
            .current
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        self.shared.highest.fetch_max(now, Ordering::Relaxed);
        Held {
            shared: Arc::clone(&self.shared),
        }
    }

    pub(crate) fn current(&self) -> u64 {
        self.shared.current.load(Ordering::Relaxed)
    }

    pub(crate) fn highest(&self) -> u64 {
        self.shared.highest.load(Ordering::Relaxed)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.current.fetch_sub(1, Ordering::Relaxed);
    }
}
