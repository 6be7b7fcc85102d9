//! Whether a request may become a WebSocket (RFC 6455, 4.2.1), and what it is told if not.
//!
//! Asked twice of the same request: by [`super::upgrade`], which takes what passes, and by the route of the endpoint
//! ([`crate::http::signal`]), which answers the rest. `Upgrade` itself is not judged here: the route never sees it.

use actix_http::{
    RequestHead, Version,
    header::{self, HeaderMap, HeaderName},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use sovereign_relay_protocol::{error::ErrorCode, signal::SUBPROTOCOL};

/// Bytes of a handshake's nonce.
const NONCE_BYTES: usize = 16;

/// A handshake that is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    /// The stable code.
    pub(crate) code: ErrorCode,
    /// For the person who reads it.
    pub(crate) message: &'static str,
}

impl Refused {
    const fn invalid(message: &'static str) -> Self {
        Self {
            code: ErrorCode::InvalidRequest,
            message,
        }
    }
}

/// A request in which everything is right but that asks for no upgrade, or asks in a way that doesn't reach us.
pub(crate) const NOT_UPGRADED: Refused = Refused::invalid(
    "the headers `Connection: Upgrade` and `Upgrade: websocket` did not come: a proxy in between may drop them",
);

/// Judges a handshake. `allowed_origins`: whose pages may connect; empty = any.
pub(crate) fn judge(request: &RequestHead, allowed_origins: &[String]) -> Result<(), Refused> {
    let headers = request.headers();
    if !headers.contains_key(header::SEC_WEBSOCKET_KEY) {
        return Err(Refused::invalid(
            "a WebSocket is served here: connect with a client that speaks sovereign.signal.v1",
        ));
    }
    if request.version < Version::HTTP_11 {
        return Err(Refused::invalid(
            "a WebSocket handshake takes HTTP/1.1: a proxy in between may speak HTTP/1.0",
        ));
    }
    judge_version(headers)?;
    judge_key(headers)?;
    if has_body(headers) {
        return Err(Refused::invalid("a WebSocket handshake has no body"));
    }
    if !offers_subprotocol(headers) {
        return Err(Refused::invalid(
            "the subprotocol sovereign.signal.v1 is not offered",
        ));
    }
    judge_origin(headers, allowed_origins)
}

/// A proxy that believes in it would take our first frames for something else.
fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(header::CONTENT_LENGTH);
    length.is_some_and(|length| length != "0") || headers.contains_key(header::TRANSFER_ENCODING)
}

fn judge_version(headers: &HeaderMap) -> Result<(), Refused> {
    match only(headers, header::SEC_WEBSOCKET_VERSION) {
        Ok(Some(b"13")) => Ok(()),
        Ok(Some(_) | None) => Err(Refused::invalid("only version 13 of WebSocket is spoken here")),
        Err(Doubled) => Err(Refused::invalid("there are two Sec-WebSocket-Version headers")),
    }
}

fn judge_key(headers: &HeaderMap) -> Result<(), Refused> {
    match only(headers, header::SEC_WEBSOCKET_KEY) {
        Ok(Some(key)) if is_nonce(key) => Ok(()),
        Ok(Some(_) | None) => Err(Refused::invalid(
            "Sec-WebSocket-Key is not the base64 of 16 bytes",
        )),
        Err(Doubled) => Err(Refused::invalid("there are two Sec-WebSocket-Key headers")),
    }
}

fn is_nonce(key: &[u8]) -> bool {
    BASE64_STANDARD
        .decode(key)
        .is_ok_and(|nonce| nonce.len() == NONCE_BYTES)
}

/// Several lines are one list (RFC 6455, 11.3.4).
fn offers_subprotocol(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .any(|offered| offered.trim() == SUBPROTOCOL)
}

/// Only browsers send an origin; whoever is no browser can claim any.
fn judge_origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), Refused> {
    let Ok(origin) = only(headers, header::ORIGIN) else {
        return Err(Refused::invalid("there are two Origin headers"));
    };
    let is_allowed = |origin: &[u8]| {
        allowed
            .iter()
            .any(|allowed| origin.eq_ignore_ascii_case(allowed.as_bytes()))
    };
    if allowed.is_empty() || origin.is_none_or(is_allowed) {
        return Ok(());
    }
    Err(Refused {
        code: ErrorCode::OriginNotAllowed,
        message: "pages of this origin are not served here",
    })
}

/// A header came twice: of which one we and a proxy would each believe something else.
struct Doubled;

/// The value of a header that may come once.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&[u8]>, Doubled> {
    let mut lines = headers.get_all(name);
    let first = lines.next().map(header::HeaderValue::as_bytes);
    match lines.next() {
        Some(_) => Err(Doubled),
        None => Ok(first),
    }
}
