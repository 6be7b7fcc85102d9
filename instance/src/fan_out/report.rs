//! What became of a fan-out, in numbers.

use uuid::Uuid;

use crate::store::Outcome;

/// How many devices and browsers met what by the time [`FanOut::send`](super::FanOut::send) returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// As in the delivery log.
    pub notification_id: Uuid,
    /// The provider or push service has it.
    pub sent: usize,
    /// Gone; their registrations were removed.
    pub pruned: usize,
    /// Called gone, but registered again since: kept, and not told of this.
    pub kept: usize,
    /// Will never get it.
    pub failed: usize,
    /// In the outbox: the worker tries again.
    pub waiting: usize,
    /// Given up because it was only worth something at once.
    pub expired: usize,
    /// Not sent: the relay is off, too much waits already, or the device is somebody else's by now.
    pub dropped: usize,
}

impl Report {
    pub(super) fn new(notification_id: Uuid) -> Self {
        Self {
            notification_id,
            sent: 0,
            pruned: 0,
            kept: 0,
            failed: 0,
            waiting: 0,
            expired: 0,
            dropped: 0,
        }
    }

    /// Devices and browsers that it is about.
    pub fn targets(&self) -> usize {
        self.sent + self.pruned + self.kept + self.failed + self.waiting + self.expired + self.dropped
    }

    pub(super) fn add(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            let count = match outcome {
                Outcome::Sent => &mut self.sent,
                Outcome::Gone | Outcome::Pruned => &mut self.pruned,
                Outcome::Kept => &mut self.kept,
                Outcome::Failed => &mut self.failed,
                Outcome::Retrying => &mut self.waiting,
                Outcome::Expired => &mut self.expired,
                Outcome::Dropped => &mut self.dropped,
            };
            *count += 1;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.pruned += other.pruned;
        self.kept += other.kept;
        self.failed += other.failed;
        self.waiting += other.waiting;
        self.expired += other.expired;
        self.dropped += other.dropped;
    }
}
