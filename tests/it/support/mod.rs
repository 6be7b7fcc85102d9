//! The kit: a relay process, the simulators it talks to, devices that open what they get.

pub mod device;
pub mod relay;
pub mod world;

use std::time::Duration;

/// How long a test waits for an event before it calls it missing. Generous, since machines are busy; nothing waits
/// this long when all is well.
pub const DEADLINE: Duration = Duration::from_secs(30);
