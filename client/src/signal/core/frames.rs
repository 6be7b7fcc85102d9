//! What the relay says, and what the core makes of it.

use std::time::Duration;

use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{PeerPresence, ServerFrame, Welcome},
};

use super::{Core, Open, Phase, inbox::Arrival, liveness::Liveness, outbox::Implausible};
use crate::signal::event::{ConnectionEvent, Ended, Interruption};

/// Longest delay of a refusal that is believed: the session would be over.
const RETRY_MAX: Duration = Duration::from_secs(60);

impl Core {
    /// A text frame came.
    pub(crate) fn text(&mut self, text: &str, now: Duration) {
        let Ok(frame) = ServerFrame::parse(text) else {
            self.interrupt(Interruption::Fault, Some(CloseCode::Malformed), now);
            return;
        };
        match (&mut self.phase, frame) {
            (Phase::Greeting { .. }, Some(ServerFrame::Welcome(welcome))) => self.welcomed(welcome, now),
            (Phase::Open(open), frame) => {
                open.liveness.heard(now);
                if let Some(frame) = frame {
                    self.heed(frame, now);
                }
            }
            (Phase::Greeting { .. }, _) => {
                self.interrupt(Interruption::Fault, Some(CloseCode::Malformed), now);
            }
            (Phase::Waiting { .. } | Phase::Dialing { .. } | Phase::Over, _) => {}
        }
    }

    /// A binary frame came; no relay sends one.
    pub(crate) fn binary(&mut self, now: Duration) {
        self.interrupt(Interruption::Fault, Some(CloseCode::Unsupported), now);
    }

    fn welcomed(&mut self, welcome: Welcome, now: Duration) {
        if welcome.role != welcome.slot.role() {
            // Both sides would give way in a negotiation, or neither.
            self.interrupt(Interruption::Fault, Some(CloseCode::Malformed), now);
            return;
        }
        let resumed = self.slot.is_some();
        let same_slot = self.slot.is_none_or(|slot| slot == welcome.slot);
        let in_step = self.outbox.welcomed(welcome.next, welcome.limits).is_ok()
            && self.inbox.welcomed(welcome.base, now);
        if !same_slot || !in_step {
            self.end(Ended::OutOfStep, Some(CloseCode::OutOfStep));
            return;
        }
        self.slot = Some(welcome.slot);
        self.last_open = now;
        self.phase = Phase::Open(Open {
            since: now,
            liveness: Liveness::new(now),
            move_at: None,
            pong: false,
        });
        let peer = welcome.peer;
        let welcome = Box::new(welcome);
        self.events.tell(ConnectionEvent::Connected { welcome, resumed });
        self.noticed(peer);
    }

    fn heed(&mut self, frame: ServerFrame, now: Duration) {
        match frame {
            ServerFrame::Message {
                seq,
                generation,
                content,
            } => {
                let event = ConnectionEvent::Message { generation, content };
                self.sequenced(seq, generation, event, now);
            }
            ServerFrame::Peer {
                state,
                generation,
                seq,
            } => self.peer(PeerPresence { state, generation }, seq, now),
            ServerFrame::Ack { n } => {
                let outcome = self.outbox.acknowledged(n);
                self.settle(outcome, now);
            }
            ServerFrame::Err { code, n, retry_ms } => {
                let retry_in = Duration::from_millis(retry_ms).min(RETRY_MAX);
                self.events.tell(ConnectionEvent::Delayed { code, retry_in });
                let outcome = self.outbox.refused(n, code, now + retry_in);
                self.settle(outcome, now);
            }
            ServerFrame::Ice {
                ice_servers: servers,
                expires_at,
            } => self
                .events
                .tell(ConnectionEvent::IceServers { servers, expires_at }),
            ServerFrame::Goaway { in_ms } => self.goaway(Duration::from_millis(in_ms), now),
            ServerFrame::Ping => self.pong(),
            ServerFrame::Pong => {}
            ServerFrame::Welcome(_) => {
                self.interrupt(Interruption::Fault, Some(CloseCode::Malformed), now);
            }
        }
    }

    fn sequenced(&mut self, seq: u64, generation: u32, event: ConnectionEvent, now: Duration) {
        match self.inbox.arrived(seq, generation) {
            Arrival::New => self.events.sequenced(seq, event),
            Arrival::Stale => self.events.sequenced(seq, ConnectionEvent::Stale),
            Arrival::Known => {}
            Arrival::Gap => {
                self.interrupt(Interruption::Fault, Some(CloseCode::OutOfStep), now);
            }
        }
    }

    fn peer(&mut self, presence: PeerPresence, seq: Option<u64>, now: Duration) {
        let Some(seq) = seq else {
            self.noticed(presence);
            return;
        };
        match self.inbox.arrived(seq, presence.generation) {
            Arrival::New => {
                let told = self.presence.announced(presence);
                self.events.sequenced(seq, ConnectionEvent::Peer(told));
            }
            Arrival::Stale => self.events.sequenced(seq, ConnectionEvent::Stale),
            Arrival::Known => {}
            Arrival::Gap => {
                self.interrupt(Interruption::Fault, Some(CloseCode::OutOfStep), now);
            }
        }
    }

    fn noticed(&mut self, presence: PeerPresence) {
        if let Some(told) = self.presence.noticed(presence) {
            self.events.tell(ConnectionEvent::Peer(told));
        }
    }

    fn settle(&mut self, outcome: Result<(), Implausible>, now: Duration) {
        if outcome == Err(Implausible) {
            self.interrupt(Interruption::Fault, Some(CloseCode::OutOfStep), now);
        }
    }

    fn goaway(&mut self, within: Duration, now: Duration) {
        let move_at = now + self.jitter.within(within);
        if let Phase::Open(open) = &mut self.phase {
            open.move_at.get_or_insert(move_at);
        }
    }

    fn pong(&mut self) {
        if let Phase::Open(open) = &mut self.phase {
            open.pong = true;
        }
    }
}
