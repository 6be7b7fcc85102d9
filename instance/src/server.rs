//! The reference server: a whole instance in one binary, `sovereign-instance`.
//!
//! `main` parses a [`Cli`] and calls [`Cli::run`]. `serve` ([`serve`]) is the server; all other commands work on the
//! same database, beside a server that runs or without one: what `notify` can't deliver at once waits in the outbox,
//! which `serve` works off. [`parts`] puts the library together, [`accounts`] and [`session`] stand for the users that a
//! real host has already, [`page`] and [`api`] are for a person to try it.
//!
//! Invariant: what a script needs is on standard output (text, or JSON with `--json`) and in the exit code
//! ([`exit::Exit`]); what only a person needs is on standard error.

mod accounts;
mod api;
mod devices;
pub mod exit;
mod log;
mod notify;
mod output;
mod page;
mod parts;
mod relay;
pub(crate) mod serve;
mod session;
pub(crate) mod settings;
mod users;

use std::future::Future;

use clap::{Parser, Subcommand};
use serde::Serialize;
use sovereign_relay_protocol::time::UnixMillis;

use self::{
    exit::{CommandError, Exit},
    settings::StoreSettings,
};
use crate::{clock::Clock, store::Store};

/// An instance for one machine: your devices register here, and are told what you send them.
///
/// It keeps devices in a database of its own, seals each notification for each device, and hands it to a relay (native
/// apps) or a push service (browsers), which can't read it.
#[derive(Parser, Debug)]
#[command(name = "sovereign-instance", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    store: StoreSettings,
}

const AFTER_HELP: &str = "\
Settings are flags or variables; a flag is stronger. SOVEREIGN_RELAY_URL may be unset (the relay of the project), `off`,
or a URL.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 the relay was not reached, 4 the relay refused.

Try it:
  sovereign-instance demo --once      instance, relay, devices and a browser on this machine, no credentials
  sovereign-instance user add ann     a user, whose token signs in at the page that `serve` names";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the server
    Serve(serve::Args),
    /// Who may sign in
    #[command(subcommand)]
    User(users::Command),
    /// Tell a user something on all their devices and browsers; exit 0 when it was delivered to one at least
    Notify(notify::Args),
    /// List a user's devices and browsers
    Devices(devices::Args),
    /// Say what became of a user's notifications: why did I get no push?
    Log(log::Args),
    /// Look at the relay, choose another, turn it off, change the key
    #[command(subcommand)]
    Relay(relay::Command),
    /// Show everything on this machine: instance, relay, simulated providers, four devices and a browser
    #[cfg(feature = "demo")]
    Demo(crate::demo::Args),
}

/// What commands share.
pub(crate) struct Context {
    json: bool,
    store: StoreSettings,
    clock: Clock,
}

impl Cli {
    /// Does what was asked; complaints go to standard error.
    pub fn run(self) -> Exit {
        let context = Context {
            json: self.json,
            store: self.store,
            clock: Clock::system(),
        };
        let done = match self.command {
            Command::Serve(args) => in_system(serve::run(args, &context)),
            Command::User(command) => in_system(users::run(command, &context)),
            Command::Notify(args) => in_system(notify::run(args, &context)),
            Command::Devices(args) => in_system(devices::run(args, &context)),
            Command::Log(args) => in_system(log::run(args, &context)),
            Command::Relay(command) => in_system(relay::run(command, &context)),
            #[cfg(feature = "demo")]
            Command::Demo(args) => in_system(async {
                crate::demo::run(args, context.json)
                    .await
                    .map_err(|error| CommandError::failed(format!("{error:#}")))
            }),
        };
        done.map_or_else(CommandError::report, |()| Exit::Done)
    }
}

impl Context {
    async fn store(&self) -> Result<Store, CommandError> {
        Ok(Store::connect(&self.store.url()?).await?)
    }

    /// JSON for scripts, or else words.
    fn print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), CommandError> {
        if self.json {
            output::print_json(value)
        } else {
            output::print(&text())
        }
    }
}

/// The runtime that actix's server needs, and that the commands do with.
fn in_system(work: impl Future<Output = Result<(), CommandError>>) -> Result<(), CommandError> {
    actix_web::rt::System::new().block_on(work)
}

/// A moment, for people.
fn time(seconds: u64) -> String {
    UnixMillis(seconds.saturating_mul(1000)).to_rfc3339()
}
