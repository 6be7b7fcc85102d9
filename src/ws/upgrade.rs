//! From an HTTP request to a WebSocket (RFC 6455, 4.2), or to an answer that says why not.
//!
//! actix-http hands over every request that asks for a WebSocket, whatever its path, with the bare connection. All
//! that a browser's page must understand is said by a close code after the handshake, since a page sees nothing of a
//! refused one; the rest is an HTTP error in the form that every route has.

use std::sync::Arc;

use actix_codec::Framed;
use actix_http::{
    HttpMessage as _, Request, Response, StatusCode,
    body::BodySize,
    error::DispatchError,
    h1,
    header::{self, HeaderMap, HeaderValue},
    ws,
};
use actix_rt::net::TcpStream;
use bytes::Bytes;
use futures_util::{SinkExt as _, future::LocalBoxFuture};
use metrics::{counter, gauge};
use sovereign_relay_actors::ports::Entropy;
use sovereign_relay_protocol::{
    error::{ErrorBody, ErrorCode},
    id::RequestId,
    limits::HELLO_BYTES,
    signal::{SUBPROTOCOL, close::CloseCode},
};

use super::{
    Endpoint, connection,
    end::{self, End},
    socket::Socket,
};
use crate::{
    auth::Authority,
    http::{
        context::{REQUEST_ID, request_id},
        extract::address::client_address,
    },
    shutdown::Phase,
};

/// The path of the endpoint.
pub(crate) const PATH: &str = "/v1/signal";

/// What an upgrade is judged by.
pub(crate) struct Upgrades {
    /// Where accepted ones go.
    pub(crate) endpoint: Arc<Endpoint>,
    /// Peers whose `X-Forwarded-For` is believed.
    pub(crate) trusted_proxies: Vec<ipnet::IpNet>,
    /// `RELAY_ALLOWED_ORIGINS`; empty = any.
    pub(crate) allowed_origins: Vec<String>,
    /// Names addresses without keeping them.
    pub(crate) authority: Arc<Authority>,
}

/// A handshake that is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Refused {
    code: ErrorCode,
    message: &'static str,
}

/// A connection whose handshake is done. Nothing of HTTP is left in it: a request's headers alone hold the buffer that
/// they were read into.
pub(crate) struct Upgraded {
    upgrades: Arc<Upgrades>,
    socket: Socket,
    address: u64,
}

/// Answers an upgrade request; `None` is a refusal. A listener without `upgrades` has no endpoint.
pub(crate) async fn handshake(
    upgrades: Option<Arc<Upgrades>>,
    entropy: &dyn Entropy,
    request: Request,
    framed: Framed<TcpStream, h1::Codec>,
) -> Option<Upgraded> {
    let answered = match check(upgrades, &request) {
        Ok(upgrades) => accept(upgrades, &request, framed).await.map(Some),
        Err(refused) => {
            let id = request_id(request.headers(), entropy);
            refuse(framed, &refused, &id).await.map(|()| None)
        }
    };
    answered.unwrap_or_else(|error| {
        tracing::debug!(%error, "a handshake could not be answered");
        None
    })
}

fn check(upgrades: Option<Arc<Upgrades>>, request: &Request) -> Result<Arc<Upgrades>, Refused> {
    let here = upgrades.filter(|_| request.path() == PATH);
    let upgrades = here.ok_or(Refused {
        code: ErrorCode::NotFound,
        message: "no WebSocket is served here",
    })?;
    ws::verify_handshake(request.head()).map_err(|_| Refused {
        code: ErrorCode::InvalidRequest,
        message: "not a WebSocket handshake of version 13",
    })?;
    if !offers_subprotocol(request.headers()) {
        return Err(Refused {
            code: ErrorCode::InvalidRequest,
            message: "the subprotocol sovereign.signal.v1 is not offered",
        });
    }
    if !is_allowed_origin(&upgrades.allowed_origins, request.headers()) {
        return Err(Refused {
            code: ErrorCode::OriginNotAllowed,
            message: "pages of this origin are not served here",
        });
    }
    Ok(upgrades)
}

fn offers_subprotocol(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|offered| offered.trim() == SUBPROTOCOL)
}

/// Only browsers send an origin; whoever is no browser can claim any.
fn is_allowed_origin(allowed: &[String], headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    allowed.is_empty()
        || allowed
            .iter()
            .any(|allowed| origin.as_bytes().eq_ignore_ascii_case(allowed.as_bytes()))
}

async fn accept(
    upgrades: Arc<Upgrades>,
    request: &Request,
    mut framed: Framed<TcpStream, h1::Codec>,
) -> Result<Upgraded, DispatchError> {
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
            let code = match end {
                End::Close(code) => code.reason(),
                End::ByClient => "closed by the client",
                End::Lost => "connection lost",
            };
            counter!("relay_signal_closes_total", "reason" => code).increment(1);
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
        end::close(socket, End::Close(code)).await;
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
    let address = peer.map(|peer| client_address(peer, request.headers(), &upgrades.trusted_proxies));
    address.map_or(0, |address| {
        upgrades.authority.derived().address_hash(address).host
    })
}

async fn refuse(
    mut framed: Framed<TcpStream, h1::Codec>,
    refused: &Refused,
    id: &RequestId,
) -> Result<(), DispatchError> {
    let body = ErrorBody {
        error: refused.code,
        message: refused.message.to_owned(),
    };
    let body = Bytes::from(serde_json::to_vec(&body).unwrap_or_default());
    let status = StatusCode::from_u16(refused.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let head = Response::build(status)
        .content_type("application/json")
        .insert_header((REQUEST_ID, id.as_str()))
        .force_close()
        .finish()
        .drop_body();
    let size = BodySize::Sized(body.len() as u64);
    framed.send(h1::Message::Item((head, size))).await?;
    framed.send(h1::Message::Chunk(Some(body))).await?;
    framed.send(h1::Message::Chunk(None)).await?;
    Ok(framed.close().await?)
}
