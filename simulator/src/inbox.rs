//! What arrived: a bounded record that tests read and wait on.
//!
//! Each simulator has two: `inbox()` is what devices got, `requests()` is every notification request that came in,
//! refused ones too. Flow: a handler records, which wakes every waiter. Invariant: `total` counts all, whether it
//! was kept or not; what did not fit is counted in `dropped`, never silently lost.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::sync::lock;

/// A bounded, waitable record of things that arrived, in order of arrival.
#[derive(Debug)]
pub struct Inbox<T> {
    state: Mutex<State<T>>,
    total: watch::Sender<u64>,
    recording: AtomicBool,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    items: Vec<T>,
    dropped: u64,
}

/// Fewer things arrived by the deadline than were waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("only {arrived} of {wanted} arrived within {deadline_ms} ms")]
pub struct InboxTimeout {
    /// How many were waited for.
    pub wanted: usize,
    /// How many had arrived.
    pub arrived: u64,
    /// How long the wait was.
    pub deadline_ms: u128,
}

impl<T: Clone> Inbox<T> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                items: Vec::new(),
                dropped: 0,
            }),
            total: watch::Sender::new(0),
            recording: AtomicBool::new(true),
            capacity,
        }
    }

    /// Everything kept since the last [`Inbox::clear`], oldest first.
    pub fn all(&self) -> Vec<T> {
        lock(&self.state).items.clone()
    }

    /// How many arrived since the last [`Inbox::clear`], kept or not.
    pub fn total(&self) -> u64 {
        *self.total.borrow()
    }

    /// How many arrived while recording and did not fit.
    pub fn dropped(&self) -> u64 {
        lock(&self.state).dropped
    }

    /// Waits until `count` have arrived since the last [`Inbox::clear`] and returns what is kept.
    pub async fn wait_for(&self, count: usize, deadline: Duration) -> Result<Vec<T>, InboxTimeout> {
        let wanted = u64::try_from(count).unwrap_or(u64::MAX);
        let mut total = self.total.subscribe();
        // What the channel lends is given back before the state is locked: a recorder locks the two the other way round.
        let arrival = async { drop(total.wait_for(|total| *total >= wanted).await) };
        match tokio::time::timeout(deadline, arrival).await {
            Ok(()) => Ok(self.all()),
            Err(_) => Err(InboxTimeout {
                wanted: count,
                arrived: self.total(),
                deadline_ms: deadline.as_millis(),
            }),
        }
    }

    /// Forgets everything, counters too.
    pub fn clear(&self) {
        let mut state = lock(&self.state);
        state.items = Vec::new();
        state.dropped = 0;
        self.total.send_replace(0);
    }

    /// Switched off, arrivals are counted and not kept, so that memory stays flat under load.
    pub fn set_recording(&self, recording: bool) {
        self.recording.store(recording, Ordering::Relaxed);
    }

    /// `item` is made only while recording.
    pub(crate) fn record(&self, item: impl FnOnce() -> T) {
        let mut state = lock(&self.state);
        if self.recording.load(Ordering::Relaxed) {
            if state.items.len() < self.capacity {
                state.items.push(item());
            } else {
                state.dropped = state.dropped.saturating_add(1);
            }
        }
        self.total.send_modify(|total| *total = total.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_waiter_is_woken_by_the_arrival_it_waits_for() {
        let inbox = Inbox::new(10);
        let arrivals = async {
            inbox.record(|| 1);
            tokio::task::yield_now().await;
            inbox.record(|| 2);
        };
        let (found, ()) = tokio::join!(inbox.wait_for(2, Duration::from_secs(5)), arrivals);
        assert_eq!(found.unwrap(), [1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_in_vain_ends_at_its_deadline_and_says_how_many_came() {
        let inbox = Inbox::new(10);
        inbox.record(|| 1);
        let timeout = inbox.wait_for(2, Duration::from_secs(3)).await.unwrap_err();
        assert_eq!(
            timeout,
            InboxTimeout {
                wanted: 2,
                arrived: 1,
                deadline_ms: 3000
            }
        );
    }

    #[test]
    fn what_does_not_fit_is_counted_and_clear_starts_anew() {
        let inbox = Inbox::new(2);
        for number in 1..=5 {
            inbox.record(|| number);
        }
        assert_eq!((inbox.all(), inbox.total(), inbox.dropped()), (vec![1, 2], 5, 3));
        inbox.clear();
        assert_eq!((inbox.all(), inbox.total(), inbox.dropped()), (vec![], 0, 0));
    }

    #[test]
    fn without_recording_arrivals_are_only_counted() {
        let inbox = Inbox::new(2);
        inbox.set_recording(false);
        inbox.record(|| 1);
        assert_eq!((inbox.all(), inbox.total(), inbox.dropped()), (vec![], 1, 0));
    }
}
