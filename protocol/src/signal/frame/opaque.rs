//! A message's content.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What sealed content begins with.
pub const SEALED_PREFIX: &str = "e1.";

/// A message's content, which the relay doesn't parse. It prints nothing; clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Opaque(Arc<str>);

impl Opaque {
    /// Wraps `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text. Call it where it is sent or opened, nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Length in bytes between the quotes of a JSON string, where some characters take more than themselves (RFC 8259,
    /// 7). A text frame that brought it was at least as long: nothing is escaped here that need not be.
    pub fn json_bytes(&self) -> usize {
        let escaped = |byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0x00..=0x1f => 6,
            _ => 1,
        };
        self.0.bytes().map(escaped).sum()
    }

    /// Whether there is nothing inside.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it looks sealed. All that the relay ever asks of it.
    pub fn is_sealed(&self) -> bool {
        self.0.starts_with(SEALED_PREFIX)
    }
}

impl fmt::Debug for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

impl Serialize for Opaque {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Opaque {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer).map(|text| Self(text.into()))
    }
}
