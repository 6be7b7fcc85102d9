//! A relay and the providers it talks to.

use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use super::{
    device::Device,
    relay::{Relay, RelayOptions},
};

pub struct World {
    pub relay: Relay,
    pub simulators: Simulators,
    environment: Vec<(String, String)>,
    _ca_dir: TempDir,
}

impl World {
    /// Simulators as they come, a relay with credentials for all four platforms.
    pub async fn start() -> Self {
        Self::start_with(SimulatorOptions::default(), RelayOptions::new()).await
    }

    /// The options come after the simulators' environment, so that they can change it.
    pub async fn start_with(simulator_options: SimulatorOptions, options: RelayOptions) -> Self {
        let simulators = Simulators::start(simulator_options).await.unwrap();
        let ca_dir = TempDir::new().unwrap();
        let ca_file = simulators.write_ca(ca_dir.path()).unwrap();
        let environment = simulators.relay_environment(&ca_file);
        let relay = Relay::start(options.under(environment.clone())).await;
        Self {
            relay,
            simulators,
            environment,
            _ca_dir: ca_dir,
        }
    }

    /// One more relay with the same credentials and simulators, and a data directory of its own.
    pub async fn another_relay(&self, options: RelayOptions) -> Relay {
        Relay::start(options.under(self.environment.clone())).await
    }

    /// Waits for the relay to end by itself; its exit status and its whole log.
    pub async fn stopped(self) -> (std::process::ExitStatus, String) {
        self.relay.ended().await
    }

    pub fn device(&self, platform: Platform) -> Device {
        Device::new(platform, self.address(platform))
    }

    /// A fresh token or channel, for pushes that nobody opens.
    pub fn address(&self, platform: Platform) -> String {
        match platform {
            Platform::Ios | Platform::Macos => self.simulators.apns.new_token(),
            Platform::Android => self.simulators.fcm.new_token(),
            Platform::Windows => self.simulators.wns.new_channel(),
        }
    }
}
