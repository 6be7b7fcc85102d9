//! The command line.
//!
//! `main` parses a [`Cli`] and calls [`Cli::run`]. `serve` and `playground` run a relay; `check-config`,
//! `healthcheck` and `keygen` work by themselves; `invite`, `instances` and `revocations` talk to a running relay's
//! admin API through [`admin_api`].
//!
//! Invariant: what a script needs is on standard output (a table, or JSON with `--json`) and in the exit code
//! ([`exit::Exit`]); what only a person needs is on standard error.

mod admin_api;
mod check_config;
pub mod exit;
mod flags;
mod healthcheck;
mod instances;
mod invites;
mod keygen;
mod output;
mod report;
mod revocations;
mod serve;
#[cfg(test)]
mod tests;

use std::{env, future::Future};

use clap::{Parser, Subcommand};

use self::{
    exit::{CommandError, Exit},
    flags::{AdminFlags, AllFlags, ListenFlags},
};
use crate::config::{Config, ConfigError, Flags};

/// A relay for push notifications and WebRTC handshakes that it cannot read.
///
/// Instances enroll, seal a notification for a device and post it here; the relay forwards it to APNs, FCM or WNS.
/// They also make signaling sessions, in which two peers swap sealed offers, answers and candidates over WebSockets.
/// It needs no configuration to start: platforms without credentials are off, everything else has a default.
#[derive(Parser, Debug)]
#[command(
    name = "sovereign-relay",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = AFTER_HELP
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    flags: AllFlags<true>,
}

const AFTER_HELP: &str = "\
Without a command, it serves. `sovereign-relay serve --help` lists all settings, which are also read from the
environment and from a TOML file.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the relay was not reached, 4 the relay refused.

Try it:
  sovereign-relay playground --once   relay, simulated providers and devices on this machine, no credentials
  sovereign-relay check-config        what is on, what is off, and why";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the relay (what happens without a command)
    Serve(AllFlags<false>),
    /// Show everything on this machine: simulated providers, relay, devices, one notification each, and a page on which
    /// two browser tabs shake hands
    #[cfg(feature = "playground")]
    Playground(crate::playground::Args),
    /// Say what is on, what is off, and why; exit 1 if the relay would not start. Prints no secret
    CheckConfig(check_config::Args),
    /// Ask a running relay on this machine whether it is alive, for container health checks
    Healthcheck(ListenFlags),
    /// Invites for RELAY_ENROLLMENT=invite
    #[command(subcommand)]
    Invite(invites::Command),
    /// Look at enrolled instances, stop them, limit them
    #[command(subcommand)]
    Instances(instances::Command),
    /// Move the list of revoked keys from one relay to another
    #[command(subcommand)]
    Revocations(revocations::Command),
    /// Make keys
    #[command(subcommand)]
    Keygen(keygen::Command),
}

impl Cli {
    /// Does what was asked; complaints go to standard error.
    pub fn run(self) -> Exit {
        let done = match self.command {
            None => serve::run(&self.flags.flags),
            Some(Command::Serve(flags)) => serve::run(&flags.flags),
            #[cfg(feature = "playground")]
            Some(Command::Playground(args)) => serve::playground(args),
            Some(Command::CheckConfig(args)) => check_config::run(&args),
            Some(Command::Healthcheck(flags)) => block_on(healthcheck::run(&flags.flags)),
            Some(Command::Invite(command)) => block_on(invites::run(command)),
            Some(Command::Instances(command)) => block_on(instances::run(command)),
            Some(Command::Revocations(command)) => block_on(revocations::run(command)),
            Some(Command::Keygen(command)) => keygen::run(&command),
        };
        done.map_or_else(|error| error.report(), |()| Exit::Done)
    }
}

/// The configuration of this process.
fn load_config(flags: &Flags) -> Result<Config, ConfigError> {
    let mut config = Config::load(flags, &environment)?;
    config.warn_of_unknown(env::vars_os().filter_map(|(name, _)| name.into_string().ok()));
    Ok(config)
}

/// The process's environment. What is not UTF-8 is no setting of ours.
pub(crate) fn environment(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// Runs a short command; the relay itself has its own runtimes.
fn block_on(work: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(CommandError::failed)?.block_on(work)
}
