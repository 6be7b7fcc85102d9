//! A device: a key pair, an address at its provider, and the opening of what arrives.

use sovereign_relay_protocol::{platform::Platform, seal};

pub struct Device {
    pub platform: Platform,
    pub token: String,
    key: seal::DeviceKey,
}

impl Device {
    pub fn new(platform: Platform, token: String) -> Self {
        let key = seal::DeviceKey::generate(random).unwrap();
        Self { platform, token, key }
    }

    pub fn public_key(&self) -> String {
        self.key.public_key().to_base64()
    }

    pub fn seal(&self, notification: &serde_json::Value) -> String {
        seal::seal(&notification.to_string(), &self.key.public_key(), random).unwrap()
    }

    pub fn open(&self, sealed: &str) -> serde_json::Value {
        serde_json::from_str(&seal::open(sealed, &self.key).unwrap()).unwrap()
    }

    /// The body of a push to this device.
    pub fn push(&self, notification: &serde_json::Value) -> serde_json::Value {
        serde_json::json!({
            "deviceToken": self.token,
            "platform": self.platform.as_str(),
            "encryptedPayload": self.seal(notification),
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "tests have no entropy port")]
pub fn random(bytes: &mut [u8]) {
    getrandom::fill(bytes).unwrap();
}
