//! What goes over a signaling connection: one JSON object for each text frame, told apart by `t`.
//!
//! The relay parses [`ClientFrame`]s and writes [`ServerFrame`]s; clients do the opposite. Unknown frames and fields
//! are skipped, so that either side may learn new ones; a field that is known must have its type. What is in `d` is
//! [`Opaque`] here.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::json::Object;

mod client;
mod opaque;
mod server;

pub use client::{ClientFrame, Hello, Mood};
pub use opaque::{Opaque, SEALED_PREFIX};
pub use server::{IceServer, MESSAGE_ENVELOPE_BYTES, PeerPresence, PeerState, Refused, ServerFrame, Welcome};

/// A frame that doesn't follow the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum FrameError {
    /// Not a JSON object with a `t`, or a known field has another type. 4400.
    #[error("not a frame of this protocol")]
    Malformed,
    /// A `hello` of another version. 4426.
    #[error("a version of the protocol that is not spoken here")]
    Version,
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
}

fn fields<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FrameError> {
    let Object(fields) = serde_json::from_str::<Object<T>>(text).map_err(|_| FrameError::Malformed)?;
    Ok(fields)
}

fn json<T: Serialize>(frame: &T) -> String {
    // Strings and numbers under string keys: there is nothing that JSON could not hold.
    serde_json::to_string(frame).unwrap_or_default()
}

#[cfg(test)]
mod tests;
