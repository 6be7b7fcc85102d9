//! From an HTTP request to a WebSocket (RFC 6455, 4.2).
//!
//! actix-http hands over every request that asks for a WebSocket, whatever its path, with the bare connection. Those
//! that [`Upgrades::takes`] become one; [`crate::http::server`] serves the others as if they had not asked, so that a
//! route answers them in the form that every error has. All that a browser's page must understand is said by a close
//! code after the handshake, since a page sees nothing of a refused one.

use std::{io, sync::Arc};

use actix_codec::Framed;
use actix_http::{
    HttpMessage as _, Method, Request,
    body::BodySize,
    h1,
    header::{self, HeaderValue},
    ws,
};
use actix_rt::net::TcpStream;
use futures_util::{SinkExt as _, future::LocalBoxFuture};
use metrics::{counter, gauge};
use sovereign_relay_protocol::{
    limits::HELLO_BYTES,
    signal::{SUBPROTOCOL, close::CloseCode},
};

use super::{
    Endpoint, connection,
    end::{self, End},
    handshake,
    socket::Socket,
};
use crate::{auth::Authority, http::proxies::TrustedProxies, shutdown::Phase};

/// The path of the endpoint.
pub(crate) const PATH: &str = "/v1/signal";

/// What an upgrade is judged by.
pub(crate) struct Upgrades {
    /// Where accepted ones go.
    pub(crate) endpoint: Arc<Endpoint>,
    /// Whose `X-Forwarded-For` is believed.
    pub(crate) proxies: Arc<TrustedProxies>,
    /// `RELAY_ALLOWED_ORIGINS`; empty = any.
    pub(crate) allowed_origins: Vec<String>,
    /// Names addresses without keeping them.
    pub(crate) authority: Arc<Authority>,
}

/// A connection whose handshake is done. Nothing of HTTP is left in it: a request's headers alone hold the buffer that
/// they were read into.
pub(crate) struct Upgraded {
    upgrades: Arc<Upgrades>,
    socket: Socket,
    address: u64,
}

impl Upgrades {
    /// Whether a request that asks for a WebSocket gets one.
    pub(crate) fn takes(&self, request: &Request) -> bool {
        let head = request.head();
        request.path() == PATH
            && head.method == Method::GET
            && head.upgrade()
            && handshake::judge(head, &self.allowed_origins).is_ok()
    }
}

/// Answers a handshake that was judged.
pub(crate) async fn accept(
    upgrades: Arc<Upgrades>,
    request: &Request,
    mut framed: Framed<TcpStream, h1::Codec>,
) -> io::Result<Upgraded> {
    let mut response = ws::handshake_response(request.head());
    response.insert_header((
        header::SEC_WEBSOCKET_PROTOCOL,
        HeaderValue::from_static(SUBPROTOCOL),
    ));
    let head = response.finish().drop_body();
    framed.send(h1::Message::Item((head, BodySize::None))).await?;
    let address = address_of(&upgrades, request, framed.io_ref());
    let parts = framed.into_parts();
    let socket = Socket::new(parts.io, parts.read_buf, HELLO_BYTES);
    Ok(Upgraded {
        upgrades,
        socket,
        address,
    })
}

impl Upgraded {
    /// Serves the connection to its end.
    pub(crate) fn converse(mut self) -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            let end = run(&self.upgrades, &mut self.socket, self.address).await;
            counter!("relay_signal_closes_total", "reason" => end.reason()).increment(1);
        })
    }
}

async fn run(upgrades: &Upgrades, socket: &mut Socket, address: u64) -> End {
    let endpoint = &*upgrades.endpoint;
    let refused = if endpoint.lifecycle.phase() >= Phase::Draining {
        Some(CloseCode::ServiceRestart)
    } else if endpoint.door.is_barred(address, endpoint.clock.now()) {
        Some(CloseCode::TryAgainLater)
    } else {
        None
    };
    if let Some(code) = refused {
        end::close(socket, End::Close(code), || endpoint.door.leave(address)).await;
        return End::Close(code);
    }
    let knock = endpoint.door.knock(address);
    let _open = Open::count();
    connection::serve(endpoint, socket, knock, address).await
}

/// Counts open sockets.
struct Open;

impl Open {
    fn count() -> Self {
        gauge!("relay_signal_sockets").increment(1.0);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        gauge!("relay_signal_sockets").decrement(1.0);
    }
}

fn address_of(upgrades: &Upgrades, request: &Request, io: &TcpStream) -> u64 {
    let peer = request.peer_addr().or_else(|| io.peer_addr().ok());
    // A peer that is gone already has no address; its socket ends at the first read.
    peer.map_or(0, |peer| {
        upgrades.proxies.notice(peer, request.headers());
        let address = upgrades.proxies.client_address(peer, request.headers());
        upgrades.authority.derived().address_hash(address).host
    })
}
