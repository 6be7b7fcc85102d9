//! Tickets: the right to one slot of one session, as JWTs (RFC 7519) signed with HS256 (RFC 7518, 3.2).
//!
//! Made by the sessions API, checked by the WebSocket endpoint at each `hello`. A ticket is a capability: whoever
//! holds it may take the slot, as often as it likes, until the session ends. It names the session's incarnation, so
//! that one of an earlier session at the same rendezvous opens nothing: the store compares that at the bind.
//!
//! Invariant: a ticket is checked in memory alone, before any store is asked; nothing of it is believed before its
//! signature, and HS256 is the only one. The key is derived from the enrollment secret with a label of its own, so
//! that no instance key is a ticket and no ticket an instance key.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation, errors::Error as JwtError};
use serde::{Deserialize, Serialize};
use sovereign_relay_actors::{ports::Entropy, session::port::Incarnation};
use sovereign_relay_protocol::{
    id::InstanceId,
    redacted::Redacted,
    signal::id::{SessionId, Slot},
    time::UnixMillis,
};
use zeroize::Zeroizing;

use super::{
    derived::derive,
    hs256::{signer, validation, verifier},
    keys::Secrets,
};

/// Longest ticket that is looked at. Ours have under 300 bytes.
const TICKET_BYTES: usize = 512;
/// How far this relay's clock may be ahead of the one that made the ticket. The session's own life is measured by
/// its store.
const SKEW_MILLIS: u64 = 60_000;
/// Of the HKDF.
const LABEL: &str = "session ticket";

/// What a ticket says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TicketClaims {
    /// Of which session.
    pub session: SessionId,
    /// Of which life of it.
    pub incarnation: Incarnation,
    /// Which slot.
    pub slot: Slot,
    /// When the session ends. A ticket carries whole seconds, rounded up.
    pub expires_at: UnixMillis,
    /// The instance that the slot belongs to.
    pub instance: InstanceId,
    /// Whether that instance may have TURN credentials. They need a session that was made with TURN besides.
    pub may_turn: bool,
}

/// A ticket that opens nothing. 4401 for both; they are told apart for the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TicketError {
    /// Not signed by this relay, or no ticket at all.
    #[error("the ticket is not valid here")]
    Invalid,
    /// The session is over.
    #[error("the ticket has expired")]
    Expired,
}

/// A ticket that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the ticket could not be signed")]
pub struct SignError(#[source] JwtError);

/// Signs and verifies tickets.
pub struct Tickets {
    header: Header,
    signer: EncodingKey,
    verifiers: Vec<DecodingKey>,
    validation: Validation,
}

/// As on the wire. Short names: a ticket travels in every `hello`, and inside sealed pushes.
#[derive(Serialize, Deserialize)]
struct Wire {
    sid: SessionId,
    inc: u64,
    slot: Slot,
    exp: u64,
    ins: InstanceId,
    /// Absent from most tickets, and from those of replicas that don't know it: no TURN.
    #[serde(default, skip_serializing_if = "is_false")]
    trn: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Tickets {
    /// Under keys of the secrets, the current one's signing; without any, under one of this process.
    pub fn new(secrets: Option<&Secrets>, entropy: &dyn Entropy) -> Self {
        let mut random = Zeroizing::new([0; 32]);
        entropy.fill(random.as_mut());
        let current = secrets.map_or(random.as_slice(), |secrets| secrets.current().expose().as_bytes());
        let previous = secrets.into_iter().flat_map(Secrets::previous);
        let previous = previous.map(|secret| verifier(key_of(secret.expose().as_bytes()).as_slice()));
        let key = key_of(current);
        Self {
            header: Header::new(Algorithm::HS256),
            signer: signer(key.as_slice()),
            verifiers: std::iter::once(verifier(key.as_slice()))
                .chain(previous)
                .collect(),
            validation: validation(),
        }
    }

    /// Makes a ticket. The same claims give the same one.
    pub fn sign(&self, claims: &TicketClaims) -> Result<Redacted, SignError> {
        jsonwebtoken::encode(&self.header, &Wire::from(claims), &self.signer)
            .map(Redacted::new)
            .map_err(SignError)
    }

    /// What a ticket says, if one of the secrets signed it and its session may still live.
    pub fn verify(&self, ticket: &str, now: UnixMillis) -> Result<TicketClaims, TicketError> {
        if ticket.len() > TICKET_BYTES {
            return Err(TicketError::Invalid);
        }
        let claims = self
            .verifiers
            .iter()
            .find_map(|verifier| jsonwebtoken::decode::<Wire>(ticket, verifier, &self.validation).ok())
            .map(|token| TicketClaims::from(token.claims))
            .ok_or(TicketError::Invalid)?;
        if now > claims.expires_at.plus_millis(SKEW_MILLIS) {
            return Err(TicketError::Expired);
        }
        Ok(claims)
    }
}

impl From<&TicketClaims> for Wire {
    fn from(claims: &TicketClaims) -> Self {
        Self {
            sid: claims.session,
            inc: claims.incarnation.0,
            slot: claims.slot,
            exp: claims.expires_at.0.div_ceil(1000),
            ins: claims.instance,
            trn: claims.may_turn,
        }
    }
}

impl From<Wire> for TicketClaims {
    fn from(wire: Wire) -> Self {
        Self {
            session: wire.sid,
            incarnation: Incarnation(wire.inc),
            slot: wire.slot,
            expires_at: UnixMillis(wire.exp.saturating_mul(1000)),
            instance: wire.ins,
            may_turn: wire.trn,
        }
    }
}

fn key_of(secret: &[u8]) -> Zeroizing<[u8; 32]> {
    Zeroizing::new(derive(secret, LABEL))
}

#[cfg(test)]
mod tests;
