//! Who gets a slot, and whose peers are given STUN and TURN servers.
//!
//! Asked by the WebSocket endpoint at each `hello` and `ice`. Invariant: TURN takes two words, the session's and the
//! ticket's. Two instances that met at a rendezvous share a session that the first one made, but not what the operator
//! thinks of it.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use sovereign_relay_actors::now::Now;
use sovereign_relay_protocol::{redacted::Redacted, signal::id::ConnectionId};

use crate::{
    auth::Authority,
    turn::{Ice, Turn},
    ws::{Guard, Guest, Rejection},
};

/// Lets in whoever has a ticket of this relay whose instance was not revoked.
pub(super) struct Gate {
    pub(super) authority: Arc<Authority>,
    pub(super) turn: Arc<Turn>,
}

impl Guard for Gate {
    fn admit(&self, ticket: &Redacted, connection: &ConnectionId, now: Now) -> Result<Guest, Rejection> {
        let claims = self
            .authority
            .tickets()
            .verify(ticket.expose(), now.unix)
            .map_err(|_| Rejection::BadTicket)?;
        if self.authority.is_gone(claims.instance) {
            return Err(Rejection::Revoked);
        }
        Ok(Guest {
            session: claims.session,
            incarnation: claims.incarnation,
            slot: claims.slot,
            instance: claims.instance,
            connection: self
                .authority
                .derived()
                .connection_hash(claims.session, *connection),
            may_turn: claims.may_turn,
        })
    }

    fn is_revoked(&self, guest: &Guest) -> bool {
        self.authority.is_gone(guest.instance)
    }

    fn ice(&self, guest: &Guest, turn: bool, now: Now) -> BoxFuture<'static, Ice> {
        if !(turn && guest.may_turn) {
            return ready(Ice::default()).boxed();
        }
        let (giver, guest) = (self.turn.clone(), *guest);
        let given = async move {
            let ice = giver.vend(guest.instance, guest.session, guest.slot, now).await;
            // Without credentials peers may still find a direct way, so one too many is no error.
            ice.unwrap_or_default()
        };
        given.boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sovereign_relay_actors::session::port::Incarnation;
    use sovereign_relay_protocol::signal::id::{SessionId, Slot};

    use super::*;
    use crate::{
        auth::{
            TicketClaims,
            authority::tests::kit::{HOUR, Kit, at},
        },
        turn::TurnServers,
    };

    #[tokio::test]
    async fn turn_takes_a_session_made_with_it_and_a_ticket_of_an_instance_that_may_have_it() {
        let kit = Kit::new().await;
        let (instance, _) = kit.enroll().await;
        let servers = TurnServers {
            stun: Vec::new(),
            turn: vec!["turn:turn.example".to_owned()],
            secret: Redacted::new("north"),
        };
        let gate = Gate {
            authority: kit.authority.clone(),
            turn: Arc::new(Turn::new(Some(servers), 30, None, kit.authority.clone())),
        };
        let now = at(Duration::ZERO);
        for (session_turns, may_turn, given) in [
            (false, false, 0),
            (false, true, 0),
            (true, false, 0),
            (true, true, 1),
        ] {
            let claims = TicketClaims {
                session: SessionId::from_bytes([9; 16]),
                incarnation: Incarnation(1),
                slot: Slot::B,
                expires_at: at(HOUR).unix,
                instance,
                may_turn,
            };
            let ticket = kit.authority.tickets().sign(&claims).unwrap();
            let connection = ConnectionId::parse(&"c1".repeat(16)).unwrap();
            let guest = gate.admit(&ticket, &connection, now).unwrap();
            let ice = gate.ice(&guest, session_turns, now).await;
            assert_eq!(ice.servers.len(), given, "{session_turns} {may_turn}");
        }
    }
}
