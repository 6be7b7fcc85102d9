//! An endpoint on a free port with sessions in memory, and peers that speak to it through an independent client.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use actix_web::dev::ServerHandle;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _, future::ready};
use serde_json::{Value, json};
use sovereign_relay_actors::session::{
    port::{Creation, Incarnation, NewSession, SessionStore as _, Settings},
    registry::Sessions,
    rules::SessionRules,
};
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{SUBPROTOCOL, frame::IceServer, id::SessionId, session::EndToEnd},
    time::UnixMillis,
};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{
        self, Message, client::IntoClientRequest as _, handshake::client::Request,
        protocol::frame::coding::CloseCode as WireCode,
    },
};

use super::super::{door::DoorBounds, upgrade::Upgrades, *};
use crate::{
    clock::SystemClock,
    entropy::SystemEntropy,
    http::{self, tests::kit},
    shutdown::{Lifecycle, Phase},
    store::sessions::{SessionBounds, memory::MemorySessions},
};

/// How long anything may take before a test gives up.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const INSTANCE: InstanceId = InstanceId::from_bytes([7; 16]);

/// The system's time, which a test can stop: budgets and lives then end when the test says so, however slow the machine
/// is.
#[derive(Default)]
pub(super) struct StoppableClock {
    system: SystemClock,
    stopped: Mutex<Option<Now>>,
}

impl StoppableClock {
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap() = Some(self.system.now());
    }

    /// Time passes while it is stopped.
    pub(super) fn advance(&self, by: Duration) {
        let mut stopped = self.stopped.lock().unwrap();
        *stopped = stopped.map(|now| now.plus(by));
    }

    /// It is as late as it would be anyway.
    pub(super) fn go_on(&self) {
        *self.stopped.lock().unwrap() = None;
    }
}

impl Clock for StoppableClock {
    fn now(&self) -> Now {
        let stopped = *self.stopped.lock().unwrap();
        stopped.unwrap_or_else(|| self.system.now())
    }
}

/// A running endpoint. Dropped, it closes.
pub(super) struct Kit {
    pub(super) address: SocketAddr,
    pub(super) clock: Arc<StoppableClock>,
    pub(super) store: Arc<MemorySessions>,
    pub(super) sessions: Sessions,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) lifecycle: Lifecycle,
    pub(super) upgrades: Arc<Upgrades>,
    handle: ServerHandle,
}

impl Drop for Kit {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

/// Of a ticket that ends with this word; revoked between the ticket's check and the slot.
pub(super) const MEANWHILE: &str = "meanwhile";
const REVOKED_MEANWHILE: InstanceId = InstanceId::from_bytes([8; 16]);

/// Takes any ticket of the form `<session> <slot>`.
struct Names;

impl Guard for Names {
    fn admit(&self, ticket: &Redacted, connection: &ConnectionId, _: Now) -> Result<Guest, Rejection> {
        if ticket.expose() == "revoked" {
            return Err(Rejection::Revoked);
        }
        let (session, slot) = ticket.expose().split_once(' ').ok_or(Rejection::BadTicket)?;
        Ok(Guest {
            session: SessionId::parse(session).ok_or(Rejection::BadTicket)?,
            incarnation: Incarnation(1),
            slot: if slot.starts_with('a') { Slot::A } else { Slot::B },
            instance: if slot.ends_with(MEANWHILE) {
                REVOKED_MEANWHILE
            } else {
                INSTANCE
            },
            connection: ConnectionHash(u128::from_be_bytes(*connection.expose())),
            may_turn: true,
        })
    }

    fn is_revoked(&self, guest: &Guest) -> bool {
        guest.instance == REVOKED_MEANWHILE
    }

    fn ice(&self, _: &Guest, turn: bool, _: Now) -> BoxFuture<'static, Ice> {
        let servers = turn.then(|| IceServer {
            urls: vec!["turn:turn.example".to_owned()],
            username: Some("1:p".to_owned()),
            credential: Some("c".to_owned()),
        });
        let ice = Ice {
            servers: servers.into_iter().collect(),
            expires_at: turn.then_some(UnixMillis(0)),
        };
        ready(ice).boxed()
    }
}

impl Kit {
    pub(super) async fn start() -> Self {
        Self::start_for(&[]).await
    }

    pub(super) async fn start_for(origins: &[&str]) -> Self {
        Self::start_with(origins, DoorBounds::default()).await
    }

    pub(super) async fn start_with(origins: &[&str], bounds: DoorBounds) -> Self {
        let stoppable = Arc::new(StoppableClock::default());
        let clock: Arc<dyn Clock> = stoppable.clone();
        let rules = SessionRules::default();
        let store = Arc::new(MemorySessions::new(
            SessionBounds::default(),
            rules,
            clock.clone(),
        ));
        let sessions = Sessions::start(1, store.clone(), rules, clock.clone());
        let lifecycle = Lifecycle::default();
        lifecycle.advance(Phase::Serving);
        let endpoint = Arc::new(Endpoint {
            clock,
            entropy: Arc::new(SystemEntropy),
            sessions: sessions.clone(),
            guard: Arc::new(Names),
            door: Door::new(bounds, 20_000),
            lifecycle: lifecycle.clone(),
        });
        let relay = kit::Relay::start().await;
        let upgrades = Arc::new(Upgrades {
            endpoint: endpoint.clone(),
            proxies: relay.services.proxies.clone(),
            allowed_origins: origins.iter().map(|&origin| origin.to_owned()).collect(),
            authority: relay.services.authority.clone(),
        });
        let bound = http::bind(
            "127.0.0.1:0".parse().unwrap(),
            kit::listener_limits(),
            relay.services.clone(),
            Some(upgrades.clone()),
        )
        .unwrap();
        let handle = bound.server.handle();
        actix_web::rt::spawn(bound.server);
        Self {
            address: bound.address,
            clock: stoppable,
            store,
            sessions,
            endpoint,
            lifecycle,
            upgrades,
            handle,
        }
    }

