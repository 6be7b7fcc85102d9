//! The `sovereign-instance` binary: reads the command line, calls the library, turns the result into an exit code.

use std::process::ExitCode;

use clap::Parser as _;
use sovereign_instance::server::Cli;

fn main() -> ExitCode {
    Cli::parse().run().into()
}
