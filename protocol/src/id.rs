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
        (text.len() == 36)
            .then(|| Uuid::try_parse(text).ok().map(Self))
            .flatten()
    }

    /// The 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// From the 16 bytes of [`InstanceId::as_bytes`].
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
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
        Self(
            uuid::Builder::from_random_bytes(bytes)
                .into_uuid()
                .as_simple()
                .to_string(),
        )
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
        (1..=limits::COLLAPSE_ID_BYTES)
            .contains(&text.len())
            .then(|| Self(Redacted::new(text)))
    }

    /// As text, for hashing.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_instance_id_is_a_hyphenated_uuid_and_nothing_else() {
        let id = InstanceId::from_random([7; 16]);
        assert_eq!(InstanceId::parse(&id.to_string()), Some(id));
        assert_eq!(id.to_string().as_bytes()[14], b'4');
        let simple = id.to_string().replace('-', "");
        for wrong in [
            simple.as_str(),
            &format!("{{{id}}}"),
            &format!("urn:uuid:{id}"),
            "",
            "x",
            &format!("{id} "),
        ] {
            assert_eq!(InstanceId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn request_ids_that_look_like_credentials_are_replaced() {
        for good in [
            "a",
            "req-1.2_3",
            &"ab-".repeat(21),
            "4bf92f3577b34da6a3ce929d0e0e4736",
        ] {
            assert!(RequestId::from_caller(good).is_some(), "{good}");
        }
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJpIjoxfQ.c2ln";
        for bad in [
            "",
            " ",
            "a b",
            "ä",
            &"a-".repeat(33),
            jwt,
            &"a".repeat(40),
            &"f".repeat(64),
            "a\nb",
        ] {
            assert!(RequestId::from_caller(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn keys_and_collapse_ids_have_their_lengths_and_print_nothing() {
        assert!(IdempotencyKey::parse(&"k".repeat(128)).is_some());
        for wrong in ["", &"k".repeat(129), "with space", "ümlaut", "tab\t"] {
            assert!(IdempotencyKey::parse(wrong).is_none(), "{wrong}");
        }
        assert!(CollapseId::parse(&"ü".repeat(32)).is_some());
        assert!(CollapseId::parse(&"ü".repeat(33)).is_none() && CollapseId::parse("").is_none());
        let printed = format!(
            "{:?}{:?}",
            IdempotencyKey::parse("marked"),
            CollapseId::parse("marked")
        );
        assert!(!printed.contains("marked"));
    }

    proptest! {
        #[test]
        fn whatever_a_caller_sends_a_request_id_is_short_and_plain(text in ".{0,80}") {
            if let Some(id) = RequestId::from_caller(&text) {
                prop_assert!(id.as_str().len() <= limits::REQUEST_ID_CHARS && id.as_str().is_ascii());
                prop_assert!(!id.as_str().contains(|c: char| c.is_control() || c.is_whitespace()));
            }
        }
    }
}
