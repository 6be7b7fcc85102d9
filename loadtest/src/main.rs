//! Load generator for Sovereign Relay. `docs/PERFORMANCE.md` has what it measured and how to repeat it.
//!
//! ```text
//! cargo build --release && cargo run --release -p sovereign-relay-loadtest -- push
//! ```
//!
//! It starts simulators of APNs, FCM and WNS in its own process and the relay's release binary as another, then runs
//! the same client straight at the APNs simulator (the ceiling) and through the relay, in turn, on the same machine in
//! one run. Figures of one run may be compared with each other; across machines only the ratios may.

mod connections;
mod process;
mod push;
mod report;
mod run;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Pushes a second and latencies through the relay, beside the same client straight at the simulator
    Push(push::Options),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Push(options) => push::run(options).await,
    }
}
