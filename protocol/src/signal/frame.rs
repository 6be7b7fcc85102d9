//! What goes over a signaling connection: one JSON object for each text frame, told apart by `t`.
//!
//! The relay parses [`ClientFrame`]s and writes [`ServerFrame`]s; clients do the opposite. Unknown frames and fields
//! are skipped, so that either side may learn new ones; a field that is known must have its type. What is in `d` is
//! [`Opaque`] here.

use std::{borrow::Cow, fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use thiserror::Error;

use super::{
    VERSION,
    id::{ConnectionId, Role, Slot},
};
use crate::{json::Object, redacted::Redacted, signal::session::SessionLimits, time::UnixMillis};

/// What sealed content begins with.
pub const SEALED_PREFIX: &str = "e1.";
/// What stands around the content in the longest `msg` of the relay, with the highest `seq` and `gen`.
pub const MESSAGE_ENVELOPE_BYTES: usize = 62;

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

/// What a client sends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientFrame {
    /// First, and only first.
    Hello(Hello),
    /// A message for the peer.
    Message {
        /// 1, 2, 3 .. for each connection secret.
        n: u64,
        /// The content.
        content: Opaque,
    },
    /// Everything up to `seq` was processed.
    Ack {
        /// Cumulative.
        seq: u64,
    },
    /// Is anybody there?
    Ping,
    /// An answer to the relay's ping.
    Pong,
    /// Asks for fresh TURN credentials.
    Ice,
    /// Leaves now.
    Bye {
        /// How it went.
        mood: Option<Mood>,
    },
    /// Of a later version.
    Unknown,
}

/// The first frame of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The right to a slot.
    pub ticket: Redacted,
    /// The same one resumes; another is a new generation.
    pub connection: ConnectionId,
    /// Grows with every dial of one connection secret.
    pub attempt: u64,
    /// Highest `seq` processed.
    pub last: u64,
}

/// How a session went, for a counter and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mood {
    /// The peers are connected to each other.
    Direct,
    /// They are connected through TURN.
    Relayed,
    /// No path between them was found.
    Failed,
    /// Somebody changed their mind.
    Cancelled,
}

impl Mood {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relayed => "relayed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Version {
    v: u64,
}

#[derive(Deserialize)]
struct HelloFields<'a> {
    ticket: Redacted,
    #[serde(borrow)]
    cid: Cow<'a, str>,
    #[serde(rename = "try")]
    attempt: u64,
    #[serde(default)]
    last: u64,
}

#[derive(Deserialize)]
struct MessageFields {
    n: u64,
    d: Opaque,
}

#[derive(Deserialize)]
struct AckFields {
    seq: u64,
}

#[derive(Deserialize)]
struct ByeFields<'a> {
    #[serde(borrow, default)]
    mood: Option<Cow<'a, str>>,
}

impl ClientFrame {
    /// Parses a text frame.
    pub fn parse(text: &str) -> Result<Self, FrameError> {
        match &*fields::<Tag<'_>>(text)?.t {
            "hello" => hello(text).map(Self::Hello),
            "msg" => {
                let MessageFields { n, d } = fields(text)?;
                Ok(Self::Message { n, content: d })
            }
            "ack" => fields::<AckFields>(text).map(|AckFields { seq }| Self::Ack { seq }),
            "ping" => Ok(Self::Ping),
            "pong" => Ok(Self::Pong),
            "ice" => Ok(Self::Ice),
            "bye" => bye(text),
            _ => Ok(Self::Unknown),
        }
    }

    /// Writes a text frame; clients do.
    pub fn to_text(&self) -> String {
        match self {
            Self::Hello(hello) => json(&HelloOut {
                t: "hello",
                v: VERSION,
                ticket: hello.ticket.expose(),
                cid: hello.connection.expose_text(),
                attempt: hello.attempt,
                last: hello.last,
            }),
            Self::Message { n, content } => json(&MessageOut {
                t: "msg",
                n: *n,
                d: content,
            }),
            Self::Ack { seq } => json(&AckOut { t: "ack", seq: *seq }),
            Self::Ping => json(&TagOut { t: "ping" }),
            Self::Pong => json(&TagOut { t: "pong" }),
            Self::Ice => json(&TagOut { t: "ice" }),
            Self::Bye { mood } => json(&ByeOut {
                t: "bye",
                mood: *mood,
            }),
            Self::Unknown => json(&TagOut { t: "unknown" }),
        }
    }
}

fn hello(text: &str) -> Result<Hello, FrameError> {
    // Whatever else a later version changed, it says so here.
    if fields::<Version>(text)?.v != VERSION {
        return Err(FrameError::Version);
    }
    let hello: HelloFields<'_> = fields(text)?;
    Ok(Hello {
        ticket: hello.ticket,
        connection: ConnectionId::parse(&hello.cid).ok_or(FrameError::Malformed)?,
        attempt: hello.attempt,
        last: hello.last,
    })
}

fn bye(text: &str) -> Result<ClientFrame, FrameError> {
    let ByeFields { mood } = fields(text)?;
    // A mood of a later version is no reason to keep somebody who wants to leave.
    let known = [Mood::Direct, Mood::Relayed, Mood::Failed, Mood::Cancelled];
    let mood = mood.and_then(|mood| known.into_iter().find(|known| known.as_str() == mood));
    Ok(ClientFrame::Bye { mood })
}

