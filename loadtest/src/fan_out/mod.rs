//! `instance`: a notification for all devices of one user, through an instance's store and outbox, beside a bare loop
//! that seals and posts the same and keeps nothing.
//!
//! ```text
//! place: simulators, a relay, a database with the devices, the instance's limit raised as its operator would
//! bare loop | fan-out, each in a process of its own   -> wall time, processor time, memory
//! --kills: the fan-out's process is killed, again and again -> whether each device has it exactly once
//! ```

mod bare;
mod child;
mod figures;
mod killed;
mod place;
mod work;

use anyhow::bail;
use serde::Serialize;

use self::{figures::Figures, place::Place};
use crate::report::{self, Row};

/// `instance`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Devices of the user, half of them iOS and half Android
    #[arg(long, default_value_t = 10_000)]
    devices: usize,
    /// Times that each is measured, in turn
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Kills the fan-out's process with SIGKILL so many times, and looks whether each device has the notification once;
    /// nothing is measured
    #[arg(long, default_value_t = 0)]
    kills: u32,
    /// With --kills: seconds that each process's clock is ahead of the one's before it. More than 300, and nobody waits
    /// for the leases of the dead; 0 waits
    #[arg(long, default_value_t = 301)]
    ahead: u64,
    /// An empty PostgreSQL database, `postgres://...`, instead of SQLite in a directory of its own
    #[arg(long)]
    database: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// The two processes of this program that are measured.
#[derive(clap::Subcommand)]
pub(crate) enum Part {
    /// The instance: sends, or goes on with what another one left
    FanOut(child::Options),
    /// Seals and posts, and keeps nothing
    Bare(bare::Options),
}

/// Measures, or kills, and prints.
pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    let place = Place::start(options.devices, options.database.as_deref()).await?;
    match options.kills {
        0 => measure(&place, &options).await?,
        kills => {
            let met = killed::until_settled(&place, kills, options.ahead).await?;
            report::print(&[met], options.json)?;
        }
    }
    place.stop().await;
    Ok(())
}

/// One of the processes; its figures are all it prints.
pub(crate) async fn run_part(part: Part) -> anyhow::Result<()> {
    let figures = match part {
        Part::FanOut(options) => child::run(options).await?,
        Part::Bare(options) => bare::run(options).await?,
    };
    figures.print()
}

async fn measure(place: &Place, options: &Options) -> anyhow::Result<()> {
    place.simulators.set_recording(false);
    let mut rows = Vec::new();
    for _ in 0..options.rounds {
        for (target, arguments) in [
            ("bare loop of batches", place.bare()),
            ("fan-out", place.fan_out(child::Start::Send, 0)),
        ] {
            let before = place.delivered();
            let figures = Figures::of(&arguments).await?;
            let delivered = place.delivered() - before;
            if delivered != options.devices as u64 {
                bail!(
                    "{target}: {delivered} notifications for {} devices",
                    options.devices
                );
            }
            rows.push(Measurement {
                target,
                devices: options.devices,
                figures,
            });
        }
    }
    report::print(&rows, options.json)
}

/// One process's work.
#[derive(Serialize)]
struct Measurement {
    target: &'static str,
    devices: usize,
    #[serde(flatten)]
    figures: Figures,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "target",
        "devices",
        "wall s",
        "devices/s",
        "CPU s",
        "CPU us/device",
        "RSS MiB before",
        "peak RSS MiB",
    ];

    fn cells(&self) -> Vec<String> {
        let figures = &self.figures;
        let devices = self.devices as f64;
        vec![
            self.target.to_owned(),
            self.devices.to_string(),
            format!("{:.2}", figures.seconds),
            format!("{:.0}", devices / figures.seconds),
            format!("{:.2}", figures.cpu_seconds),
            format!("{:.0}", figures.cpu_seconds * 1e6 / devices),
            format!("{:.1}", figures.resident_kib as f64 / 1024.0),
            format!("{:.1}", figures.peak_kib as f64 / 1024.0),
        ]
    }
}
