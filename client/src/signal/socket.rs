//! An open WebSocket, as the shell needs it: one thing at a time, and each wait may be given up.

use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{FutureExt as _, Sink, SinkExt as _, Stream as _, StreamExt as _};
use sovereign_relay_protocol::signal::{close::CloseCode, frame::ClientFrame};
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message, Utf8Bytes,
        protocol::{CloseFrame, frame::coding},
    },
};

use super::dial::BoxStream;

/// Close code of a connection that just stopped.
const LOST: u16 = 1006;
/// Close code of a close frame that has none (RFC 6455, 7.1.5).
const NO_CODE: u16 = 1005;
/// A closing handshake is waited for so long.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

pub(super) struct Socket {
    websocket: WebSocketStream<BoxStream>,
    unflushed: bool,
}

/// What happens on a socket.
pub(super) enum SocketEvent {
    Text(Utf8Bytes),
    /// A frame that this protocol has no use for.
    Binary,
    /// A ping or pong of the WebSocket.
    Control,
    Closed(u16),
    /// It can take a frame.
    Writable,
}

impl Socket {
    pub(super) fn new(websocket: WebSocketStream<BoxStream>) -> Self {
        let unflushed = false;
        Self { websocket, unflushed }
    }

    /// Waits for the next thing that happens: something that came if `reading`, room for a frame if `writing`.
    pub(super) async fn event(&mut self, reading: bool, writing: bool) -> SocketEvent {
        poll_fn(|context| self.poll_event(context, reading, writing)).await
    }

    /// Hands over a frame; call it when the socket is writable. It leaves when nothing else is to be written.
    pub(super) fn write(&mut self, frame: &ClientFrame) {
        self.unflushed = true;
        let message = Message::text(frame.to_text());
        // An error shows at the next read or flush, too.
        let _ = self.websocket.start_send_unpin(message);
    }

    /// Says goodbye and drops the connection, without waiting for anything.
    pub(super) fn drop_with(mut self, code: CloseCode) {
        let _ = self.websocket.send(close_message(code)).now_or_never();
    }

    /// Says goodbye and waits for the answer, but not for long.
    pub(super) async fn close(mut self, code: CloseCode) {
        let handshake = async {
            if self.websocket.send(close_message(code)).await.is_ok() {
                while let Some(Ok(message)) = self.websocket.next().await {
                    if message.is_close() {
                        return;
                    }
                }
            }
        };
        let _ = timeout(CLOSE_LIMIT, handshake).await;
    }

    fn poll_event(&mut self, context: &mut Context<'_>, reading: bool, writing: bool) -> Poll<SocketEvent> {
        let mut websocket = Pin::new(&mut self.websocket);
        if writing {
            match websocket.as_mut().poll_ready(context) {
                Poll::Ready(Ok(())) => return Poll::Ready(SocketEvent::Writable),
                Poll::Ready(Err(_)) => return Poll::Ready(SocketEvent::Closed(LOST)),
                Poll::Pending => {}
            }
        } else if self.unflushed {
            match websocket.as_mut().poll_flush(context) {
                Poll::Ready(Ok(())) => self.unflushed = false,
                // What came before the end is still to be read.
                Poll::Ready(Err(_)) if reading => self.unflushed = false,
                Poll::Ready(Err(_)) => return Poll::Ready(SocketEvent::Closed(LOST)),
                Poll::Pending => {}
            }
        }
        if !reading {
            return Poll::Pending;
        }
        websocket.poll_next(context).map(|next| match next {
            Some(Ok(message)) => event_of(message),
            Some(Err(_)) | None => SocketEvent::Closed(LOST),
        })
    }
}

fn event_of(message: Message) -> SocketEvent {
    match message {
        Message::Text(text) => SocketEvent::Text(text),
        Message::Binary(_) | Message::Frame(_) => SocketEvent::Binary,
        Message::Ping(_) | Message::Pong(_) => SocketEvent::Control,
        Message::Close(frame) => SocketEvent::Closed(frame.map_or(NO_CODE, |frame| frame.code.into())),
    }
}

fn close_message(code: CloseCode) -> Message {
    // 1006 and its like never travel; a peer that is gone doesn't read this either.
    Message::Close(Some(CloseFrame {
        code: coding::CloseCode::from(code.code()),
        reason: code.reason().into(),
    }))
}
