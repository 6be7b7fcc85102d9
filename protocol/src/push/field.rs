//! One field of a push's body, read by itself.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::InvalidPush;
use crate::redacted::Redacted;

/// A field that may be absent (or null), right, or of the wrong type, told apart without failing the rest.
#[derive(Default, Debug)]
pub(super) enum Field<T> {
    #[default]
    Absent,
    Present(T),
    Wrong,
}

impl<T> Field<T> {
    /// The value; nothing where it is absent or wrong.
    pub(super) fn required(self) -> Option<T> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    /// The value, if there is one; `error` where it is wrong.
    pub(super) fn optional(self, error: InvalidPush) -> Result<Option<T>, InvalidPush> {
        match self {
            Self::Present(value) => Ok(Some(value)),
            Self::Absent => Ok(None),
            Self::Wrong => Err(error),
        }
    }
}

impl Field<Redacted> {
    /// Text that is there and not empty.
    pub(super) fn non_empty(self) -> Option<Redacted> {
        self.required().filter(|text| !text.is_empty())
    }
}

impl Field<String> {
    /// What `parse` makes of the value, if there is one; `error` where it is wrong.
    pub(super) fn parsed<U>(
        self,
        parse: fn(&str) -> Option<U>,
        error: InvalidPush,
    ) -> Result<Option<U>, InvalidPush> {
        self.optional(error)?
            .map(|text| parse(&text).ok_or(error))
            .transpose()
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = <&RawValue>::deserialize(deserializer)?.get();
        if value == "null" {
            return Ok(Self::Absent);
        }
        Ok(serde_json::from_str(value).map_or(Self::Wrong, Self::Present))
    }
}
