//! `GET /v1/signal`: the WebSocket endpoint.
//!
//! ```text
//! handshake (judged) -> upgrade -> door (crowds, places, bad tickets) -> connection (hello ... close) <-> session actor
//! ```
//!
//! A connection leaves actix-http after its upgrade and is served on its bare socket ([`socket`]): an idle one then
//! holds no buffer, a stalled one can be cut, and nothing stands between the mailbox and the socket.
//! docs/adr/0003-websocket.md has the figures. RFC 6455.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sovereign_relay_actors::{
    now::Now,
    ports::{Clock, Entropy},
    session::{
        port::{ConnectionHash, Incarnation},
        registry::Sessions,
    },
};
use sovereign_relay_protocol::{
    id::InstanceId,
    redacted::Redacted,
    signal::id::{ConnectionId, SessionId, Slot},
};

mod connection;
mod crowd;
pub(crate) mod door;
mod end;
mod greeting;
pub(crate) mod handshake;
mod heartbeat;
mod outbox;
pub(crate) mod places;
mod socket;
pub(crate) mod upgrade;

use door::Door;

use crate::shutdown::Lifecycle;

use crate::turn::Ice;

/// What the endpoint works with. Made once, shared by all workers.
pub struct Endpoint {
    /// Time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Randomness.
    pub(crate) entropy: Arc<dyn Entropy>,
    /// Sessions.
    pub(crate) sessions: Sessions,
    /// Who gets in, and with what.
    pub(crate) guard: Arc<dyn Guard>,
    /// How many there may be.
    pub(crate) door: Door,
    /// How far the relay is in its life.
    pub(crate) lifecycle: Lifecycle,
}

/// Who gets in. It asks no store for that: a flood of bad tickets costs a signature check each.
pub trait Guard: Send + Sync + 'static {
    /// Checks a ticket, and that its instance is not revoked.
    fn admit(&self, ticket: &Redacted, connection: &ConnectionId, now: Now) -> Result<Guest, Rejection>;

    /// Whether a guest's instance was revoked meanwhile.
    fn is_revoked(&self, guest: &Guest) -> bool;

    /// STUN and TURN servers for a guest. `turn` is how the session was made.
    fn ice(&self, guest: &Guest, turn: bool, now: Now) -> BoxFuture<'static, Ice>;
}

/// Somebody with a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guest {
    /// Of the ticket.
    pub session: SessionId,
    /// Of the ticket.
    pub incarnation: Incarnation,
    /// Of the ticket.
    pub slot: Slot,
    /// Of the ticket.
    pub instance: InstanceId,
    /// The client's connection secret, hashed.
    pub connection: ConnectionHash,
    /// Of the ticket.
    pub may_turn: bool,
}

/// Why somebody doesn't get in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rejection {
    /// Not a ticket of this relay, or expired.
    BadTicket,
    /// Its instance was revoked.
    Revoked,
}

impl Endpoint {
    fn jitter(&self) -> u8 {
        let mut jitter = [0; 1];
        self.entropy.fill(&mut jitter);
        let [jitter] = jitter;
        jitter
    }
}

#[cfg(test)]
mod tests;
