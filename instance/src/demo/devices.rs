//! The user's devices: what the apps do, with `sovereign-device`, and where their providers deliver.

use anyhow::{Context as _, anyhow};
use reqwest::Url;
use serde_json::json;
use sovereign_device::{
    DeviceToken, Keys, Store,
    instance::{Instance, Session, Trust},
};
use sovereign_relay::playground::arrivals;
use sovereign_relay_protocol::{platform::Platform, redacted::Redacted};
use sovereign_relay_simulator::Simulators;

use crate::routes::DEVICES_PATH;

/// An app on a device.
pub(super) struct Device {
    pub(super) platform: Platform,
    /// What its provider calls it.
    pub(super) token: String,
    keys: Keys,
    /// How much of what arrived has been opened.
    opened: usize,
}

/// What a person reads.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Read {
    pub(super) title: String,
    pub(super) body: String,
}

impl Device {
    /// A device that its provider knows, with a key pair of its own.
    pub(super) fn new(platform: Platform, simulators: &Simulators) -> anyhow::Result<Self> {
        let token = match platform {
            Platform::Ios | Platform::Macos => simulators.apns.new_token(),
            Platform::Android => simulators.fcm.new_token(),
            Platform::Windows => simulators.wns.new_channel(),
        };
        let keys = Keys::open_or_make(Store::memory())?;
        Ok(Self {
            platform,
            token,
            keys,
            opened: 0,
        })
    }

    /// Registers with the user's instance, as the app does after signing in.
    pub(super) async fn register(&self, instance_url: &str, session: &Redacted) -> anyhow::Result<()> {
        let trust = Trust {
            plain_loopback: true,
            ..Trust::default()
        };
        let instance = Instance::new(instance_url, Session::Bearer(session.clone()), trust)?;
        let token = match self.platform {
            Platform::Ios => DeviceToken::ios(&bytes(&self.token)?)?,
            Platform::Macos => DeviceToken::macos(&bytes(&self.token)?)?,
            Platform::Android => DeviceToken::android(&self.token)?,
            // The crate takes Windows' own addresses alone, and a simulator has none of these.
            Platform::Windows => return self.register_by_hand(instance_url, session).await,
        };
        Ok(instance.register(&token, &self.keys).await?)
    }

    async fn register_by_hand(&self, instance_url: &str, session: &Redacted) -> anyhow::Result<()> {
        let body = json!({
            "platform": self.platform.as_str(),
            "deviceToken": self.token,
            "publicKey": self.keys.public_key(),
        });
        let url = Url::parse(instance_url)?.join(DEVICES_PATH)?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let request = http.post(url).bearer_auth(session.expose()).json(&body);
        request.send().await?.error_for_status()?;
        Ok(())
    }

    /// Opens the next thing that arrives, waiting for it if it isn't there.
    pub(super) async fn read_next(&mut self, simulators: &Simulators) -> anyhow::Result<Read> {
        loop {
            let before = arrivals::delivered(simulators, self.platform);
            let arrived = arrivals::at(simulators, self.platform, &self.token);
            if let Some(arrival) = arrived.get(self.opened) {
                self.opened += 1;
                return self.open(&arrival.sealed);
            }
            if !arrivals::more_than(simulators, self.platform, before).await {
                return Err(anyhow!("nothing arrived"));
            }
        }
    }

    /// Opens all that has arrived meanwhile.
    pub(super) fn read_all(&mut self, simulators: &Simulators) -> Vec<anyhow::Result<Read>> {
        let arrived = arrivals::at(simulators, self.platform, &self.token);
        let new = arrived.iter().skip(self.opened);
        let read = new.map(|arrival| self.open(&arrival.sealed)).collect();
        self.opened = arrived.len();
        read
    }

    fn open(&self, sealed: &str) -> anyhow::Result<Read> {
        let notification = self.keys.open(sealed)?;
        Ok(Read {
            title: notification.title,
            body: notification.body,
        })
    }
}

/// APNs gives apps bytes; the simulator shows them in hexadecimal.
fn bytes(hexadecimal: &str) -> anyhow::Result<Vec<u8>> {
    let pairs = hexadecimal.as_bytes().chunks(2).map(std::str::from_utf8);
    let bytes = pairs.map(|pair| Ok(u8::from_str_radix(pair?, 16)?));
    bytes
        .collect::<anyhow::Result<_>>()
        .context("a token that is not hexadecimal")
}
