//! A device of the playground: the app's key pair, and the provider's address of it.

use sovereign_relay_actors::ports::Entropy as _;
use sovereign_relay_protocol::{platform::Platform, seal};
use sovereign_relay_simulator::Simulators;

use super::arrivals::{self, Arrival};
use crate::entropy::SystemEntropy;

/// One device.
pub(super) struct Device {
    pub(super) platform: Platform,
    pub(super) token: String,
    key: seal::DeviceKey,
}

impl Device {
    /// A device that its provider knows.
    pub(super) fn new(platform: Platform, simulators: &Simulators) -> anyhow::Result<Self> {
        let token = match platform {
            Platform::Ios | Platform::Macos => simulators.apns.new_token(),
            Platform::Android => simulators.fcm.new_token(),
            Platform::Windows => simulators.wns.new_channel(),
        };
        Ok(Self {
            platform,
            token,
            key: seal::DeviceKey::generate(random)?,
        })
    }

    /// What the app gives its instance together with the token.
    pub(super) fn public_key(&self) -> String {
        self.key.public_key().to_base64()
    }

    /// What an instance does before it posts: seals for this device alone.
    pub(super) fn seal(&self, notification: &serde_json::Value) -> anyhow::Result<String> {
        Ok(seal::seal(
            &notification.to_string(),
            &self.key.public_key(),
            random,
        )?)
    }

    /// Everything that arrived, oldest first.
    pub(super) fn arrivals(&self, simulators: &Simulators) -> Vec<Arrival> {
        arrivals::at(simulators, self.platform, &self.token)
    }

    /// What the app does with what arrives.
    pub(super) fn open(&self, sealed: &str) -> anyhow::Result<String> {
        Ok(seal::open(sealed, &self.key)?.trim_end().to_owned())
    }
}

fn random(bytes: &mut [u8]) {
    SystemEntropy.fill(bytes);
}
