//! `push`: pushes through the relay.
//!
//! ```text
//! (no more)      the same pushes straight at the APNs simulator and through the relay -> pushes a second, latencies
//! --black-hole   pushes to APNs while another provider answers, and while it never does -> whether the others wait
//! --hang-ups     so many pushes, of which callers leave a share alone -> whether anything of them stays behind
//! ```

mod black_hole;
mod hang_ups;
mod measurement;
mod side_by_side;
mod straight;
mod targets;
mod through;

use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use crate::{instance, process::RelayProcess};

/// A notification of ordinary length: 512 bytes of padded JSON, sealed and in base64.
const PAYLOAD_BYTES: usize = 808;

/// `push`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Callers at once, each calling again when it has its answer: in the closed loop, which finds the most pushes a
    /// second, and with --hang-ups
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// Calls a second in the open loop, which finds the latency under a load that does not wait
    #[arg(long, default_value_t = 1000)]
    rate: u32,
    /// Seconds of each measurement: 10, or 20 with --black-hole
    #[arg(long)]
    seconds: Option<u64>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    black_hole: black_hole::Options,
    #[command(flatten)]
    hang_ups: hang_ups::Options,
}

/// Measures, prints, and fails where a figure is judged and is not kept.
pub(crate) async fn run(options: Options) -> anyhow::Result<()> {
    match (options.black_hole.provider, options.hang_ups.share) {
        (Some(provider), _) => black_hole::run(provider, &options).await,
        (None, Some(share)) => hang_ups::run(share, &options).await,
        (None, None) => side_by_side::run(&options).await,
    }
}

/// Simulators that count what comes and keep nothing, and a relay that uses them. Ends with its owner.
struct Place {
    simulators: Simulators,
    relay: RelayProcess,
    secret: String,
    _directory: TempDir,
}

impl Place {
    async fn start(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        let simulators = Simulators::start(SimulatorOptions::default()).await?;
        simulators.set_recording(false);
        let directory = tempfile::tempdir()?;
        let secret = instance::random_secret();
        let mut environment = simulators.relay_environment(&simulators.write_ca(directory.path())?);
        environment.push(("RELAY_ENROLLMENT_SECRET".to_owned(), secret.clone()));
        environment.extend(
            settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        Ok(Self {
            relay: RelayProcess::start(&environment, directory.path()).await?,
            simulators,
            secret,
            _directory: directory,
        })
    }

    async fn stop(self) {
        self.simulators.stop().await;
    }
}