    /// A session that takes unsealed content.
    pub(super) async fn session(&self) -> SessionId {
        self.session_with(EndToEnd::Optional, Duration::from_secs(600))
            .await
    }

    pub(super) async fn session_with(&self, e2e: EndToEnd, life: Duration) -> SessionId {
        let mut id = [0; 16];
        self.endpoint.entropy.fill(&mut id);
        let id = SessionId::from_bytes(id);
        let new = NewSession {
            id,
            incarnation: Incarnation(1),
            instance: INSTANCE,
            is_rendezvous: false,
            settings: Settings { e2e, turn: true },
            life,
        };
        assert!(matches!(self.store.create(new).await.unwrap(), Creation::Made(_)));
        id
    }

    /// A handshake as it goes over the wire.
    pub(super) fn handshake(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: \
             13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            self.address
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }

    pub(super) fn request(&self) -> Request {
        let mut request = format!("ws://{}/v1/signal", self.address)
            .into_client_request()
            .unwrap();
        request
            .headers_mut()
            .insert("sec-websocket-protocol", SUBPROTOCOL.parse().unwrap());
        request
    }

    /// A socket after its handshake.
    pub(super) async fn socket(&self) -> Peer {
        let (socket, response) = connect_async(self.request()).await.unwrap();
        assert_eq!(response.headers()["sec-websocket-protocol"], SUBPROTOCOL);
        Peer { socket }
    }

    /// A peer that was welcomed, and the welcome.
    pub(super) async fn join(&self, session: SessionId, slot: &str, dial: Dial) -> (Peer, Value) {
        let mut peer = self.socket().await;
        peer.hello(session, slot, dial).await;
        let welcome = peer.next().await;
        assert_eq!(welcome["t"], "welcome", "{welcome}");
        (peer, welcome)
    }
}

/// How a peer dials.
#[derive(Clone, Copy)]
pub(super) struct Dial {
    pub(super) connection: u8,
    pub(super) attempt: u64,
    pub(super) last: u64,
}

/// The first dial of a page load.
pub(super) const fn load(connection: u8) -> Dial {
    resume(connection, 1, 0)
}

pub(super) const fn resume(connection: u8, attempt: u64, last: u64) -> Dial {
    Dial {
        connection,
        attempt,
        last,
    }
}

/// A client of an independent make.
pub(super) struct Peer {
    pub(super) socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

/// How a socket ended.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Closed(u16),
    Cut,
}

impl Peer {
    pub(super) async fn hello(&mut self, session: SessionId, slot: &str, dial: Dial) {
        let connection = format!("{:032x}", dial.connection);
        self.send(
            json!({"t": "hello", "v": 1, "ticket": format!("{session} {slot}"), "cid": connection,
            "try": dial.attempt, "last": dial.last}),
        )
        .await;
    }

    pub(super) async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(super) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(super) async fn message(&mut self, n: u64, content: &str) {
        self.send(json!({"t": "msg", "n": n, "d": content})).await;
    }

    /// The next frame.
    pub(super) async fn next(&mut self) -> Value {
        match self.next_or_end().await {
            Ok(frame) => frame,
            Err(end) => panic!("the socket ended: {end:?}"),
        }
    }

    /// The next frame of a kind; others are skipped.
    pub(super) async fn next_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.next().await;
            if frame["t"] == kind {
                return frame;
            }
        }
    }

    /// How the socket ends; frames before that are skipped.
    pub(super) async fn end(&mut self) -> Ended {
        loop {
            if let Err(end) = self.next_or_end().await {
                return end;
            }
        }
    }

    pub(super) async fn next_or_end(&mut self) -> Result<Value, Ended> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.socket.next()).await;
            match next.expect("nothing came in time") {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(close))) => {
                    // RFC 6455, 7.1.5: 1005 stands for a close frame without a code.
                    return Err(Ended::Closed(close.map_or(1005, |close| close.code.into())));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(other)) => panic!("{other:?}"),
                Some(Err(tungstenite::Error::Protocol(_) | tungstenite::Error::Io(_))) | None => {
                    return Err(Ended::Cut);
                }
                Some(Err(error)) => panic!("{error}"),
            }
        }
    }

    pub(super) async fn close(mut self) {
        let frame = tungstenite::protocol::CloseFrame {
            code: WireCode::Normal,
            reason: "".into(),
        };
        self.socket.close(Some(frame)).await.unwrap();
        while self.next_or_end().await.is_ok() {}
    }
}
