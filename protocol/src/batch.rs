//! `POST /v1/push/batch`: up to 500 pushes in one request, answered in order.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::{
    error::ErrorCode,
    json::Object,
    limits,
    push::{InvalidPush, PushAnswer, PushBody},
};

/// A parsed batch: each entry a message or why it is none, so that one bad message never spoils the others.
#[derive(Debug)]
pub struct Batch {
    /// In the caller's order.
    pub messages: Vec<Result<PushBody, InvalidPush>>,
}

/// The whole batch is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum InvalidBatch {
    /// Not JSON, or no `messages` array.
    #[error("the body must be a JSON object with an array `messages`")]
    NotAnObject,
    /// Empty or over the bound.
    #[error("messages must hold 1 to 500 entries")]
    Count,
}

impl Batch {
    /// Parses a body. It takes little more memory than the body has, whatever stands in it: values outside the known
    /// fields are skipped where they stand, and no entry is longer than a single push's body.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidBatch> {
        let Object(wire): Object<Wire<'_>> =
            serde_json::from_slice(bytes).map_err(|_| InvalidBatch::NotAnObject)?;
        let entries = wire.messages.0;
        if !(1..=limits::BATCH_MESSAGES).contains(&entries.len()) {
            return Err(InvalidBatch::Count);
        }
        Ok(Self {
            messages: entries.into_iter().map(parse_entry).collect(),
        })
    }
}

/// An entry of any type: what isn't an object becomes an error of its own place.
fn parse_entry(entry: &RawValue) -> Result<PushBody, InvalidPush> {
    let text = entry.get().as_bytes();
    if text.len() > limits::BODY_BYTES {
        return Err(InvalidPush::TooLong);
    }
    PushBody::parse(text)
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    messages: Entries<'a>,
}

/// The entries as they stand in the body. One more than a batch may hold is kept, of the others nothing.
struct Entries<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Entries<'de>, A::Error> {
        let mut kept = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if kept.len() <= limits::BATCH_MESSAGES {
                kept.push(entry);
            }
        }
        Ok(Entries(kept))
    }
}

/// One place of a batch's `results`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BatchResult {
    /// As `POST /v1/push` would have answered with 200.
    Answer(PushAnswer),
    /// As it would have refused.
    #[serde(rename_all = "camelCase")]
    Refused {
        /// Stable code.
        error: ErrorCode,
        /// One sentence.
        message: String,
        /// What `Retry-After` would have said.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_after_seconds: Option<u64>,
    },
}

/// 200 of `POST /v1/push/batch`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchAnswer {
    /// In the order of the messages.
    pub results: Vec<BatchResult>,
}

#[cfg(test)]
mod tests;
