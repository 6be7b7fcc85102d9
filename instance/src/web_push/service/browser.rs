//! The browser's side: what `pushManager.subscribe` gives, and what its service worker reads.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ece::EcKeyComponents;
use thiserror::Error;

use super::Stored;
use crate::{
    entropy::random_bytes,
    web_push::{crypto, seal::LONGEST_BODY_BYTES},
};

/// A subscribed browser, with the keys that never leave it.
pub struct Browser {
    id: String,
    endpoint: String,
    components: EcKeyComponents,
    auth: [u8; 16],
}

/// The browser can't read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// Longer than a push message.
    #[error("longer than a push message")]
    TooLong,
    /// Made for other keys, or changed on the way.
    #[error("not authentic")]
    NotAuthentic,
    /// Authentic, but not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
}

impl Browser {
    pub(in crate::web_push) fn new(origin: &str) -> Option<Self> {
        crypto::install();
        let key = crypto::random_key()?;
        let public = key.public_key().to_sec1_bytes();
        let id = URL_SAFE_NO_PAD.encode(random_bytes::<16>());
        Some(Self {
            endpoint: format!("{origin}/send/{id}"),
            id,
            components: EcKeyComponents::new(key.to_bytes().to_vec(), public.to_vec()),
            auth: random_bytes(),
        })
    }

    /// `endpoint` of the subscription.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// `keys.p256dh`.
    pub fn p256dh(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.components.public_key())
    }

    /// `keys.auth`.
    pub fn auth(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.auth)
    }

    /// The JSON that the page's script sends to register.
    pub fn subscription(&self) -> serde_json::Value {
        serde_json::json!({
            "endpoint": self.endpoint,
            "keys": { "p256dh": self.p256dh(), "auth": self.auth() },
        })
    }

    /// Opens a message, as the browser does before it wakes the service worker.
    pub fn open(&self, message: &Stored) -> Result<String, OpenError> {
        if message.body.len() > LONGEST_BODY_BYTES {
            return Err(OpenError::TooLong);
        }
        let plaintext = ece::decrypt(&self.components, &self.auth, &message.body);
        let plaintext = plaintext.map_err(|_| OpenError::NotAuthentic)?;
        String::from_utf8(plaintext).map_err(|_| OpenError::NotUtf8)
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }
}
