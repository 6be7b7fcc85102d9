//! One command that shows an instance at work, all of it real but the providers: the reference server, a relay, four
//! native devices, and a browser with its push service, on this machine and over HTTP.
//!
//! `sovereign-instance demo` calls [`run`]. [`stage`] starts the parts, [`steps`] lets things happen and judges what
//! came of them, [`report`] prints it. Nothing needs configuring and nothing is kept.

mod devices;
mod report;
mod stage;
mod steps;

use anyhow::ensure;

use self::{report::Report, stage::Stage};

/// `demo`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// End after the tour: exit 0 when everything was as it should be, or else 1
    #[arg(long)]
    pub once: bool,
}

/// Runs the demo until Ctrl-C, or until the tour is over with `--once`.
pub async fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let mut stage = Stage::start().await?;
    let mut report = Report::new(json);
    report.opening(&stage)?;
    report.step(steps::everybody_is_told(&mut stage).await)?;
    report.step(steps::a_dead_device_is_removed(&mut stage).await)?;
    report.step(steps::a_relay_that_forgot_us_is_enrolled_at_again(&mut stage).await)?;
    report.step(steps::a_revoked_instance_stops(&mut stage).await)?;
    report.closing(&stage)?;
    if !args.once {
        steps::come_back(&stage).await?;
        report.invitation(&stage)?;
        steps::watch_until_interrupted(&mut stage, &report).await?;
    }
    stage.stop().await;
    ensure!(report.faults() == 0, "{} of 4 steps went wrong", report.faults());
    Ok(())
}
