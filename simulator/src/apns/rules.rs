//! The documented rules of a request, and the reason APNs gives when one is broken.
//!
//! Pure. Table of "Handling notification responses from APNs"; `background` and priority, sizes and header forms from
//! "Sending notification requests to APNs".

use http::{HeaderMap, Method};
use uuid::Uuid;

use crate::apns::options::ApnsOptions;

/// Largest body.
const MAX_PAYLOAD_BYTES: usize = 4096;
/// Largest collapse id, in bytes.
const MAX_COLLAPSE_ID_BYTES: usize = 64;
/// Push types that APNs knows.
const PUSH_TYPES: [&str; 11] = [
    "alert",
    "background",
    "voip",
    "complication",
    "fileprovider",
    "mdm",
    "liveactivity",
    "location",
    "pushtotalk",
    "widgets",
    "controls",
];
/// Header fields that must not come twice.
const SINGLE_HEADERS: [&str; 7] = [
    "authorization",
    "apns-id",
    "apns-expiration",
    "apns-priority",
    "apns-topic",
    "apns-push-type",
    "apns-collapse-id",
];

/// A refusal as APNs words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
}

impl Refusal {
    pub(crate) const MISSING_PROVIDER_TOKEN: Self = Self::new(403, "MissingProviderToken");
    pub(crate) const INVALID_PROVIDER_TOKEN: Self = Self::new(403, "InvalidProviderToken");
    pub(crate) const EXPIRED_PROVIDER_TOKEN: Self = Self::new(403, "ExpiredProviderToken");
    pub(crate) const UNRELATED_KEY_ID_IN_TOKEN: Self = Self::new(403, "UnrelatedKeyIdInToken");
    pub(crate) const TOO_MANY_PROVIDER_TOKEN_UPDATES: Self = Self::new(429, "TooManyProviderTokenUpdates");
    pub(crate) const BAD_DEVICE_TOKEN: Self = Self::new(400, "BadDeviceToken");
    const BAD_COLLAPSE_ID: Self = Self::new(400, "BadCollapseId");
    const BAD_EXPIRATION_DATE: Self = Self::new(400, "BadExpirationDate");
    const BAD_MESSAGE_ID: Self = Self::new(400, "BadMessageId");
    const BAD_PRIORITY: Self = Self::new(400, "BadPriority");
    const BAD_TOPIC: Self = Self::new(400, "BadTopic");
    const MISSING_TOPIC: Self = Self::new(400, "MissingTopic");
    const TOPIC_DISALLOWED: Self = Self::new(400, "TopicDisallowed");
    const DUPLICATE_HEADERS: Self = Self::new(400, "DuplicateHeaders");
    const INVALID_PUSH_TYPE: Self = Self::new(400, "InvalidPushType");
    const MISSING_DEVICE_TOKEN: Self = Self::new(400, "MissingDeviceToken");
    const PAYLOAD_EMPTY: Self = Self::new(400, "PayloadEmpty");
    const BAD_PATH: Self = Self::new(404, "BadPath");
    const METHOD_NOT_ALLOWED: Self = Self::new(405, "MethodNotAllowed");
    const PAYLOAD_TOO_LARGE: Self = Self::new(413, "PayloadTooLarge");

    const fn new(status: u16, reason: &'static str) -> Self {
        Self { status, reason }
    }
}

/// The device token in `:path`.
pub(crate) fn device_token<'a>(method: &Method, path: &'a str) -> Result<&'a str, Refusal> {
    let token = path.strip_prefix("/3/device/").ok_or(Refusal::BAD_PATH)?;
    if method != Method::POST {
        return Err(Refusal::METHOD_NOT_ALLOWED);
    }
    if token.is_empty() {
        Err(Refusal::MISSING_DEVICE_TOKEN)
    } else {
        Ok(token)
    }
}

/// Refuses header fields that come twice.
pub(crate) fn single_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    let twice = |name: &&str| headers.get_all(*name).iter().nth(1).is_some();
    if SINGLE_HEADERS.iter().any(twice) {
        Err(Refusal::DUPLICATE_HEADERS)
    } else {
        Ok(())
    }
}

