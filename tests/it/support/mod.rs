//! The kit: a relay process, the simulators it talks to, devices that open what they get.

pub mod answer;
pub mod caddy;
pub mod clock;
pub mod command;
pub mod cutter;
pub mod device;
#[path = "../../../src/http/tests/documented.rs"]
mod documented;
pub mod fleet;
pub mod grown;
pub mod in_process;
pub mod log;
pub mod peer;
pub mod programs;
pub mod raw;
#[path = "../../../src/store/redis/kit.rs"]
#[allow(dead_code, reason = "frozen clocks are for the store's own tests")]
pub mod redis;
pub mod relay;
pub mod secret_change;
pub mod sessions;
pub mod talk;
pub mod turn_client;
pub mod turn_server;
pub mod upstream;
pub mod world;

use std::time::Duration;

/// How long a test waits for an event before it calls it missing. Generous, since machines are busy; nothing waits
/// this long when all is well.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// How often a condition of another process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Waits until a condition holds that nobody tells of: a gauge of the relay, a count of a simulator.
pub async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let waiting = async {
        while !holds().await {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, waiting).await;
    assert!(waited.is_ok(), "in vain: {what}");
}