fn fields<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FrameError> {
    let Object(fields) = serde_json::from_str::<Object<T>>(text).map_err(|_| FrameError::Malformed)?;
    Ok(fields)
}

#[derive(Serialize)]
struct TagOut {
    t: &'static str,
}

#[derive(Serialize)]
struct HelloOut<'a> {
    t: &'static str,
    v: u64,
    ticket: &'a str,
    cid: String,
    #[serde(rename = "try")]
    attempt: u64,
    last: u64,
}

#[derive(Serialize)]
struct MessageOut<'a> {
    t: &'static str,
    n: u64,
    d: &'a Opaque,
}

#[derive(Serialize)]
struct AckOut {
    t: &'static str,
    seq: u64,
}

#[derive(Serialize)]
struct ByeOut {
    t: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mood: Option<Mood>,
}

/// What the relay sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum ServerFrame {
    /// Always first.
    Welcome(Welcome),
    /// Everything up to `n` is stored.
    Ack {
        /// Cumulative.
        n: u64,
    },
    /// A message of the peer.
    #[serde(rename = "msg")]
    Message {
        /// Gapless for each receiver.
        seq: u64,
        /// The sender's generation.
        #[serde(rename = "gen")]
        generation: u32,
        /// The content.
        #[serde(rename = "d")]
        content: Opaque,
    },
    /// What is known of the peer.
    Peer {
        /// Whether it is there.
        state: PeerState,
        /// Its generation; 0 before its first arrival.
        #[serde(rename = "gen")]
        generation: u32,
        /// Set when the generation changed, so that it orders against messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
    },
    /// Is anybody there?
    Ping,
    /// An answer to the client's ping.
    Pong,
    /// Fresh TURN credentials.
    #[serde(rename_all = "camelCase")]
    Ice {
        /// In the browser's shape; empty where there are none to give.
        ice_servers: Vec<IceServer>,
        /// When the credentials end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<UnixMillis>,
    },
    /// Dial again at a random moment within.
    #[serde(rename_all = "camelCase")]
    Goaway {
        /// Milliseconds for which this connection still works.
        in_ms: u64,
    },
    /// Not fatal: nothing from `n` on was stored.
    #[serde(rename_all = "camelCase")]
    Err {
        /// Why.
        code: Refused,
        /// The first message that was not stored.
        n: u64,
        /// When to send it again, in milliseconds.
        retry_ms: u64,
    },
}

impl ServerFrame {
    /// Writes a text frame; the relay does.
    pub fn to_text(&self) -> String {
        json(self)
    }

    /// Parses a text frame; clients do. `Ok(None)` is a frame of a later version.
    pub fn parse(text: &str) -> Result<Option<Self>, FrameError> {
        let known = [
            "welcome", "ack", "msg", "peer", "ping", "pong", "ice", "goaway", "err",
        ];
        let Tag { t } = fields(text)?;
        if !known.contains(&&*t) {
            return Ok(None);
        }
        fields_owned(text).map(Some)
    }
}

fn fields_owned<T: DeserializeOwned>(text: &str) -> Result<T, FrameError> {
    fields(text)
}

/// The relay's answer to a `hello` that it takes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The slot of the ticket.
    pub slot: Slot,
    /// The role in perfect negotiation.
    pub role: Role,
    /// How many page loads this slot has had.
    #[serde(rename = "gen")]
    pub generation: u32,
    /// The `n` that is expected next.
    pub next: u64,
    /// Highest `seq` that was trimmed.
    pub base: u64,
    /// The peer, now.
    pub peer: PeerPresence,
    /// When the session ends.
    pub expires_at: UnixMillis,
    /// How long a lost peer may stay away before it counts as gone.
    pub grace_seconds: u64,
    /// How often the relay pings.
    pub heartbeat_seconds: u64,
    /// What the session may carry.
    pub limits: SessionLimits,
    /// In the browser's shape.
    #[serde(default)]
    pub ice_servers: Vec<IceServer>,
}

/// Whether a peer is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PeerState {
    /// Never seen.
    Absent,
    /// Connected, or lost for less than it takes to tell.
    Online,
    /// Connection lost, may come back.
    Away,
    /// Said goodbye, or was away for too long.
    Left,
}

/// A peer's state and generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PeerPresence {
    /// Whether it is there.
    pub state: PeerState,
    /// Its generation; 0 before its first arrival.
    #[serde(rename = "gen")]
    pub generation: u32,
}

/// Why a message was not stored, for now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// Too many messages a second.
    RateLimited,
    /// The receiver's mailbox, or what mailboxes may hold together, is full.
    MailboxFull,
    /// The store can't be reached.
    Unavailable,
}

impl Refused {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::MailboxFull => "mailbox_full",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A STUN or TURN server in the shape of `RTCIceServer` (W3C WebRTC, 4.2.4).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IceServer {
    /// RFC 7064 and RFC 7065 URIs.
    pub urls: Vec<String>,
    /// `<expiry, Unix seconds>:<pseudonym>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// base64 of HMAC-SHA1 of the username.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

impl fmt::Debug for IceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IceServer")
            .field("urls", &self.urls)
            .finish_non_exhaustive()
    }
}

fn json<T: Serialize>(frame: &T) -> String {
    // Strings and numbers under string keys: there is nothing that JSON could not hold.
    serde_json::to_string(frame).unwrap_or_default()
}

#[cfg(test)]
mod tests;
