//! What the relay sends.

use std::fmt;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{FrameError, Opaque, Tag, fields, json};
use crate::{
    signal::{
        id::{Role, Slot},
        session::SessionLimits,
    },
    time::UnixMillis,
};

/// What stands around the content in the longest `msg` of the relay, with the highest `seq` and `gen`.
pub const MESSAGE_ENVELOPE_BYTES: usize = 62;

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
