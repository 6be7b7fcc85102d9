//! `signal`: what the signaling endpoint costs, beside a bare actix-ws echo.
//!
//! ```text
//! idle: pairs connect and say nothing      -> KiB of resident memory for each connection
//! rate: messages at a fixed rate, each way -> one-way latency, processor time of the server for each
//! replicas: the same over two replicas       -> the same, and Redis's commands and processor time for each
//! chaos: replicas around one Redis are killed -> whether anything is lost, and how long peers notice
//! ```

mod chaos;
mod conversation;
mod drive;
pub(crate) mod echo;
mod fleet;
mod idle;
mod rate;
mod replicas;
mod sessions;
mod socket;

use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Subcommand;

use crate::{instance, process::RelayProcess};

/// What to measure.
#[derive(Subcommand)]
pub(crate) enum Part {
    /// Memory of connections that say nothing
    Idle(idle::Options),
    /// Latency and processor time of messages at a fixed rate
    Rate(rate::Options),
    /// What messages between two replicas cost, and cost Redis
    Replicas(replicas::Options),
    /// Replicas that die while peers shake hands
    Chaos(chaos::Options),
}

/// Measures and prints.
pub(crate) async fn run(part: Part) -> anyhow::Result<()> {
    match part {
        Part::Idle(options) => idle::run(options).await,
        Part::Rate(options) => rate::run(options).await,
        Part::Replicas(options) => replicas::run(options).await,
        Part::Chaos(options) => chaos::run(options).await,
    }
}

/// A relay, and the secret that signs its instances' keys.
async fn start_relay(directory: &Path) -> anyhow::Result<(RelayProcess, String)> {
    let secret = instance::random_secret();
    let environment = [
        ("RELAY_ENROLLMENT_SECRET", secret.as_str()),
        // All of it comes from one address, and how much is the caller's choice.
        ("RELAY_CONNECTIONS", "100000"),
        ("RELAY_SIGNAL_SOCKETS_PER_ADDRESS", "60000"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let relay = RelayProcess::start(&environment, directory).await?;
    Ok((relay, secret))
}

/// Refuses to begin what would fail half way for want of file descriptors.
fn check_descriptors(sockets: u64) -> anyhow::Result<()> {
    // The relay keeps 512 for other things than public connections; the rest is files and pipes.
    const SPARE: u64 = 600;
    // It lets signaling have six tenths of its connections.
    let connections = sockets * 10 / 6;
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    let soft: u64 = soft
        .context("no limit of open files")?
        .parse()
        .unwrap_or(u64::MAX);
    if soft < connections + SPARE {
        bail!(
            "{soft} files may be open and {} are needed: `ulimit -n {}`",
            connections + SPARE,
            (connections + SPARE).next_power_of_two()
        );
    }
    Ok(())
}
