//! What a client says once it has its slot, message by message, until one has to be answered by the session first.
//!
//! Called with every read, and whenever what held reading back is over. Invariant: one message at a time is with the
//! session, and a message's parts are timed from the first of them that came after the message before.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use sovereign_relay_actors::session::Said;
use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{ClientFrame, Opaque, ServerFrame},
};

use super::Connection;
use crate::ws::{end::End, greeting::parse, socket::Input};

/// How often a client may ask for fresh TURN credentials.
const ICE_PERIOD: Duration = Duration::from_secs(30);

impl Connection<'_> {
    /// Takes the messages that are there, until one has to be answered first.
    pub(super) fn process(&mut self) -> Result<(), End> {
        while self.reads() {
            let Some(input) = self.socket.next()? else {
                let now = self.endpoint.clock.now().mono;
                self.heartbeat.on_fragments(self.socket.is_incomplete(), now);
                return Ok(());
            };
            if !self.socket.is_between_parts() {
                self.heartbeat.on_whole();
            }
            match input {
                Input::Text(text) => self.on_text(&text)?,
                Input::Ping(data) => {
                    self.socket.answer(&data);
                    self.write()?;
                }
                Input::Pong => {}
                Input::Close => return Err(End::ByClient),
                Input::Cut => return Err(End::Lost),
            }
        }
        // The rest is not read: that it doesn't come is not the client's doing.
        self.heartbeat.on_whole();
        Ok(())
    }

    fn on_text(&mut self, text: &Bytes) -> Result<(), End> {
        match parse(text)? {
            // Its peer would get a longer frame than this one was, and may hold it to the same limit.
            ClientFrame::Message { content, .. } if !self.has_room_for(&content) => {
                return Err(CloseCode::TooLarge.into());
            }
            ClientFrame::Message { n, content } => self.submit(Said::Message { n, content }),
            ClientFrame::Ack { seq } => self.submit(Said::Ack { seq }),
            ClientFrame::Bye { mood } => {
                // It reads no more: that its slot is not its own any longer is no news to it.
                self.is_leaving = true;
                self.page = None;
                self.submit(Said::Bye { mood });
            }
            ClientFrame::Ping => return self.on_ping(),
            ClientFrame::Ice => self.on_ice(),
            ClientFrame::Hello(_) => return Err(CloseCode::Malformed.into()),
            ClientFrame::Pong | ClientFrame::Unknown => {}
        }
        Ok(())
    }

    fn has_room_for(&self, content: &Opaque) -> bool {
        self.endpoint.sessions.limits().has_room_for(content)
    }

    fn submit(&mut self, said: Said) {
        let held = self.held.clone();
        self.answer = Some(async move { held.submit(said).await }.boxed_local());
    }

    fn on_ping(&mut self) -> Result<(), End> {
        // A pong that waits answers this one too.
        if !self.socket.has_passed(self.pong) {
            return Ok(());
        }
        self.say(&ServerFrame::Pong);
        self.pong = self.socket.mark();
        self.write()
    }

    fn on_ice(&mut self) {
        let now = self.endpoint.clock.now();
        if self
            .iced
            .is_some_and(|iced| now.until(iced.saturating_add(ICE_PERIOD)) > Duration::ZERO)
        {
            return;
        }
        self.iced = Some(now.mono);
        self.ice = Some(self.endpoint.guard.ice(&self.guest, self.turn, now));
    }
}
