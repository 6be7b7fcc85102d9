//! A peer on a signaling connection: an independent WebSocket client and as much of the protocol as tests look at.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use sovereign_relay_protocol::signal::SUBPROTOCOL;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{self, Message, client::IntoClientRequest as _},
};

use super::DEADLINE;

/// One connection.
pub struct SignalPeer {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl SignalPeer {
    /// Connects to a session that the API made, and says `hello` with the ticket of a slot.
    pub async fn dial(session: &Value, slot: &str) -> Self {
        let mut request = session["url"].as_str().unwrap().into_client_request().unwrap();
        let subprotocol = SUBPROTOCOL.parse().unwrap();
        request
            .headers_mut()
            .insert("sec-websocket-protocol", subprotocol);
        let (socket, _) = connect_async(request).await.unwrap();
        let mut peer = Self { socket };
        let ticket = session["tickets"][slot].as_str().unwrap();
        let connection = format!("{:032x}", u128::from(slot.as_bytes()[0]));
        peer.send(json!({"t": "hello", "v": 1, "ticket": ticket, "cid": connection, "try": 1, "last": 0}))
            .await;
        peer
    }

    /// The same, welcomed.
    pub async fn join(session: &Value, slot: &str) -> (Self, Value) {
        let mut peer = Self::dial(session, slot).await;
        let welcome = peer.next().await.unwrap();
        assert_eq!(welcome["t"], "welcome", "{welcome}");
        (peer, welcome)
    }

    pub async fn send(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// The same on a connection that may be gone.
    pub async fn try_send(&mut self, frame: Value) -> Result<(), tungstenite::Error> {
        self.socket.send(Message::text(frame.to_string())).await
    }

    /// The next frame, or the code that the connection was closed with.
    pub async fn next(&mut self) -> Result<Value, u16> {
        loop {
            let next = timeout(DEADLINE, self.socket.next()).await;
            match next.expect("a frame in time") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(close))) => return Err(close.map_or(1005, |close| close.code.into())),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The next frame of a kind; others are skipped.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await.unwrap();
            if frame["t"] == kind {
                return frame;
            }
        }
    }

    /// The code that the connection is closed with; frames before that are skipped.
    pub async fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = self.next().await {
                return code;
            }
        }
    }
}
