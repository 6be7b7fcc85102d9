//! How long a push waits, and for which limit: what a refusal tells its caller.
//!
//! Of several limits that refuse one push, the one whose wait is longest is named: when that is over, the push passes.

use std::time::Duration;

/// A limit of pushes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Limit {
    /// Pushes of one instance at the same time.
    UnderWay,
    /// Pushes of one instance.
    Instance,
    /// Pushes of the young instances of one address, together.
    Group,
    /// Pushes to one device.
    Device,
    /// What is left of an instance's rate after many pushes to devices that it was told are gone.
    Slowed,
    /// Pushes to devices that never took one, after many that were gone.
    Strangers,
}

/// When a push would pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wait {
    /// From now on.
    pub time: Duration,
    /// What refuses it that long.
    pub limit: Limit,
}

impl Limit {
    /// The wait for this limit.
    pub fn wait(self, time: Duration) -> Wait {
        Wait { time, limit: self }
    }
}
