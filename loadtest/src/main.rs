//! Load generator for Sovereign Relay. `docs/PERFORMANCE.md` has what it measured and how to repeat it.
//!
//! ```text
//! cargo build --release && cargo run --release -p sovereign-relay-loadtest -- push
//! ```
//!
//! It starts the relay's release binary as a process of its own, and what the relay is compared with: simulators of
//! the push services (the ceiling of `push`), a bare WebSocket echo (beside `signal`), a loop that keeps nothing (beside
//! `instance`). The same client runs at both in turn, on the same machine in one run. Figures of one run may be compared with each other; across machines only the
//! ratios may.

mod connections;
mod fan_out;
mod instance;
mod process;
mod push;
mod redis;
mod report;
mod run;
mod signal;

use clap::{Parser, Subcommand};

/// The relay's, so that a server beside it differs in nothing else.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
    /// Signaling: what idle connections cost, and how fast messages go from peer to peer
    #[command(subcommand)]
    Signal(signal::Part),
    /// An instance: one notification for 10,000 devices, beside a bare loop that keeps nothing, or killed meanwhile
    Instance(fan_out::Options),
    /// A process of `instance`
    #[command(subcommand, hide = true)]
    InstancePart(fan_out::Part),
    /// The server that signaling is compared with
    #[command(hide = true)]
    Echo,
}

fn main() -> anyhow::Result<()> {
    let work = match Cli::parse().command {
        Command::Echo => return signal::echo::serve(),
        command => command,
    };
    tokio::runtime::Runtime::new()?.block_on(async {
        match work {
            Command::Push(options) => push::run(options).await,
            Command::Signal(part) => signal::run(part).await,
            Command::Instance(options) => fan_out::run(options).await,
            Command::InstancePart(part) => fan_out::run_part(part).await,
            Command::Echo => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_sound_and_one_push_mode_is_chosen_at_a_time() {
        Cli::command().debug_assert();
        let parse = |arguments: &[&str]| Cli::try_parse_from([&["loadtest", "push"], arguments].concat());
        assert!(parse(&[]).is_ok());
        assert!(parse(&["--black-hole", "fcm", "--tolerance", "1.3", "--rounds", "7"]).is_ok());
        assert!(parse(&["--hang-ups", "0.1", "--count", "1000000"]).is_ok());
        assert!(parse(&["--hang-ups", "0.1", "--black-hole", "fcm"]).is_err());
        assert!(
            parse(&["--black-hole", "apns"]).is_err(),
            "APNs is who is measured"
        );
    }
}
