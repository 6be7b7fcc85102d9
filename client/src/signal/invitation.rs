//! What a peer needs to join a session. One travels to the other side out of band, for instance in a sealed push.

use serde::{Deserialize, Serialize};
use sovereign_relay_protocol::{
    redacted::Redacted,
    signal::{id::SessionId, seal::SessionSecret},
};
use zeroize::Zeroizing;

use crate::entropy::random_bytes;

/// The way into one slot of a session, and the secret that the relay must never see.
#[derive(Clone, Debug)]
pub struct Invitation {
    /// Where the relay takes signaling connections.
    pub url: String,
    /// The session.
    pub session_id: SessionId,
    /// The right to a slot.
    pub ticket: Redacted,
    /// What the peers share.
    pub secret: SessionSecret,
}

/// A fresh secret for a session, from the operating system's generator.
pub fn new_secret() -> SessionSecret {
    SessionSecret::from_bytes(random_bytes())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    url: &'a str,
    session_id: SessionId,
    ticket: &'a str,
    secret: &'a str,
}

impl Invitation {
    /// JSON, for a channel that only the two peers can read: who has it can join in.
    pub fn to_json(&self) -> Zeroizing<String> {
        let wire = Wire {
            url: &self.url,
            session_id: self.session_id,
            ticket: self.ticket.expose(),
            secret: &self.secret.expose_text(),
        };
        // Strings can always be written.
        Zeroizing::new(serde_json::to_string(&wire).unwrap_or_default())
    }

    /// Parses what [`Invitation::to_json`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Parsed {
            url: String,
            session_id: SessionId,
            ticket: Redacted,
            secret: Redacted,
        }
        let wire: Parsed = serde_json::from_str(text).ok()?;
        Some(Self {
            url: wire.url,
            session_id: wire.session_id,
            ticket: wire.ticket,
            secret: SessionSecret::parse(wire.secret.expose())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_survives_its_channel_and_prints_no_secret() {
        let invitation = Invitation {
            url: "wss://relay.example/v1/signal".to_owned(),
            session_id: SessionId::from_bytes([3; 16]),
            ticket: Redacted::new("marked"),
            secret: SessionSecret::from_bytes([5; 32]),
        };
        let parsed = Invitation::parse(&invitation.to_json()).unwrap();
        assert_eq!(
            (&parsed.url, parsed.session_id),
            (&invitation.url, invitation.session_id)
        );
        assert_eq!(parsed.ticket, invitation.ticket);
        assert_eq!(parsed.secret.expose(), invitation.secret.expose());
        let printed = format!("{invitation:?}");
        assert!(!printed.contains("marked") && !printed.contains(invitation.secret.expose_text().as_str()));
        assert!(Invitation::parse("{}").is_none() && Invitation::parse("").is_none());
    }
}
