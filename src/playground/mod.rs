//! One command that shows everything on one machine.

/// `playground`.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// End when all notifications have arrived: exit 0, or 1 if one did not
    #[arg(long)]
    pub once: bool,
    /// Print addresses and keys as JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the playground.
pub async fn run(_args: Args) -> anyhow::Result<()> {
    anyhow::bail!("the playground is not built yet")
}
