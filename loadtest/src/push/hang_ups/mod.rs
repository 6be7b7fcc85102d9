//! `push --hang-ups`: whether anything stays behind in the relay of pushes whose callers hang up.
//!
//! ```text
//! warm-up pushes -> rest -> look        the other pushes -> rest -> look
//! look: resident memory, open files, pushes under way
//! ```
//!
//! Looked at is the relay at rest: no caller is connected, and what lives for seconds is over. What it remembers for
//! longer by design, each within a bound, has met its bound in the warm-up (see [`targets`](super::targets)), so that
//! what grows after that is a leak.

mod judge;
mod load;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{bail, ensure};
use serde::Serialize;
use sovereign_relay_simulator::Behaviour;
use tokio::time::sleep;

use self::{
    judge::{Look, faults},
    load::{HangUps, Pushes, Tally},
};
use super::{
    Place,
    targets::{LARGE, ORDINARY, apple_token, of_two_kinds},
    through::{Devices, Through, keys},
};
use crate::{
    instance::random,
    report::{self, Row},
    run,
};

/// Time for callers to hang up in.
const ANSWER_AFTER: Duration = Duration::from_millis(5);
/// More than any instance comes to.
const PER_MINUTE: (&str, &str) = ("RELAY_PUSHES_PER_MINUTE", "1000000");
/// At rest, what lasts longest is a round of the actors' cleaning (20 s), and then the allocator returns memory (10 s).
const REST: Duration = Duration::from_secs(40);
/// For pushes under way: the relay's deadline is 10 s.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOKS: Duration = Duration::from_millis(100);

/// What only `--hang-ups` needs.
#[derive(clap::Args)]
#[group(skip)]
pub(super) struct Options {
    /// The share of pushes whose callers hang up at a random moment before the answer; fails when memory grows, files
    /// stay open or pushes stay under way
    #[arg(long = "hang-ups", value_name = "SHARE")]
    pub(super) share: Option<f64>,
    /// With --hang-ups: pushes, those of the warm-up among them
    #[arg(long, default_value_t = 1_000_000)]
    count: u64,
    /// With --hang-ups: pushes before the first look. Fewer than 200,000 leave room in memories that are bounded
    #[arg(long, default_value_t = 200_000)]
    warm_up: u64,
    /// With --hang-ups: by how many per cent memory must not grow
    #[arg(long, default_value_t = 5.0)]
    growth: f64,
}

/// Pushes, looks and judges.
pub(super) async fn run(share: f64, options: &super::Options) -> anyhow::Result<()> {
    let own = &options.hang_ups;
    ensure!((0.0..=1.0).contains(&share), "--hang-ups is a share, from 0 to 1");
    ensure!(own.warm_up < own.count, "--count must be more than --warm-up");
    let place = Place::start(&[PER_MINUTE]).await?;
    let through = Arc::new(through(&place)?);
    let load = HangUps::new(Arc::clone(&through), share, ANSWER_AFTER);
    let mut rows = Vec::new();
    for (moment, pushes) in [
        ("after the warm-up", 0..own.warm_up),
        ("at the end", own.warm_up..own.count),
    ] {
        let tally = load.push(pushes, options.callers).await?;
        through.close();
        let look = look(&place).await?;
        rows.push(Moment { moment, tally, look });
    }
    report::print(&rows, options.json)?;
    place.stop().await;
    judge(&rows, own.growth)
}

fn through(place: &Place) -> anyhow::Result<Through> {
    let slow = Behaviour::accept().after(ANSWER_AFTER);
    place.simulators.apns.script().always(slow);
    let devices = Devices {
        platform: "ios",
        target: of_two_kinds,
        token: Box::new(apple_token),
    };
    Through::new(&place.relay, keys(&place.secret, ORDINARY + LARGE)?, devices)
}

fn judge(rows: &[Moment], most_growth: f64) -> anyhow::Result<()> {
    let [first, last] = rows else {
        bail!("there are not two looks");
    };
    report::say(&format!(
        "resident memory at rest grew by {:.1} %; less than {most_growth} % is let pass",
        last.look.growth_since(&first.look)
    ))?;
    let failed = first.tally.failed + last.tally.failed;
    let faults = faults(&first.look, &last.look, failed, most_growth);
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    Ok(())
}

/// At rest.
async fn look(place: &Place) -> anyhow::Result<Look> {
    let (relay, until) = (&place.relay, run::now() + PATIENCE);
    let in_flight = || relay.metric("relay_pushes_in_flight");
    while in_flight().await? > 0.0 && run::now() < until {
        sleep(LOOKS).await;
    }
    sleep(REST).await;
    Ok(Look {
        resident_kib: relay.process.resident_kib()?,
        open_files: relay.process.open_files()?,
        in_flight: in_flight().await?,
    })
}

impl Pushes for Through {
    fn request(&self, number: u64) -> anyhow::Result<Vec<u8>> {
        Self::request(self, number)
    }

    fn relay(&self) -> anyhow::Result<SocketAddr> {
        self.address()
    }
}

/// What was done until then, and what is left of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Moment {
    moment: &'static str,
    #[serde(flatten)]
    tally: Tally,
    #[serde(flatten)]
    look: Look,
}

impl Row for Moment {
    const COLUMNS: &'static [&'static str] = &[
        "target",
        "moment",
        "sent",
        "failed",
        "hung up",
        "of these before the answer",
        "RSS MiB",
        "open files",
        "pushes in flight",
    ];

    fn cells(&self) -> Vec<String> {
        let Self { moment, tally, look } = self;
        vec![
            "relay".to_owned(),
            (*moment).to_owned(),
            tally.sent.to_string(),
            tally.failed.to_string(),
            tally.hung_up.to_string(),
            tally.before_the_answer.to_string(),
            format!("{:.1}", look.resident_kib as f64 / 1024.0),
            look.open_files.to_string(),
            look.in_flight.to_string(),
        ]
    }
}
