//! The key pair, and what it opens.

use sovereign_device::{Keys, Notification};

use crate::error::OpenError;

/// This device's key pair. Nothing gives its private half.
#[derive(uniffi::Object)]
pub struct DeviceKeys(pub(crate) Keys);

/// A notification, opened.
#[derive(Clone, PartialEq, Eq, Debug, uniffi::Record)]
pub struct PushNotification {
    /// The first line.
    pub title: String,
    /// The text, which may be empty.
    pub body: String,
    /// Where a tap leads: an address, or a path of the instance. The app decides where it may lead.
    pub url: Option<String>,
    /// A later notification with the same tag takes this one's place.
    pub tag: Option<String>,
    /// Whatever the app and its instance agreed on, as JSON.
    pub data_json: Option<String>,
}

#[uniffi::export]
impl DeviceKeys {
    /// What an instance seals for: base64 of the 65 bytes of the uncompressed point.
    pub fn public_key(&self) -> String {
        self.0.public_key()
    }

    /// Opens a sealed notification, as the push brought it.
    pub fn open(&self, sealed: &str) -> Result<PushNotification, OpenError> {
        Ok(self.0.open(sealed)?.into())
    }
}

impl From<Notification> for PushNotification {
    fn from(notification: Notification) -> Self {
        Self {
            title: notification.title,
            body: notification.body,
            url: notification.url,
            tag: notification.tag,
            data_json: notification.data.map(|data| data.to_string()),
        }
    }
}
