//! One command that shows everything on one machine: simulators of APNs, FCM and WNS, a relay, an instance, and a
//! device on each platform. A sealed notification travels to each, and only the device opens it.
//!
//! `sovereign-relay playground` calls [`run`]. Flow: [`stage`] starts the parts, [`tour`] sends the notifications
//! through the public API, [`report`] prints what each side saw, and [`page`] shows signaling to two browser tabs.
//! Nothing needs configuring and nothing is kept: the relay's data directory is a temporary one.

pub mod arrivals;
mod device;
mod page;
mod report;
mod stage;
mod tour;
mod wire;

use std::io;

use anyhow::ensure;
use sovereign_relay_protocol::platform::Platform;

pub use self::stage::relay_config;
use self::{page::Page, report::Report, stage::Stage, tour::Seen};

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

/// Runs the playground until Ctrl-C, or until nobody reads its output any more, or until the tour is over with `--once`.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let stage = Stage::start().await?;
    let shown = show(args, &stage).await;
    stage.stop().await;
    let delivered = match shown {
        Err(error) if nobody_reads(&error) => return Ok(()),
        shown => shown?,
    };
    ensure!(
        delivered == Platform::ALL.len(),
        "{delivered} of 4 notifications were delivered and opened"
    );
    Ok(())
}

/// Gives how many notifications were delivered and opened.
async fn show(args: Args, stage: &Stage) -> anyhow::Result<usize> {
    let report = Report::new(args);
    report.opening(stage)?;
    let mut delivered = 0;
    for device in &stage.devices {
        let step = tour::deliver(stage, device).await;
        delivered += usize::from(step.opened.is_ok());
        report.step(device, &step)?;
    }
    // Before the lines are shown that make more arrive.
    let seen = Seen::now(stage);
    if args.once {
        report.closing(stage, None, delivered)?;
    } else {
        let page = Page::start(stage).await?;
        let watched = watch(stage, &page, &report, (delivered, seen)).await;
        page.stop().await;
        watched?;
    }
    Ok(delivered)
}

async fn watch(
    stage: &Stage,
    page: &Page,
    report: &Report,
    (delivered, seen): (usize, Seen),
) -> anyhow::Result<()> {
    report.closing(stage, Some(page), delivered)?;
    tour::watch_until_interrupted(stage, report, seen).await
}

/// As with `| head`.
fn nobody_reads(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
