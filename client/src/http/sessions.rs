//! Signaling sessions, as an instance makes and ends them.

use serde::Serialize;
use sovereign_relay_protocol::{
    redacted::Redacted,
    signal::{
        id::Slot,
        seal::SessionSecret,
        session::{EndToEnd, SessionCreated},
    },
};

use crate::signal::invitation::Invitation;

/// What a session is asked to be. The default: 120 s, sealed, no TURN.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionSettings {
    /// How long it lives: 30 to 600 s.
    pub ttl_seconds: Option<u32>,
    /// Whether its peers are given TURN credentials.
    pub turn: bool,
    /// Whether messages must be sealed.
    pub e2e: EndToEnd,
    /// Where two instances that share a secret meet
    /// ([`Rendezvous`](sovereign_relay_protocol::signal::rendezvous::Rendezvous)).
    pub rendezvous: Option<Redacted>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingsOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_seconds: Option<u32>,
    turn: bool,
    e2e: EndToEnd,
    #[serde(skip_serializing_if = "Option::is_none")]
    rendezvous: Option<&'a str>,
}

impl SessionSettings {
    pub(super) fn out(&self) -> SettingsOut<'_> {
        SettingsOut {
            ttl_seconds: self.ttl_seconds,
            turn: self.turn,
            e2e: self.e2e,
            rendezvous: self.rendezvous.as_ref().map(Redacted::expose),
        }
    }
}

/// The way into `slot` of a session that was just made; `None` where the ticket is the other instance's.
pub fn invitation(session: &SessionCreated, slot: Slot, secret: &SessionSecret) -> Option<Invitation> {
    Some(Invitation {
        url: session.url.clone(),
        session_id: session.session_id,
        ticket: session.tickets.of(slot)?.clone(),
        secret: secret.clone(),
    })
}

#[cfg(test)]
mod tests {
    use sovereign_relay_protocol::{
        signal::{
            id::SessionId,
            session::{SessionLimits, SessionRequest, Tickets},
        },
        time::UnixMillis,
    };

    use super::*;

    #[test]
    fn what_is_asked_for_is_what_the_relay_parses() {
        let parse = |settings: &SessionSettings| {
            SessionRequest::parse(&serde_json::to_vec(&settings.out()).unwrap()).unwrap()
        };
        let default = parse(&SessionSettings::default());
        assert_eq!(default, SessionRequest::parse(b"").unwrap());
        let full = SessionSettings {
            ttl_seconds: Some(600),
            turn: true,
            e2e: EndToEnd::Optional,
            rendezvous: Some(Redacted::new("r".repeat(43))),
        };
        let parsed = parse(&full);
        assert_eq!(
            (parsed.ttl_seconds, parsed.turn, parsed.e2e),
            (600, true, EndToEnd::Optional)
        );
        assert_eq!(parsed.rendezvous, full.rendezvous);
    }

    #[test]
    fn an_invitation_is_only_made_for_a_slot_whose_ticket_is_ours() {
        let created = SessionCreated {
            session_id: SessionId::from_bytes([1; 16]),
            expires_at: UnixMillis(0),
            url: "wss://relay.example/v1/signal".to_owned(),
            tickets: Tickets {
                a: None,
                b: Some(Redacted::new("t")),
            },
            limits: SessionLimits::default(),
        };
        let json = serde_json::to_string(&created).unwrap();
        let created: SessionCreated = serde_json::from_str(&json).unwrap();
        let secret = SessionSecret::from_bytes([2; 32]);
        assert!(invitation(&created, Slot::A, &secret).is_none());
        let invitation = invitation(&created, Slot::B, &secret).unwrap();
        assert_eq!(invitation.ticket.expose(), "t");
    }
}
