//! Starts the parts: simulators, a relay configured for them, an enrolled instance, and four devices.

use std::path::Path;

use anyhow::Context as _;
use sovereign_relay_protocol::{enroll::EnrollAnswer, platform::Platform};
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use super::device::Device;
use crate::{
    app::{self, RunningRelay},
    cli,
    config::{Config, Flags},
    telemetry,
};

/// Set, it makes the relay log to standard error; otherwise the tour is all that is printed.
const LOG: &str = "RELAY_LOG";

/// Everything that is running.
pub(super) struct Stage {
    pub(super) simulators: Simulators,
    pub(super) relay: RunningRelay,
    pub(super) instance: EnrollAnswer,
    pub(super) devices: Vec<Device>,
    pub(super) http: reqwest::Client,
    _directory: TempDir,
}

impl Stage {
    /// Starts all of it on free loopback ports.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let simulators = Simulators::start(SimulatorOptions::default()).await?;
        let directory = TempDir::new().context("cannot make a temporary directory")?;
        let data = directory.path().display().to_string();
        let config = relay_config(&simulators, directory.path(), &[("RELAY_DATA_DIR", data)])?;
        if cli::environment(LOG).is_some() {
            telemetry::init_logging(&config.logging)?;
        }
        let relay = app::start(config).await?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let instance = enroll(&http, &relay).await?;
        let devices = Platform::ALL.map(|platform| Device::new(platform, &simulators));
        let devices = devices.into_iter().collect::<anyhow::Result<_>>()?;
        Ok(Self {
            simulators,
            relay,
            instance,
            devices,
            http,
            _directory: directory,
        })
    }

    /// Where the public API is.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.relay.public_addr)
    }

    /// Stops all of it, the relay first.
    pub(super) async fn stop(self) {
        self.relay.stop().await;
        self.simulators.stop().await;
    }
}

/// The configuration an operator would write, pointed at the simulators, whose CA is written to `directory`. Both
/// listeners are on loopback, at a free port unless `own` says which; `own` comes first in everything.
pub fn relay_config(
    simulators: &Simulators,
    directory: &Path,
    own: &[(&str, String)],
) -> anyhow::Result<Config> {
    let ca_file = simulators.write_ca(directory)?;
    let mut environment: Vec<_> = own
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    environment.extend(simulators.relay_environment(&ca_file));
    let fixed = [
        ("RELAY_LISTEN", "127.0.0.1:0"),
        ("RELAY_ADMIN_LISTEN", "127.0.0.1:0"),
        // Nobody is behind a load balancer here: stop at once.
        ("RELAY_DRAIN_GRACE", "0s"),
    ];
    environment.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    environment.extend(cli::environment(LOG).map(|filter| (LOG.to_owned(), filter)));
    let find = |wanted: &str| {
        environment
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.clone())
    };
    Ok(Config::load(&Flags::default(), &find)?)
}

async fn enroll(http: &reqwest::Client, relay: &RunningRelay) -> anyhow::Result<EnrollAnswer> {
    let url = format!("http://{}/v1/enroll", relay.public_addr);
    Ok(http.post(url).send().await?.error_for_status()?.json().await?)
}
