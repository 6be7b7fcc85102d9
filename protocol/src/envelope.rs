//! The bytes each provider is sent around a sealed payload, and how large a payload fits.
//!
//! Used by the provider clients to build a body and by the instance's actor to refuse what can't fit before
//! anything is spent on it. The size is computed from the same serializer that makes the body, not guessed.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::Serialize;

use crate::{limits, platform::Platform, redacted::Redacted};

/// Length of a [`CollapseTag`]: 132 bits of the hash, and short enough for every provider.
const COLLAPSE_TAG_CHARS: usize = 22;
/// The one data key of an FCM message.
const FCM_DATA_KEY: &str = "encryptedPayload";

/// What a `collapseId` leaves the relay as: base64url characters of a keyed hash, so that no content leaks and
/// no instance can replace another's notification in the shared app.
#[derive(Clone, PartialEq, Eq)]
pub struct CollapseTag(String);

impl CollapseTag {
    /// From a 32-byte HMAC.
    pub fn from_mac(mac: &[u8; 32]) -> Self {
        let mut text = URL_SAFE_NO_PAD.encode(mac);
        text.truncate(COLLAPSE_TAG_CHARS);
        Self(text)
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CollapseTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

/// The alert titles that Apple devices show while nothing has opened the payload: constants of the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlertTitles {
    /// iOS, where the service extension replaces it.
    pub ios: String,
    /// macOS, which has no extension: people see it.
    pub macos: String,
}

impl Default for AlertTitles {
    fn default() -> Self {
        Self {
            ios: " ".to_owned(),
            macos: " ".to_owned(),
        }
    }
}

impl AlertTitles {
    /// The title for an Apple platform.
    pub fn of(&self, platform: Platform) -> &str {
        if platform == Platform::Macos {
            &self.macos
        } else {
            &self.ios
        }
    }
}

/// The payload does not fit its provider's limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLarge;

/// Checks that a payload fits its provider's limit in its envelope.
pub fn check_size(platform: Platform, payload: &Redacted, titles: &AlertTitles) -> Result<(), TooLarge> {
    let fits = match platform {
        Platform::Ios | Platform::Macos => {
            apns_body(payload, titles.of(platform)).len() <= limits::APNS_BODY_BYTES
        }
        Platform::Android => FCM_DATA_KEY.len() + payload.len() <= limits::FCM_DATA_BYTES,
        Platform::Windows => payload.len() <= limits::WNS_BODY_BYTES,
    };
    fits.then_some(()).ok_or(TooLarge)
}

/// The APNs body: an alert that a service extension may rewrite, and the sealed payload beside it.
pub fn apns_body(payload: &Redacted, title: &str) -> Vec<u8> {
    let body = ApnsBody {
        aps: Aps {
            mutable_content: 1,
            alert: Alert { title },
            sound: "default",
        },
        encrypted_payload: payload.expose(),
    };
    // Serializing strings and a number into memory has no way to fail.
    serde_json::to_vec(&body).unwrap_or_default()
}

/// The `data` of an FCM message: one key, so that app code gets it and the SDK shows nothing by itself.
pub fn fcm_data(payload: &Redacted) -> [(&'static str, &str); 1] {
    [(FCM_DATA_KEY, payload.expose())]
}

#[derive(Serialize)]
struct ApnsBody<'a> {
    aps: Aps<'a>,
    #[serde(rename = "encryptedPayload")]
    encrypted_payload: &'a str,
}

#[derive(Serialize)]
struct Aps<'a> {
    #[serde(rename = "mutable-content")]
    mutable_content: u8,
    alert: Alert<'a>,
    sound: &'static str,
}

#[derive(Serialize)]
struct Alert<'a> {
    title: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest_that_fits(platform: Platform, titles: &AlertTitles) -> usize {
        let fits = |length: &usize| check_size(platform, &Redacted::new("x".repeat(*length)), titles).is_ok();
        (1..6000).take_while(fits).last().unwrap()
    }

    #[test]
    fn each_limit_is_met_to_the_byte() {
        let titles = AlertTitles::default();
        let apns = largest_that_fits(Platform::Ios, &titles);
        assert_eq!(apns_body(&Redacted::new("x".repeat(apns)), " ").len(), 4096);
        assert_eq!(
            largest_that_fits(Platform::Android, &titles),
            4096 - "encryptedPayload".len()
        );
        assert_eq!(largest_that_fits(Platform::Windows, &titles), 5000);
    }

    #[test]
    fn a_longer_title_and_escaped_characters_leave_less_room() {
        let titles = AlertTitles {
            ios: " ".into(),
            macos: "New in Sovereign".into(),
        };
        let shorter = largest_that_fits(Platform::Ios, &titles) - largest_that_fits(Platform::Macos, &titles);
        assert_eq!(shorter, "New in Sovereign".len() - 1);
        assert!(check_size(Platform::Ios, &Redacted::new("\"".repeat(2100)), &titles).is_err());
        assert!(check_size(Platform::Ios, &Redacted::new("x".repeat(2100)), &titles).is_ok());
    }

    #[test]
    fn the_apns_body_is_what_deployed_apps_expect() {
        let body: serde_json::Value =
            serde_json::from_slice(&apns_body(&Redacted::new("sealed"), " ")).unwrap();
        let expected = serde_json::json!({
            "aps": { "mutable-content": 1, "alert": { "title": " " }, "sound": "default" },
            "encryptedPayload": "sealed",
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_collapse_tag_is_22_base64url_characters_and_prints_nothing() {
        let tag = CollapseTag::from_mac(&[0xff; 32]);
        assert_eq!(tag.as_str(), "_".repeat(21) + "_");
        assert_eq!(format!("{tag:?}"), "REDACTED");
    }
}
