//! Text that must never reach a log line, a label or a store: it prints `REDACTED` and is wiped when dropped.

use std::fmt;

use zeroize::Zeroizing;

/// A secret or a piece of content. Its only way out is [`Redacted::expose`], at the call that sends it.
#[derive(Clone, PartialEq, Eq)]
pub struct Redacted(Zeroizing<String>);

impl Redacted {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself. Call it where the bytes are sent or checked, nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is nothing inside.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

impl<'de> serde::Deserialize<'de> for Redacted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}
