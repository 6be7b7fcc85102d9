//! The `sovereign-relay` binary: reads the command line, calls the library, turns the result into an exit code.

use std::process::ExitCode;

use clap::Parser as _;
use sovereign_relay::cli::Cli;

/// It gives memory back when thousands of connections go away at once; glibc's allocator keeps it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    Cli::parse().run().into()
}
