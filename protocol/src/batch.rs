//! `POST /v1/push/batch`: up to 500 pushes in one request, answered in order.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{
    error::ErrorCode,
    limits,
    push::{InvalidPush, PushAnswer, PushBody, PushRequest},
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
    /// Parses a body.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidBatch> {
        let wire: Wire = serde_json::from_slice(bytes).map_err(|_| InvalidBatch::NotAnObject)?;
        if !(1..=limits::BATCH_MESSAGES).contains(&wire.messages.len()) {
            return Err(InvalidBatch::Count);
        }
        Ok(Self { messages: wire.messages.into_iter().map(Entry::parse).collect() })
    }
}

#[derive(Deserialize)]
struct Wire {
    messages: Vec<Entry>,
}

/// An entry of any type: what isn't an object becomes an error of its own place.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Request(Box<PushRequest>),
    Other(serde::de::IgnoredAny),
}

impl Entry {
    fn parse(self) -> Result<PushBody, InvalidPush> {
        match self {
            Self::Request(request) => request.parse(),
            Self::Other(_) => Err(InvalidPush::NotAnObject),
        }
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
