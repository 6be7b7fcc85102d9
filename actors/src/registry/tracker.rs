//! Counts what has to end before the registry may close.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Notify;

/// A count of things under way. Clones are the same count.
#[derive(Clone, Default)]
pub(crate) struct Tracker {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    count: AtomicUsize,
    none_left: Notify,
}

/// One thing under way, over when dropped.
pub(crate) struct Tracked {
    inner: Arc<Inner>,
}

impl Tracker {
    /// One more.
    pub(crate) fn enter(&self) -> Tracked {
        self.inner.count.fetch_add(1, Ordering::SeqCst);
        Tracked {
            inner: self.inner.clone(),
        }
    }

    /// How many are under way.
    pub(crate) fn count(&self) -> usize {
        self.inner.count.load(Ordering::SeqCst)
    }

    /// Waits until nothing is.
    pub(crate) async fn none_left(&self) {
        loop {
            let notified = self.inner.none_left.notified();
            if self.count() == 0 {
                return;
            }
            notified.await;
        }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if self.inner.count.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.inner.none_left.notify_waiters();
        }
    }
}
