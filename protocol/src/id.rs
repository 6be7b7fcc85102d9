//! Names of things: instances, requests, idempotency keys, collapse ids.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{limits, redacted::Redacted};

/// An enrolled instance: a UUID, printed in lower case with hyphens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(Uuid);

impl InstanceId {
    /// A version 4 id from 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Parses the hyphenated form; anything else (braces, URN, no hyphens) is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 36).then(|| Uuid::try_parse(text).ok().map(Self)).flatten()
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// From the 16 bytes of [`InstanceId::as_bytes`].
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

impl fmt::Debug for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The name of one HTTP request in log lines and in the `x-request-id` header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestId(String);

impl RequestId {
    /// Accepts a caller's id: 1..64 of `[A-Za-z0-9._-]` that doesn't look like a token.
    ///
    /// A JWT (three dot-separated parts, the first starting with `eyJ`) and a run of 32 or more characters
    /// without a separator, other than a hexadecimal trace id of exactly 32, could be a credential put in the
    /// wrong header: those are replaced, since request ids are logged.
    pub fn from_caller(text: &str) -> Option<Self> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let shaped = (1..=limits::REQUEST_ID_CHARS).contains(&text.len()) && text.chars().all(allowed);
        (shaped && !looks_like_a_token(text)).then(|| Self(text.to_owned()))
    }

    /// An id from 16 random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid().as_simple().to_string())
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn looks_like_a_token(text: &str) -> bool {
    if text.starts_with("eyJ") {
        return true;
    }
    let longest = text.split(['.', '_', '-']).map(str::len).max().unwrap_or(0);
    let is_trace_id = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    longest >= 32 && !is_trace_id
}

/// `idempotencyKey`: 1..128 visible ASCII characters, scoped to the instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey(Redacted);

impl IdempotencyKey {
    /// Parses; `None` when empty, too long or not visible ASCII.
    pub fn parse(text: &str) -> Option<Self> {
        let shaped = (1..=limits::IDEMPOTENCY_KEY_CHARS).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic());
        shaped.then(|| Self(Redacted::new(text)))
    }

    /// As text, for hashing.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// `collapseId`: 1..64 bytes. It never leaves as it is: see [`crate::envelope::CollapseTag`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollapseId(Redacted);

impl CollapseId {
    /// Parses; `None` when empty or too long.
    pub fn parse(text: &str) -> Option<Self> {
        (1..=limits::COLLAPSE_ID_BYTES).contains(&text.len()).then(|| Self(Redacted::new(text)))
    }

    /// As text, for hashing.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}