/// The caller's `apns-id`, in the canonical lower-case form only.
pub(crate) fn message_id(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(text) = text(headers, "apns-id", Refusal::BAD_MESSAGE_ID)? else {
        return Ok(None);
    };
    let id = Uuid::try_parse(text).map_err(|_| Refusal::BAD_MESSAGE_ID)?;
    if id.to_string() == text {
        Ok(Some(text.to_owned()))
    } else {
        Err(Refusal::BAD_MESSAGE_ID)
    }
}

/// Refuses what is wrong with the remaining header fields.
pub(crate) fn check_fields(headers: &HeaderMap, options: &ApnsOptions) -> Result<(), Refusal> {
    let expiration = number(headers, "apns-expiration", Refusal::BAD_EXPIRATION_DATE)?;
    if expiration.is_some_and(|seconds| seconds < 0) {
        return Err(Refusal::BAD_EXPIRATION_DATE);
    }
    let push_type = text(headers, "apns-push-type", Refusal::INVALID_PUSH_TYPE)?.unwrap_or("alert");
    if !PUSH_TYPES.contains(&push_type) {
        return Err(Refusal::INVALID_PUSH_TYPE);
    }
    check_priority(headers, push_type)?;
    check_collapse_id(headers)?;
    check_topic(headers, options)
}

/// Refuses a body that is empty, too large, or no JSON object with `aps`.
pub(crate) fn payload(body: &[u8]) -> Result<(), Refusal> {
    if body.is_empty() {
        return Err(Refusal::PAYLOAD_EMPTY);
    }
    if body.len() > MAX_PAYLOAD_BYTES {
        return Err(Refusal::PAYLOAD_TOO_LARGE);
    }
    match serde_json::from_slice::<Envelope>(body) {
        Ok(_) => Ok(()),
        Err(_) => Err(Refusal::PAYLOAD_EMPTY),
    }
}

/// Just enough of the body to see that there is something in it for APNs.
#[derive(serde::Deserialize)]
struct Envelope {
    #[serde(rename = "aps")]
    _aps: serde::de::IgnoredAny,
}

fn check_topic(headers: &HeaderMap, options: &ApnsOptions) -> Result<(), Refusal> {
    let topic = text(headers, "apns-topic", Refusal::BAD_TOPIC)?.ok_or(Refusal::MISSING_TOPIC)?;
    if topic == options.bundle_id || topic == options.bundle_id_macos {
        return Ok(());
    }
    let is_bundle_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    if topic.is_empty() || !topic.bytes().all(is_bundle_id) {
        return Err(Refusal::BAD_TOPIC);
    }
    Err(Refusal::TOPIC_DISALLOWED)
}

fn check_priority(headers: &HeaderMap, push_type: &str) -> Result<(), Refusal> {
    match (
        number(headers, "apns-priority", Refusal::BAD_PRIORITY)?,
        push_type,
    ) {
        (Some(10), "background") => Err(Refusal::BAD_PRIORITY),
        (None | Some(10 | 5 | 1), _) => Ok(()),
        (Some(_), _) => Err(Refusal::BAD_PRIORITY),
    }
}

fn check_collapse_id(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get("apns-collapse-id") else {
        return Ok(());
    };
    let fits = !value.is_empty() && value.len() <= MAX_COLLAPSE_ID_BYTES;
    if fits && std::str::from_utf8(value.as_bytes()).is_ok() {
        Ok(())
    } else {
        Err(Refusal::BAD_COLLAPSE_ID)
    }
}

fn number(headers: &HeaderMap, name: &str, refusal: Refusal) -> Result<Option<i64>, Refusal> {
    text(headers, name, refusal)?
        .map(|text| text.parse().map_err(|_| refusal))
        .transpose()
}

fn text<'a>(headers: &'a HeaderMap, name: &str, refusal: Refusal) -> Result<Option<&'a str>, Refusal> {
    headers
        .get(name)
        .map(|value| value.to_str().map_err(|_| refusal))
        .transpose()
}

#[cfg(test)]
mod tests;
