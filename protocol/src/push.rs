//! One notification on its way to one device, and the answer.
//!
//! ```text
//! bytes -> PushRequest (wire) -> PushMessage (parsed) -> provider -> PushAnswer (wire)
//! ```

use serde::Deserialize;
use thiserror::Error;

mod answer;
mod field;

pub use self::answer::{PushAnswer, PushResult, Reason};
use self::field::Field;

use crate::{
    id::{CollapseId, IdempotencyKey},
    json::Object,
    limits,
    platform::{Environment, Platform, Priority},
    redacted::Redacted,
};

/// `POST /v1/push` as it comes over the wire. Unknown fields are ignored.
///
/// Every field is optional here, so that [`PushRequest::parse`] and not the JSON library words the error:
/// the library's sentences quote content. A field's value is cut out first and parsed by itself, so that what is wrong
/// with it is said of that field.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase")]
pub struct PushRequest {
    #[serde(default)]
    device_token: Field<Redacted>,
    #[serde(default)]
    platform: Field<String>,
    #[serde(default)]
    encrypted_payload: Field<Redacted>,
    #[serde(default)]
    instance_key: Field<Redacted>,
    #[serde(default)]
    priority: Field<String>,
    #[serde(default)]
    ttl_seconds: Field<u32>,
    #[serde(default)]
    collapse_id: Field<String>,
    #[serde(default)]
    environment: Field<String>,
    #[serde(default)]
    idempotency_key: Field<String>,
}

/// One notification, checked. It prints no content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushMessage {
    /// Where it goes.
    pub platform: Platform,
    /// The device's address at its provider, as the app got it; its shape is checked later.
    pub device_token: Redacted,
    /// What the device opens. Never parsed.
    pub encrypted_payload: Redacted,
    /// How soon.
    pub priority: Priority,
    /// How long the provider keeps it for an offline device, in seconds; 0 = now or never.
    pub ttl_seconds: u32,
    /// Replaces an earlier one of the same instance.
    pub collapse_id: Option<CollapseId>,
    /// APNs environment; the relay's default where absent. Ignored on the other platforms.
    pub environment: Option<Environment>,
    /// Makes a repeat safe.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A parsed body: the message, and the key where the caller put it there (as the deployed runtime does).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PushBody {
    /// The notification.
    pub message: PushMessage,
    /// `instanceKey`, if present.
    pub instance_key: Option<Redacted>,
}

/// A malformed push. Names the field, never its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InvalidPush {
    /// Not JSON.
    #[error("the body must be valid JSON in UTF-8, without a byte order mark")]
    NotJson,
    /// JSON, but not an object.
    #[error("a push must be a JSON object")]
    NotAnObject,
    /// One of the fields below is there twice.
    #[error("the body names a field twice")]
    FieldTwice,
    /// A batch's entry over the size of a single push's body.
    #[error("the message is larger than 16384 bytes")]
    TooLong,
    /// `deviceToken` absent, empty or not a string.
    #[error("deviceToken must be a non-empty string")]
    DeviceToken,
    /// `platform` absent or unknown.
    #[error("platform must be one of ios, android, macos, windows")]
    Platform,
    /// `encryptedPayload` absent, empty or not a string.
    #[error("encryptedPayload must be a non-empty string")]
    EncryptedPayload,
    /// `instanceKey` present but empty or not a string.
    #[error("instanceKey must be a non-empty string")]
    InstanceKey,
    /// `priority` unknown.
    #[error("priority must be high or normal")]
    Priority,
    /// `ttlSeconds` out of range.
    #[error("ttlSeconds must be a whole number from 0 to 2419200")]
    Ttl,
    /// `collapseId` empty or too long.
    #[error("collapseId must be 1 to 64 bytes")]
    CollapseId,
    /// `environment` unknown.
    #[error("environment must be production or sandbox")]
    Environment,
    /// `idempotencyKey` empty, too long or not visible ASCII.
    #[error("idempotencyKey must be 1 to 128 visible ASCII characters")]
    IdempotencyKey,
}

impl PushMessage {
    /// A notification with everything else left to its default.
    pub fn new(platform: Platform, device_token: Redacted, encrypted_payload: Redacted) -> Self {
        Self {
            platform,
            device_token,
            encrypted_payload,
            priority: Priority::default(),
            ttl_seconds: limits::TTL_SECONDS,
            collapse_id: None,
            environment: None,
            idempotency_key: None,
        }
    }
}

impl PushBody {
    /// Parses a body.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidPush> {
        let text = std::str::from_utf8(bytes).map_err(|_| InvalidPush::NotJson)?;
        let request: Object<PushRequest> =
            serde_json::from_str(text).map_err(|error| misshapen(text, &error))?;
        request.0.parse()
    }
}

/// What is wrong with the body as a whole.
fn misshapen(text: &str, error: &serde_json::Error) -> InvalidPush {
    if !error.is_data() {
        return InvalidPush::NotJson;
    }
    // No field's value fails the parser, so of an object this is all that is left.
    if text.trim_start().starts_with('{') {
        InvalidPush::FieldTwice
    } else {
        InvalidPush::NotAnObject
    }
}

impl PushRequest {
    /// Checks every field.
    pub fn parse(self) -> Result<PushBody, InvalidPush> {
        let message = PushMessage {
            device_token: self.device_token.non_empty().ok_or(InvalidPush::DeviceToken)?,
            platform: self
                .platform
                .required()
                .and_then(|p| Platform::parse(&p))
                .ok_or(InvalidPush::Platform)?,
            encrypted_payload: self
                .encrypted_payload
                .non_empty()
                .ok_or(InvalidPush::EncryptedPayload)?,
            priority: self
                .priority
                .parsed(Priority::parse, InvalidPush::Priority)?
                .unwrap_or_default(),
            ttl_seconds: parse_ttl(self.ttl_seconds)?,
            collapse_id: self
                .collapse_id
                .parsed(CollapseId::parse, InvalidPush::CollapseId)?,
            environment: self
                .environment
                .parsed(Environment::parse, InvalidPush::Environment)?,
            idempotency_key: self
                .idempotency_key
                .parsed(IdempotencyKey::parse, InvalidPush::IdempotencyKey)?,
        };
        let instance_key = self.instance_key.optional(InvalidPush::InstanceKey)?;
        if instance_key.as_ref().is_some_and(Redacted::is_empty) {
            return Err(InvalidPush::InstanceKey);
        }
        Ok(PushBody {
            message,
            instance_key,
        })
    }
}

fn parse_ttl(field: Field<u32>) -> Result<u32, InvalidPush> {
    let seconds = field.optional(InvalidPush::Ttl)?.unwrap_or(limits::TTL_SECONDS);
    (seconds <= limits::TTL_SECONDS)
        .then_some(seconds)
        .ok_or(InvalidPush::Ttl)
}

#[cfg(test)]
mod tests;
