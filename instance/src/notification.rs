//! What a user is to be told. Hosts make it, the fan-out seals it for each device, the device opens its JSON.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use serde::Serialize;
use serde_json::Value;
use sha2::Sha256;
use sovereign_relay_protocol::{limits, platform::Priority, redacted::Redacted, seal::PADDED_BYTES};
use thiserror::Error;

use crate::user::User;

/// 192 bits, in the 32 characters that a Web Push topic may have (RFC 8030, section 5.4).
const COLLAPSE_BYTES: usize = 24;

/// One notification, in plain text. It prints nothing of its content.
#[derive(Clone, PartialEq)]
pub struct Notification {
    /// First line.
    pub title: String,
    /// The rest.
    pub body: String,
    /// What a tap opens.
    pub url: Option<String>,
    /// Replaces what the device still shows under the same tag. The relay sees a keyed hash of it.
    pub tag: Option<String>,
    /// For the app.
    pub data: Option<Value>,
    /// How soon.
    pub priority: Priority,
    /// How long it is worth being delivered; 0 is now or never.
    pub ttl_seconds: u32,
}

/// A notification that can't be sent to anyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InvalidNotification {
    /// Its JSON does not fit into what providers carry.
    #[error("the notification is longer than 2560 bytes of JSON")]
    TooLarge,
    /// No provider keeps anything that long.
    #[error("ttl_seconds must be from 0 to 2419200")]
    Ttl,
}

/// As devices read it.
#[derive(Serialize)]
struct Wire<'a> {
    title: &'a str,
    body: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

impl Notification {
    /// A title and a body, at once, for as long as providers keep it.
    pub fn new(title: impl Into<String>, body: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            body: body.into(),
            url: None,
            tag: None,
            data: None,
            priority: Priority::default(),
            ttl_seconds: limits::TTL_SECONDS,
        }
    }

    /// The JSON that is sealed, once it is known that it can be.
    pub(crate) fn to_json(&self) -> Result<Redacted, InvalidNotification> {
        if self.ttl_seconds > limits::TTL_SECONDS {
            return Err(InvalidNotification::Ttl);
        }
        let wire = Wire {
            title: &self.title,
            body: &self.body,
            url: self.url.as_deref(),
            tag: self.tag.as_deref(),
            data: self.data.as_ref(),
        };
        // Strings and JSON values can always be written.
        let json = Redacted::new(serde_json::to_string(&wire).unwrap_or_default());
        let longest = PADDED_BYTES.into_iter().max().unwrap_or(0);
        if json.len() > longest {
            return Err(InvalidNotification::TooLarge);
        }
        Ok(json)
    }

    /// Names the tag to relay and push services without telling it: tags say whom a message is from. Users and tags can
    /// be guessed, so that it takes a `key` that only this instance has.
    pub(crate) fn collapse_id(&self, user: &User, key: &Redacted) -> Option<String> {
        let tag = self.tag.as_ref()?;
        // With the lengths, so that no two triples are written the same.
        let lengths = [&user.tenant, &user.id].map(|part| part.len().to_le_bytes());
        let [tenant_length, id_length] = &lengths;
        let info = [
            &tenant_length[..],
            user.tenant.as_bytes(),
            &id_length[..],
            user.id.as_bytes(),
            tag.as_bytes(),
        ];
        let mut id = [0; COLLAPSE_BYTES];
        let hash = Hkdf::<Sha256>::new(Some(b"sovereign-collapse-id"), key.expose().as_bytes());
        // HKDF refuses only outputs over 8,160 bytes.
        let _ = hash.expand_multi_info(&info, &mut id);
        Some(URL_SAFE_NO_PAD.encode(id))
    }
}

impl fmt::Debug for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notification")
            .field("priority", &self.priority)
            .field("ttl_seconds", &self.ttl_seconds)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sovereign_relay_protocol::id::CollapseId;

    use super::*;

    #[test]
    fn devices_get_the_fields_that_they_read_and_no_empty_ones() {
        let mut notification = Notification::new("Title", "Body");
        let read = |notification: &Notification| -> Value {
            serde_json::from_str(notification.to_json().unwrap().expose()).unwrap()
        };
        assert_eq!(read(&notification), json!({"title": "Title", "body": "Body"}));
        notification.url = Some("/inbox".to_owned());
        notification.tag = Some("inbox".to_owned());
        notification.data = Some(json!({"kind": "test"}));
        let expected = json!({"title": "Title", "body": "Body", "url": "/inbox", "tag": "inbox",
            "data": {"kind": "test"}});
        assert_eq!(read(&notification), expected);
    }

    #[test]
    fn what_no_provider_carries_or_keeps_is_refused_before_anything_is_sent() {
        let empty = Notification::new("", "").to_json().unwrap().len();
        let fits = Notification::new("", "x".repeat(2560 - empty));
        assert_eq!(fits.to_json().unwrap().len(), 2560);
        let too_large = Notification::new("", "x".repeat(2561 - empty));
        assert_eq!(too_large.to_json(), Err(InvalidNotification::TooLarge));
        let too_long = Notification {
            ttl_seconds: limits::TTL_SECONDS + 1,
            ..Notification::new("", "")
        };
        assert_eq!(too_long.to_json(), Err(InvalidNotification::Ttl));
    }

    #[test]
    fn a_tag_is_the_same_for_relay_and_push_service_and_tells_neither_what_it_is() {
        let tagged = |tag: &str| Notification {
            tag: Some(tag.to_owned()),
            ..Notification::new("", "")
        };
        let (user, other) = (User::new("1"), User::new("2"));
        let (key, another) = (Redacted::new("key"), Redacted::new("another"));
        let id = tagged("from Ada").collapse_id(&user, &key).unwrap();
        assert_eq!(id.len(), 32);
        assert!(CollapseId::parse(&id).is_some());
        assert!(
            id.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        );
        assert_eq!(tagged("from Ada").collapse_id(&user, &key).as_ref(), Some(&id));
        assert_ne!(tagged("from Ada").collapse_id(&other, &key).as_ref(), Some(&id));
        assert_ne!(tagged("from Bob").collapse_id(&user, &key).as_ref(), Some(&id));
        // Who doesn't have the key can't try tags until one fits.
        assert_ne!(
            tagged("from Ada").collapse_id(&user, &another).as_ref(),
            Some(&id)
        );
        assert_eq!(Notification::new("", "").collapse_id(&user, &key), None);
    }

    #[test]
    fn its_content_is_not_printed() {
        let mut notification = Notification::new("marked", "marked");
        notification.data = Some(json!("marked"));
        assert!(!format!("{notification:?}").contains("marked"));
    }
}
