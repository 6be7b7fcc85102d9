//! `serve` and `playground`: the commands that run a relay in this process.

use std::{future::Future, sync::Arc};

use tracing::{info, warn};

use super::{exit::CommandError, load_config};
use crate::{
    app,
    config::Flags,
    telemetry::{self, Metrics},
};

/// Runs the relay until it is told to stop.
pub(crate) fn run(flags: &Flags) -> Result<(), CommandError> {
    let config = load_config(flags)?;
    telemetry::init_logging(&config.logging).map_err(failed)?;
    info!(version = env!("CARGO_PKG_VERSION"), "starting");
    for warning in &config.warnings {
        warn!("{warning}");
    }
    let metrics = Metrics::install().map_err(failed)?;
    let load = || load_config(flags);
    in_system(async move {
        let render = metrics.clone();
        let upkeep = tokio::spawn(metrics.upkeep());
        let ended = app::run(config, load, Arc::new(move || render.render())).await;
        upkeep.abort();
        ended
    })
}

/// Runs the playground.
#[cfg(feature = "playground")]
pub(crate) fn playground(args: crate::playground::Args) -> Result<(), CommandError> {
    in_system(crate::playground::run(args))
}

/// The runtime that actix's servers and arbiters need.
fn in_system(work: impl Future<Output = anyhow::Result<()>>) -> Result<(), CommandError> {
    actix_rt::System::new().block_on(work).map_err(failed)
}

/// With its causes, on one line.
fn failed(error: anyhow::Error) -> CommandError {
    CommandError::failed(format!("{error:#}"))
}
