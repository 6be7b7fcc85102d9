//! The API that makes, shows and ends sessions: `/v1/signal/sessions`.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    frame::{MESSAGE_ENVELOPE_BYTES, Opaque, PeerState},
    id::{SessionId, Slot},
};
use crate::{json::Object, limits, redacted::Redacted, time::UnixMillis};

/// Whether messages must be sealed end to end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum EndToEnd {
    /// Content that doesn't look sealed is refused.
    #[default]
    Required,
    /// The peers decide.
    Optional,
}

/// Body of `POST /v1/signal/sessions`, as it is documented.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionBody {
    /// How long the session lives: 30 to 600 s, 120 by default.
    #[cfg_attr(feature = "openapi", schema(minimum = 30, maximum = 600, default = 120))]
    pub ttl_seconds: Option<u32>,
    /// Whether its peers are given TURN credentials. Off by default.
    pub turn: Option<bool>,
    /// Whether messages must be sealed. Required by default.
    pub e2e: Option<EndToEnd>,
    /// Where two instances that share a secret meet: 22 to 128 characters of base64url.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub rendezvous: Option<Redacted>,
}

/// What a session is asked to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionRequest {
    /// How long it lives.
    pub ttl_seconds: u32,
    /// Whether its peers are given TURN credentials.
    pub turn: bool,
    /// Whether messages must be sealed.
    pub e2e: EndToEnd,
    /// Where two instances meet, if they do.
    pub rendezvous: Option<Redacted>,
}

/// A body that asks for no session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SessionRequestError {
    /// Not a JSON object, or a field has another type.
    #[error("the body is not a JSON object with the documented fields")]
    Malformed,
    /// Out of bounds.
    #[error("ttlSeconds is not from 30 to 600")]
    Ttl,
    /// Too short to be unguessable, too long, or not base64url.
    #[error("rendezvous is not 22 to 128 characters of base64url")]
    Rendezvous,
}

impl SessionRequest {
    /// Parses a body; an empty one asks for the defaults.
    pub fn parse(body: &[u8]) -> Result<Self, SessionRequestError> {
        if body.is_empty() {
            return Self::from_body(SessionBody::default());
        }
        let Object(body) = serde_json::from_slice::<Object<SessionBody>>(body)
            .map_err(|_| SessionRequestError::Malformed)?;
        Self::from_body(body)
    }

    fn from_body(body: SessionBody) -> Result<Self, SessionRequestError> {
        let ttl_seconds = body.ttl_seconds.unwrap_or(limits::SESSION_SECONDS);
        if !(limits::SESSION_SECONDS_MIN..=limits::SESSION_SECONDS_MAX).contains(&ttl_seconds) {
            return Err(SessionRequestError::Ttl);
        }
        if body
            .rendezvous
            .as_ref()
            .is_some_and(|name| !is_rendezvous(name.expose()))
        {
            return Err(SessionRequestError::Rendezvous);
        }
        Ok(Self {
            ttl_seconds,
            turn: body.turn.unwrap_or(false),
            e2e: body.e2e.unwrap_or_default(),
            rendezvous: body.rendezvous,
        })
    }
}

fn is_rendezvous(text: &str) -> bool {
    (limits::RENDEZVOUS_CHARS_MIN..=limits::RENDEZVOUS_CHARS_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// 201 and 200 of `POST /v1/signal/sessions`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionCreated {
    /// The session.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub session_id: SessionId,
    /// When it ends.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: UnixMillis,
    /// Where peers connect.
    pub url: String,
    /// The caller's tickets: both, or at a rendezvous its own.
    pub tickets: Tickets,
    /// What the session may carry.
    pub limits: SessionLimits,
}

/// Rights to the slots of one session. They print nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Tickets {
    /// Of slot a.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub a: Option<Redacted>,
    /// Of slot b.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub b: Option<Redacted>,
}

