//! Enrollment of instances and rotation of their keys, on the wire.
//!
//! Both requests may come without a body: the deployed runtime enrolls with none.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{id::InstanceId, limits, redacted::Redacted, time::UnixMillis};

/// `POST /v1/enroll`, checked. It prints no content.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EnrollRequest {
    /// What the instance calls itself: 1..80 characters.
    pub name: Option<Redacted>,
    /// Its operator's mail address.
    pub contact: Option<Redacted>,
}

/// `POST /v1/keys/rotate`, checked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RotateRequest {
    /// How long the old key goes on working; 24 h where absent, 0 = not at all.
    pub grace_seconds: Option<u64>,
}

/// A malformed enrollment. Names the field, never its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InvalidEnroll {
    /// Not JSON, or not an object.
    #[error("the body must be empty or a JSON object")]
    NotAnObject,
    /// `name` empty, too long or with control characters.
    #[error("name must be 1 to 80 characters without control characters")]
    Name,
    /// `contact` is no e-mail address.
    #[error("contact must be an e-mail address of at most 254 bytes")]
    Contact,
}

/// A malformed rotation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InvalidRotate {
    /// Not JSON, or not an object.
    #[error("the body must be empty or a JSON object")]
    NotAnObject,
    /// `graceSeconds` negative, no whole number or too long.
    #[error("graceSeconds must be a whole number from 0 to 2592000")]
    Grace,
}

/// Fields of any JSON type, so that the wording of an error is ours: the library's sentences quote content.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnrollBody {
    #[serde(default)]
    name: serde_json::Value,
    #[serde(default)]
    contact: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RotateBody {
    #[serde(default)]
    grace_seconds: serde_json::Value,
}

impl EnrollRequest {
    /// Parses a body; an empty one is a request without fields.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidEnroll> {
        if is_blank(bytes) {
            return Ok(Self::default());
        }
        let body: EnrollBody = object(bytes).ok_or(InvalidEnroll::NotAnObject)?;
        Ok(Self {
            name: text(body.name, is_name).map_err(|_| InvalidEnroll::Name)?,
            contact: text(body.contact, is_mail_address).map_err(|_| InvalidEnroll::Contact)?,
        })
    }
}

impl RotateRequest {
    /// Parses a body; an empty one is a request without fields.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidRotate> {
        if is_blank(bytes) {
            return Ok(Self::default());
        }
        let body: RotateBody = object(bytes).ok_or(InvalidRotate::NotAnObject)?;
        if body.grace_seconds.is_null() {
            return Ok(Self::default());
        }
        let seconds = body
            .grace_seconds
            .as_u64()
            .filter(|seconds| *seconds <= limits::ROTATION_GRACE_SECONDS_MAX);
        seconds
            .map(|seconds| Self {
                grace_seconds: Some(seconds),
            })
            .ok_or(InvalidRotate::Grace)
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// A JSON object; serde alone would also read a struct from an array.
fn object<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let starts_as_object = bytes.trim_ascii_start().first() == Some(&b'{');
    starts_as_object
        .then(|| serde_json::from_slice(bytes).ok())
        .flatten()
}

/// A wrong field.
struct Wrong;

fn text(value: serde_json::Value, accepts: fn(&str) -> bool) -> Result<Option<Redacted>, Wrong> {
    match value {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) if accepts(&text) => Ok(Some(Redacted::new(text))),
        serde_json::Value::String(_)
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => Err(Wrong),
    }
}

fn is_name(text: &str) -> bool {
    (1..=limits::NAME_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// A deliberately small check, in place of a crate: the address is only ever shown to an operator, who writes the
/// mail. It takes what RFC 5321 calls a dot-string at a domain name, and of RFC 6531 any letters beyond ASCII; no
/// quoted local parts, no address literals, nothing that could break out of a mail header or a terminal line.
fn is_mail_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    text.len() <= limits::CONTACT_BYTES
        && local.len() <= 64
        && local
            .split('.')
            .all(|atom| !atom.is_empty() && atom.chars().all(is_atom_char))
        && domain.contains('.')
        && domain.split('.').all(is_domain_label)
}

fn is_atom_char(c: char) -> bool {
    const SPECIALS: &str = "!#$%&'*+-/=?^_`{|}~";
    if c.is_ascii() {
        c.is_ascii_alphanumeric() || SPECIALS.contains(c)
    } else {
        c.is_alphanumeric()
    }
}

fn is_domain_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.chars().all(|c| c == '-' || c.is_alphanumeric())
}

/// 200 of `POST /v1/enroll`. It prints no key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EnrollAnswer {
    /// The instance's name at this relay.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub instance_id: InstanceId,
    /// The secret that every later call carries.
    pub instance_key: String,
}

/// 200 of `POST /v1/keys/rotate`. It prints no key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateAnswer {
    /// The instance.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub instance_id: InstanceId,
    /// The new key.
    pub instance_key: String,
    /// The old key works until then.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub previous_valid_until: UnixMillis,
}

impl fmt::Debug for EnrollAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnrollAnswer")
            .field("instance_id", &self.instance_id)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RotateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotateAnswer")
            .field("instance_id", &self.instance_id)
            .field("previous_valid_until", &self.previous_valid_until)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
