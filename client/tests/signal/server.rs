//! A relay's end of a WebSocket, driven by a test frame by frame. Every wait has a deadline.

use std::{future::Future, time::Duration};

use futures_util::{SinkExt as _, StreamExt as _};
use sovereign_relay_client::{
    protocol::{
        redacted::Redacted,
        signal::{
            SUBPROTOCOL,
            frame::{ClientFrame, Hello, PeerPresence, PeerState, ServerFrame, Welcome},
            id::{SessionId, Slot},
            seal::SessionSecret,
            session::SessionLimits,
        },
        time::UnixMillis,
    },
    signal::invitation::Invitation,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{Request, Response},
        http::header::SEC_WEBSOCKET_PROTOCOL,
        protocol::CloseFrame,
    },
};

pub const SESSION: SessionId = SessionId::from_bytes([9; 16]);

pub fn secret() -> SessionSecret {
    SessionSecret::from_bytes([7; 32])
}

/// Waits for what must happen soon.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future)
        .await
        .expect("it happens soon")
}

pub struct Server {
    pub listener: TcpListener,
}

pub struct Peer<S = TcpStream> {
    socket: WebSocketStream<S>,
    /// The request line and headers of the upgrade.
    pub upgrade: String,
}

pub fn welcome(slot: Slot, next: u64, base: u64) -> Welcome {
    Welcome {
        slot,
        role: slot.role(),
        generation: 1,
        next,
        base,
        peer: PeerPresence {
            state: PeerState::Absent,
            generation: 0,
        },
        expires_at: UnixMillis(0),
        grace_seconds: 30,
        heartbeat_seconds: 25,
        limits: hurried(),
        ice_servers: Vec::new(),
    }
}

/// A relay that lets a test go as fast as it can.
pub fn hurried() -> SessionLimits {
    SessionLimits {
        messages_per_second: 100_000,
        burst: 1000,
        ..SessionLimits::default()
    }
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { listener }
    }

    pub fn invitation(&self) -> Invitation {
        let address = self.listener.local_addr().unwrap();
        Invitation {
            url: format!("ws://{address}/v1/signal"),
            session_id: SESSION,
            ticket: Redacted::new("the-ticket"),
            secret: secret(),
        }
    }

    /// The next connection.
    pub async fn accept(&self) -> Peer {
        let (stream, _) = soon(self.listener.accept()).await.unwrap();
        Peer::upgrade(stream).await
    }

    /// The next connection, greeted.
    pub async fn welcome(&self, welcome: Welcome) -> (Peer, Hello) {
        let mut peer = self.accept().await;
        let hello = peer.hello().await;
        peer.say(&ServerFrame::Welcome(welcome)).await;
        (peer, hello)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub async fn upgrade(stream: S) -> Self {
        let mut upgrade = String::new();
        #[allow(clippy::result_large_err, reason = "the library's signature")]
        let callback = |request: &Request, mut response: Response| {
            upgrade = format!("{} {:?}", request.uri(), request.headers());
            let asked = request.headers().get(SEC_WEBSOCKET_PROTOCOL).unwrap().clone();
            assert_eq!(asked, SUBPROTOCOL);
            response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, asked);
            Ok(response)
        };
        let socket = soon(accept_hdr_async(stream, callback)).await.unwrap();
        Self { socket, upgrade }
    }

    /// Whatever comes next.
    pub async fn raw(&mut self) -> Option<Message> {
        soon(self.socket.next()).await.and_then(Result::ok)
    }

    /// The next frame of the protocol.
    pub async fn frame(&mut self) -> ClientFrame {
        loop {
            match self.raw().await.expect("a frame") {
                Message::Text(text) => return ClientFrame::parse(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("a text frame, not {other:?}"),
            }
        }
    }

    pub async fn hello(&mut self) -> Hello {
        match self.frame().await {
            ClientFrame::Hello(hello) => hello,
            other => panic!("a hello, not {other:?}"),
        }
    }

    /// The next message, with whatever comes between skipped.
    pub async fn message(&mut self) -> (u64, String) {
        loop {
            if let ClientFrame::Message { n, content } = self.frame().await {
                return (n, content.expose().to_owned());
            }
        }
    }

    pub async fn say(&mut self, frame: &ServerFrame) {
        self.raw_say(Message::text(frame.to_text())).await;
    }

    pub async fn raw_say(&mut self, message: Message) {
        soon(self.socket.send(message)).await.unwrap();
    }

    pub async fn close(mut self, code: u16) {
        let frame = CloseFrame {
            code: code.into(),
            reason: "".into(),
        };
        soon(self.socket.close(Some(frame))).await.unwrap();
        while self.raw().await.is_some() {}
    }
}
