//! What goes out, one frame at a time, in this order: what keeps the connection, acknowledgements, messages, the rest.

use std::time::Duration;

use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{ClientFrame, Hello},
};

use super::{Core, Leaving, Phase};
use crate::signal::event::Ended;

impl Core {
    /// The next frame, for a socket that can take one.
    pub(crate) fn transmit(&mut self, now: Duration) -> Option<ClientFrame> {
        match &mut self.phase {
            Phase::Greeting { said_hello, .. } if !*said_hello => {
                *said_hello = true;
                Some(self.hello())
            }
            Phase::Open(_) => self.transmit_open(now),
            Phase::Greeting { .. } | Phase::Waiting { .. } | Phase::Dialing { .. } | Phase::Over => None,
        }
    }

    fn hello(&mut self) -> ClientFrame {
        ClientFrame::Hello(Hello {
            ticket: self.identity.ticket.clone(),
            connection: self.identity.connection,
            attempt: self.attempt,
            last: self.inbox.greet(),
        })
    }

    fn transmit_open(&mut self, now: Duration) -> Option<ClientFrame> {
        let frame = self.due_frame(now)?;
        if let Phase::Open(open) = &mut self.phase {
            open.liveness.said(now);
        }
        if matches!(frame, ClientFrame::Bye { .. }) {
            self.end(Ended::Left, Some(CloseCode::Normal));
        }
        Some(frame)
    }

    fn due_frame(&mut self, now: Duration) -> Option<ClientFrame> {
        let Phase::Open(open) = &mut self.phase else {
            return None;
        };
        if std::mem::take(&mut open.pong) {
            return Some(ClientFrame::Pong);
        }
        if open.liveness.take_ping() {
            return Some(ClientFrame::Ping);
        }
        let leaving = self.leaving.as_ref().filter(|_| self.outbox.is_empty());
        if let Some(seq) = self.inbox.transmit(now, leaving.is_some()) {
            return Some(ClientFrame::Ack { seq });
        }
        if let Some((n, content)) = self.outbox.transmit(now) {
            return Some(ClientFrame::Message { n, content });
        }
        if let Some(Leaving { mood, .. }) = leaving {
            return Some(ClientFrame::Bye { mood: Some(*mood) });
        }
        self.ice.transmit(now).then_some(ClientFrame::Ice)
    }
}