impl Tickets {
    /// The ticket of one slot.
    pub fn of(&self, slot: Slot) -> Option<&Redacted> {
        match slot {
            Slot::A => self.a.as_ref(),
            Slot::B => self.b.as_ref(),
        }
    }
}

impl Serialize for Tickets {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            Slot::BOTH
                .into_iter()
                .filter_map(|slot| Some((slot, self.of(slot)?.expose()))),
        )
    }
}

/// What a session may carry, in `welcome` and in the API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionLimits {
    /// Longest frame, in either direction.
    pub frame_bytes: usize,
    /// Most messages that wait for one receiver.
    pub mailbox_messages: usize,
    /// Most bytes that wait for one receiver.
    pub mailbox_bytes: usize,
    /// Messages a second of one slot ...
    pub messages_per_second: u32,
    /// ... of which so many may come at once.
    pub burst: u32,
}

impl SessionLimits {
    /// Whether a message may have this content: the relay's `msg` with it is never longer than a frame may be,
    /// whatever its numbers. What is longer ends its sender's connection like any frame that is too long, 1009.
    pub fn has_room_for(&self, content: &Opaque) -> bool {
        content.json_bytes().saturating_add(MESSAGE_ENVELOPE_BYTES) <= self.frame_bytes
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            frame_bytes: limits::SIGNAL_FRAME_BYTES,
            mailbox_messages: limits::MAILBOX_MESSAGES,
            mailbox_bytes: limits::MAILBOX_BYTES,
            messages_per_second: limits::MESSAGES_PER_SECOND,
            burst: limits::MESSAGES_BURST,
        }
    }
}

/// 200 of `GET /v1/signal/sessions/{id}`. Never content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SessionView {
    /// The session.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub session_id: SessionId,
    /// When it ends.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub expires_at: UnixMillis,
    /// Both slots.
    pub slots: SlotViews,
}

/// Both slots of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlotViews {
    /// Slot a.
    pub a: SlotView,
    /// Slot b.
    pub b: SlotView,
}

/// One slot of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SlotView {
    /// Whether its peer is there.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: PeerState,
    /// How many page loads it has had.
    #[serde(rename = "gen")]
    pub generation: u32,
    /// Messages that wait for it.
    pub queued: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_body_asks_for_the_defaults() {
        for body in ["", "{}", r#"{"ttlSeconds":null,"later":1}"#] {
            let request = SessionRequest::parse(body.as_bytes()).unwrap();
            assert_eq!(
                (request.ttl_seconds, request.turn, request.e2e),
                (120, false, EndToEnd::Required)
            );
            assert_eq!(request.rendezvous, None);
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_by_name() {
        use SessionRequestError::{Malformed, Rendezvous, Ttl};
        let rendezvous = |length: usize| format!(r#"{{"rendezvous":"{}"}}"#, "r".repeat(length));
        for (body, error) in [
            ("[]", Malformed),
            (r#"{"turn":"yes"}"#, Malformed),
            (r#"{"e2e":"never"}"#, Malformed),
            (r#"{"ttlSeconds":-1}"#, Malformed),
            (r#"{"ttlSeconds":29}"#, Ttl),
            (r#"{"ttlSeconds":601}"#, Ttl),
            (&rendezvous(21), Rendezvous),
            (&rendezvous(129), Rendezvous),
            (r#"{"rendezvous":"abcdefghijklmnopqrstu="}"#, Rendezvous),
        ] {
            assert_eq!(SessionRequest::parse(body.as_bytes()), Err(error), "{body}");
        }
        for length in [22, 128] {
            assert!(SessionRequest::parse(rendezvous(length).as_bytes()).is_ok());
        }
    }

    #[test]
    fn a_caller_is_handed_the_tickets_it_may_have_and_no_others() {
        let tickets = Tickets {
            b: Some(Redacted::new("ticket")),
            ..Tickets::default()
        };
        assert_eq!(
            serde_json::to_value(&tickets).unwrap(),
            serde_json::json!({"b": "ticket"})
        );
        assert!(!format!("{tickets:?}").contains("ticket\""));
    }
}
