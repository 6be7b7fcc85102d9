//! What a client sends.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{FrameError, Opaque, Tag, fields, json};
use crate::{
    redacted::Redacted,
    signal::{VERSION, id::ConnectionId},
};

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
