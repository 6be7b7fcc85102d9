//! Who holds how much: sessions and mailbox bytes for each instance, and together.
//!
//! A mailbox's bytes are the sender's, so that nobody can fill another's budget. When all mailboxes together are full,
//! the heaviest instances are refused first: those over an equal share.

use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use sovereign_relay_protocol::id::InstanceId;

use super::SessionBounds;

/// The books.
pub(super) struct Usage {
    bounds: SessionBounds,
    instances: DashMap<InstanceId, Held>,
    total: AtomicUsize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Held {
    sessions: u32,
    bytes: usize,
}

impl Usage {
    pub(super) fn new(bounds: SessionBounds) -> Self {
        Self {
            bounds,
            instances: DashMap::new(),
            total: AtomicUsize::new(0),
        }
    }

    /// Whether all mailboxes together hold as much as they may.
    pub(super) fn is_full(&self) -> bool {
        self.total.load(Ordering::Relaxed) >= self.bounds.total_bytes
    }

    /// Counts a session for an instance, if it may have one more.
    pub(super) fn open(&self, instance: InstanceId) -> bool {
        let mut may = false;
        self.change(instance, |held| {
            may = held.sessions < self.bounds.sessions_per_instance;
            held.sessions += u32::from(may);
        });
        may
    }

    /// A session of an instance is over.
    pub(super) fn close(&self, instance: InstanceId) {
        self.change(instance, |held| held.sessions = held.sessions.saturating_sub(1));
    }

    /// Whether an instance may let so many bytes more wait.
    pub(super) fn has_room(&self, instance: InstanceId, bytes: usize) -> bool {
        let own = self.instances.get(&instance).map_or(0, |held| held.bytes);
        let own = own.saturating_add(bytes);
        let total = self.total.load(Ordering::Relaxed).saturating_add(bytes);
        let bounds = &self.bounds;
        if own > bounds.instance_bytes {
            return false;
        }
        if total <= bounds.total_bytes {
            return true;
        }
        // A quarter more is kept for the light ones; then nobody's pass.
        let hard_bound = bounds.total_bytes.saturating_add(bounds.total_bytes / 4);
        let equal_share = bounds.total_bytes / self.instances.len().max(1);
        total <= hard_bound && own <= equal_share
    }

    /// So many bytes of an instance wait.
    pub(super) fn add(&self, instance: InstanceId, bytes: usize) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
        self.change(instance, |held| held.bytes += bytes);
    }

    /// They don't any more.
    pub(super) fn free(&self, instance: InstanceId, bytes: usize) {
        self.total.fetch_sub(bytes, Ordering::Relaxed);
        self.change(instance, |held| held.bytes = held.bytes.saturating_sub(bytes));
    }

    /// Bytes in all mailboxes.
    pub(super) fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Instances that hold anything.
    #[cfg(test)]
    pub(super) fn instances(&self) -> usize {
        self.instances.len()
    }

    fn change(&self, instance: InstanceId, change: impl FnOnce(&mut Held)) {
        change(&mut self.instances.entry(instance).or_default());
        self.instances
            .remove_if(&instance, |_, held| *held == Held::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instance(number: u8) -> InstanceId {
        InstanceId::from_bytes([number; 16])
    }

    fn usage(instance_bytes: usize, total_bytes: usize) -> Usage {
        Usage::new(SessionBounds {
            sessions_per_instance: 2,
            instance_bytes,
            total_bytes,
        })
    }

    #[test]
    fn an_instance_has_so_many_sessions_and_another_as_many() {
        let usage = usage(10, 10);
        assert_eq!([(); 3].map(|()| usage.open(instance(1))), [true, true, false]);
        assert!(usage.open(instance(2)));
        usage.close(instance(1));
        assert!(usage.open(instance(1)));
        for (number, sessions) in [(1, 2), (2, 1)] {
            (0..sessions).for_each(|_| usage.close(instance(number)));
        }
        assert!(usage.instances.is_empty());
    }

    #[test]
    fn a_full_instance_is_refused_and_its_neighbour_is_not() {
        let usage = usage(100, 1000);
        usage.add(instance(1), 100);
        assert!(!usage.has_room(instance(1), 1) && usage.has_room(instance(2), 100));
        usage.free(instance(1), 1);
        assert!(usage.has_room(instance(1), 1));
    }

    #[test]
    fn when_all_is_full_the_heaviest_are_refused_and_the_light_ones_go_on_for_a_while() {
        let usage = usage(1000, 1000);
        usage.add(instance(1), 950);
        usage.add(instance(2), 50);
        assert!(usage.is_full());
        assert!(!usage.has_room(instance(1), 1) && usage.has_room(instance(2), 100));
        usage.add(instance(2), 250);
        assert!(!usage.has_room(instance(2), 1), "the hard bound");
        usage.free(instance(1), 950);
        assert!(!usage.is_full() && usage.has_room(instance(1), 1));
    }
}
