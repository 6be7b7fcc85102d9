//! Reads a JSON body within a size, a time and the memory there is.
//!
//! A declared length over the limit is refused before a byte is read, a chunked body at the chunk that crosses
//! it, and a body that trickles in is cut when its time is over: the client holds a socket for that long, never
//! a worker. Memory is asked for in steps, as bytes arrive ([`crate::limit::bodies`]). Content codings are not
//! supported, so nothing can be larger than it looks.

use std::{ops::Deref, time::Duration};

use actix_web::{
    error::PayloadError,
    http::header::{self, HeaderMap},
    web::Payload,
};
use futures_util::StreamExt;
use sovereign_relay_protocol::error::ErrorCode;

use crate::{
    http::error::ApiError,
    limit::bodies::{BodyShare, NoRoom},
};

/// The first room made for a body: most single pushes fit.
const FIRST_STEP: usize = 2048;

/// How much and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimits {
    /// Most bytes.
    pub(crate) bytes: usize,
    /// From the handler's start to the last byte.
    pub(crate) time: Duration,
}

/// A body that was read, and the memory it was given.
pub(crate) struct Body {
    bytes: Vec<u8>,
    share: BodyShare,
}

impl Body {
    /// Frees the bytes and keeps their share, for what was made of them.
    pub(crate) fn into_share(self) -> BodyShare {
        self.share
    }

    /// Adds bytes, in room that doubles, so that a long body is not copied often, up to `most`.
    fn push(&mut self, chunk: &[u8], most: usize) -> Result<(), NoRoom> {
        let length = self.bytes.len() + chunk.len();
        if length > self.bytes.capacity() {
            let room = length.next_power_of_two().max(FIRST_STEP).min(most).max(length);
            self.share.grow_to(room)?;
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The whole body; empty when there is none.
pub(crate) async fn read(
    headers: &HeaderMap,
    payload: Payload,
    limits: BodyLimits,
    share: BodyShare,
) -> Result<Body, ApiError> {
    let body = Body {
        bytes: Vec::new(),
        share,
    };
    require_json(headers)?;
    if is_absent(headers) {
        return Ok(body);
    }
    let declared = declared_length(headers);
    if declared.is_some_and(|length| length > limits.bytes) {
        return Err(too_large(limits.bytes));
    }
    let most = declared.unwrap_or(limits.bytes);
    tokio::time::timeout(limits.time, collect(body, payload, most))
        .await
        .unwrap_or_else(|_| Err(too_slow()))
}

async fn collect(mut body: Body, mut payload: Payload, most: usize) -> Result<Body, ApiError> {
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| broken(&error, most))?;
        if body.len() + chunk.len() > most {
            return Err(too_large(most));
        }
        body.push(&chunk, most)?;
    }
    require_utf8(&body)?;
    Ok(body)
}

/// JSON is UTF-8 (RFC 8259, 8.1). The parser looks only at the strings that it keeps.
fn require_utf8(body: &[u8]) -> Result<(), ApiError> {
    str::from_utf8(body)
        .map(drop)
        .map_err(|_| ApiError::invalid("the body must be JSON in UTF-8"))
}

fn is_absent(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::TRANSFER_ENCODING) && declared_length(headers).unwrap_or(0) == 0
}

fn declared_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A missing content type is taken as JSON. One that is there counts with an empty body too.
fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let plain = headers
        .get(header::CONTENT_ENCODING)
        .is_none_or(|coding| coding.as_bytes() == b"identity");
    let json = headers
        .get(header::CONTENT_TYPE)
        .is_none_or(|value| value.to_str().is_ok_and(is_json));
    let error = || {
        ApiError::new(
            ErrorCode::UnsupportedMediaType,
            "send the body as plain application/json, in UTF-8",
        )
        .closing()
    };
    (plain && json).then_some(()).ok_or_else(error)
}

/// RFC 8259 gives the type no charset, and the text no other than UTF-8: one that says so is taken, another would have
/// its text misread. Other parameters mean nothing here.
fn is_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let json = parts
        .next()
        .is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    json && parts.all(|parameter| charset(parameter).is_none_or(|name| name.eq_ignore_ascii_case("utf-8")))
}

/// A name may stand in quotes (RFC 9110, 5.6.6).
fn charset(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    let value = value.trim();
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    name.trim()
        .eq_ignore_ascii_case("charset")
        .then(|| unquoted.unwrap_or(value))
}

fn too_large(limit: usize) -> ApiError {
    ApiError::new(
        ErrorCode::PayloadTooLarge,
        format!("the body is larger than {limit} bytes"),
    )
    .closing()
}

fn too_slow() -> ApiError {
    ApiError::new(ErrorCode::RequestTimeout, "the body did not arrive in time").closing()
}

/// The client ended or garbled the body. Its answer may reach nobody.
fn broken(error: &PayloadError, limit: usize) -> ApiError {
    if matches!(error, PayloadError::Overflow) {
        return too_large(limit);
    }
    ApiError::invalid("the body ended early or was garbled on its way").closing()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        pairs.collect()
    }

    #[test]
    fn json_with_parameters_and_no_type_at_all_are_json() {
        for value in [
            "application/json",
            "application/json; charset=utf-8",
            "Application/JSON ;x=y",
            "application/json;charset=UTF-8",
            "application/json; Charset=\"Utf-8\"; x=\"charset\"",
            "application/json;",
        ] {
            assert!(
                require_json(&headers(&[("content-type", value)])).is_ok(),
                "{value}"
            );
        }
        assert!(require_json(&headers(&[])).is_ok());
    }

    #[test]
    fn other_types_and_content_codings_are_a_415() {
        for value in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "",
            "application/ld+json",
            "application/json; charset=utf-16",
            "application/json; charset=ISO-8859-1",
            "application/json; charset=",
            "application/json; charset=\"utf-8",
            "application/json; x=y; charset=us-ascii",
            "application/json; charset=utf-8; charset=utf-16",
        ] {
            let error = require_json(&headers(&[("content-type", value)])).unwrap_err();
            assert_eq!(error.code(), ErrorCode::UnsupportedMediaType, "{value}");
        }
        assert!(require_json(&headers(&[("content-encoding", "gzip")])).is_err());
        assert!(require_json(&headers(&[("content-encoding", "identity")])).is_ok());
    }

    #[test]
    fn a_body_is_there_when_a_length_or_chunks_say_so() {
        assert!(is_absent(&headers(&[])));
        assert!(is_absent(&headers(&[("content-length", "0")])));
        assert!(!is_absent(&headers(&[("content-length", "2")])));
        assert!(!is_absent(&headers(&[("transfer-encoding", "chunked")])));
    }
}
