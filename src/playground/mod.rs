//! One command that shows everything on one machine: simulators of APNs, FCM and WNS, a relay, an instance, and a
//! device on each platform. A sealed notification travels to each, and only the device opens it.
//!
//! `sovereign-relay playground` calls [`run`]. Flow: [`stage`] starts the parts, [`tour`] sends the notifications
//! through the public API, [`report`] prints what each side saw. Nothing needs configuring and nothing is kept: the
//! relay's data directory is a temporary one.

mod arrivals;
mod device;
mod report;
mod stage;
mod tour;

use anyhow::ensure;
use sovereign_relay_protocol::platform::Platform;

use self::{report::Report, stage::Stage, tour::Seen};

/// `playground`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// End when all notifications have arrived: exit 0, or 1 if one did not
    #[arg(long)]
    pub once: bool,
    /// Print addresses and keys as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the playground until Ctrl-C, or until the tour is over with `--once`.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let stage = Stage::start().await?;
    let report = Report::new(args);
    report.opening(&stage)?;
    let mut delivered = 0;
    for device in &stage.devices {
        let step = tour::deliver(&stage, device).await;
        delivered += usize::from(step.opened.is_ok());
        report.step(device, &step)?;
    }
    // Before the lines are shown that make more arrive.
    let seen = Seen::now(&stage);
    report.closing(&stage, delivered)?;
    if !args.once {
        tour::watch_until_interrupted(&stage, &report, seen).await?;
    }
    stage.stop().await;
    ensure!(
        delivered == Platform::ALL.len(),
        "{delivered} of 4 notifications were delivered and opened"
    );
    Ok(())
}
