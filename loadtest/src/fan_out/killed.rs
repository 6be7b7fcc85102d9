//! The fan-out's process is killed with SIGKILL at random moments and started again, until nothing is left to send.
//!
//! A caller whose process dies before [`FanOut::send`](sovereign_instance::fan_out::FanOut::send) returns can't know
//! whether the notification is accepted; here the outbox tells: what was only staged is nobody's, and the next process
//! sends again. From the moment that it is published, each next process only goes on.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{interval, sleep};

use super::{child::Start, figures::Figures, place::Place};
use crate::{
    instance::random,
    process::Process,
    report::{Row, say},
};

/// Looks whether it is time to kill.
const LOOKS: Duration = Duration::from_millis(1);
/// Then at most so much later, so that each step of a batch is met.
const LATER_MILLIS: u64 = 60;

/// What happened. Getting here means that every device has the notification once.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Met {
    devices: u64,
    before_published: u32,
    delivered_at_kills: Vec<u64>,
    last_seconds: f64,
}

/// Fails unless each device has got the notification exactly once.
pub(super) async fn until_settled(place: &Place, kills: u32, ahead: u64) -> anyhow::Result<Met> {
    let (mut start, mut clock) = (Start::Send, 0);
    let mut met = Met {
        devices: 0,
        before_published: 0,
        delivered_at_kills: Vec::new(),
        last_seconds: 0.0,
    };
    for kill in 1..=kills {
        if !kill_one(place, &place.fan_out(start, clock), kills - kill).await? {
            say("nothing was left before the last kill")?;
            break;
        }
        met.delivered_at_kills.push(place.delivered());
        clock += ahead;
        if start == Start::Send && place.delivered() == 0 && place.store.next_due().await?.is_none() {
            met.before_published += 1;
            continue;
        }
        start = Start::Resume;
    }
    met.last_seconds = Figures::of(&place.fan_out(start, clock)).await?.seconds;
    met.devices = place.delivered();
    place.each_has_one()?;
    Ok(met)
}

/// Whether it was killed; otherwise it had settled all.
async fn kill_one(place: &Place, arguments: &[String], kills_to_come: u32) -> anyhow::Result<bool> {
    let (mut process, _output) = Process::own(arguments)?;
    let is_first = place.delivered() == 0 && place.store.outbox_counts(0).await?.rows == 0;
    let share = place.left() / u64::from(kills_to_come + 1);
    let enough = place.delivered() + random_below(share);
    let mut looks = interval(LOOKS);
    loop {
        let has_begun = match is_first {
            // While it seals and stages.
            true => place.store.outbox_counts(0).await?.rows > 0,
            false => place.delivered() >= enough,
        };
        if has_begun {
            break;
        }
        if process.has_ended()? {
            return process.succeeded().await.map(|()| false);
        }
        looks.tick().await;
    }
    sleep(Duration::from_millis(random_below(LATER_MILLIS))).await;
    if process.has_ended()? {
        return process.succeeded().await.map(|()| false);
    }
    process.kill().await?;
    Ok(true)
}

fn random_below(bound: u64) -> u64 {
    let mut bytes = [0; 8];
    random(&mut bytes);
    u64::from_le_bytes(bytes) % bound.max(1)
}

impl Row for Met {
    const COLUMNS: &'static [&'static str] = &[
        "instance",
        "delivered when it was killed",
        "devices with one notification",
        "kills",
        "of these before it was accepted",
        "last process s",
    ];

    fn cells(&self) -> Vec<String> {
        let delivered: Vec<_> = self.delivered_at_kills.iter().map(u64::to_string).collect();
        vec![
            "fan-out".to_owned(),
            delivered.join(", "),
            self.devices.to_string(),
            self.delivered_at_kills.len().to_string(),
            self.before_published.to_string(),
            format!("{:.2}", self.last_seconds),
        ]
    }
}
