//! The fan-out's process, and what it costs.

use super::{
    figures::{Began, Figures},
    work::Work,
};

/// What the process begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Start {
    /// Sends the notification.
    Send,
    /// Works on what is in the outbox.
    Resume,
}

/// Where, and what.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    database: String,
    #[arg(long)]
    relay: String,
    #[arg(long)]
    start: Start,
    /// Seconds that its clock is ahead
    #[arg(long)]
    ahead: u64,
}

/// Returns when nothing is left to send.
pub(super) async fn run(options: Options) -> anyhow::Result<Figures> {
    let work = Work::open(&options.database, &options.relay, options.ahead).await?;
    let began = Began::now()?;
    work.finish(options.start == Start::Send).await?;
    began.figures()
}
