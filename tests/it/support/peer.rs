//! One end of a signaling connection that says whatever the test wants, through an independent WebSocket library.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use sovereign_relay_protocol::signal::SUBPROTOCOL;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpSocket, TcpStream},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest as _, protocol::CloseFrame},
};

use super::DEADLINE;

/// A connection that was lost, as browsers call it.
pub const LOST: u16 = 1006;

/// How a peer dials.
#[derive(Clone, Copy)]
pub struct Dial {
    /// Which of the test's connection secrets.
    pub connection: u64,
    pub attempt: u64,
    pub last: u64,
}

/// The first dial of a page load.
pub const fn load(connection: u64) -> Dial {
    resume(connection, 1, 0)
}

pub const fn resume(connection: u64, attempt: u64, last: u64) -> Dial {
    Dial {
        connection,
        attempt,
        last,
    }
}

pub struct Peer {
    pub socket: WebSocketStream<TcpStream>,
}

impl Peer {
    /// A socket after its handshake.
    pub async fn connect(url: &str) -> Self {
        Self::upgrade(url, TcpStream::connect(authority(url)).await.unwrap()).await
    }

    /// The same, for somebody who can't hold much of what comes.
    pub async fn connect_narrow(url: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let stream = socket.connect(authority(url).parse().unwrap()).await.unwrap();
        Self::upgrade(url, stream).await
    }

    /// The same through a proxy, for somebody of that address.
    pub async fn connect_from(url: &str, address: &str) -> Self {
        let stream = TcpStream::connect(authority(url)).await.unwrap();
        Self::upgrade_from(url, stream, Some(address)).await
    }

    async fn upgrade(url: &str, stream: TcpStream) -> Self {
        Self::upgrade_from(url, stream, None).await
    }

    async fn upgrade_from(url: &str, stream: TcpStream, address: Option<&str>) -> Self {
        let mut request = url.into_client_request().unwrap();
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", SUBPROTOCOL.parse().unwrap());
        if let Some(address) = address {
            headers.insert("x-forwarded-for", address.parse().unwrap());
        }
        let upgraded = timeout(DEADLINE, client_async(request, stream)).await;
        let (socket, response) = upgraded.expect("an answer").unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], SUBPROTOCOL);
        Self { socket }
    }

    pub async fn hello(&mut self, ticket: &str, dial: Dial) {
        self.send(hello(ticket, dial)).await;
    }

    pub async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub async fn message(&mut self, n: u64, content: &str) {
        self.send(json!({ "t": "msg", "n": n, "d": content })).await;
    }

    /// Messages `numbers`, whose content is their number, in one write.
    pub async fn messages(&mut self, numbers: std::ops::RangeInclusive<u64>) {
        for n in numbers {
            let frame = json!({ "t": "msg", "n": n, "d": n.to_string() });
            self.socket.feed(Message::text(frame.to_string())).await.unwrap();
        }
        self.socket.flush().await.unwrap();
    }

    pub async fn ack(&mut self, seq: u64) {
        self.send(json!({ "t": "ack", "seq": seq })).await;
    }

    /// Bytes that no WebSocket library would send.
    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).await.unwrap();
    }

    /// The next frame.
    pub async fn next(&mut self) -> Value {
        match self.next_or_end().await {
            Ok(frame) => frame,
            Err(end) => panic!("the socket ended: {end}"),
        }
    }

    /// The next frame of a kind; others are skipped, but an error that nobody waits for is a failure.
    pub async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["t"] == kind {
                return frame;
            }
            assert_ne!(frame["t"], "err", "while {kind} was waited for: {frame}");
        }
    }

    /// Waits until the relay has stored everything up to `n`.
    pub async fn stored(&mut self, n: u64) {
        while self.next_of("ack").await["n"] != n {}
    }

    /// What came before the answer to a ping that is sent now.
    pub async fn so_far(&mut self) -> Vec<Value> {
        self.send(json!({ "t": "ping" })).await;
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await;
            if frame["t"] == "pong" {
                return frames;
            }
            frames.push(frame);
        }
    }

    /// The close code at the end; frames before that are skipped.
    pub async fn end(&mut self) -> u16 {
        loop {
            if let Err(end) = self.next_or_end().await {
                return end;
            }
        }
    }

    pub async fn next_or_end(&mut self) -> Result<Value, u16> {
        loop {
            let next = timeout(DEADLINE, self.socket.next()).await;
            match next.expect("nothing came in time") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                // RFC 6455, 7.1.5: 1005 stands for a close frame without a code.
                Some(Ok(Message::Close(close))) => {
                    return Err(close.map_or(1005, |close| close.code.into()));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Err(tungstenite::Error::Protocol(_) | tungstenite::Error::Io(_))) | None => {
                    return Err(LOST);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Closes with a code, and waits for the other half of the handshake.
    pub async fn close(mut self, code: u16) {
        let frame = CloseFrame {
            code: code.into(),
            reason: "".into(),
        };
        self.socket.close(Some(frame)).await.unwrap();
        while self.next_or_end().await.is_ok() {}
    }
}

pub fn hello(ticket: &str, dial: Dial) -> Value {
    json!({
        "t": "hello", "v": 1, "ticket": ticket, "cid": format!("{:032x}", dial.connection),
        "try": dial.attempt, "last": dial.last,
    })
}

/// Host and port of a URL like `ws://127.0.0.1:1/v1/signal`.
pub fn authority(url: &str) -> &str {
    let rest = url.strip_prefix("ws://").expect("no TLS here");
    rest.split('/').next().unwrap()
}
