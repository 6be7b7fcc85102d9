//! The HTTP client of FCM, WNS and their token endpoints, and what its errors mean for a push.
//!
//! Called by [`super::call`] and [`super::oauth`]. Invariant: an error is called [`SendError::NotSent`] or
//! [`SendError::Refused`] only when the provider surely never had the message. Two things prove that: the HTTP library
//! never took up the body, which it does once there is a connection and on HTTP/2 an open stream, and no longer can;
//! or the peer itself refused the stream (RFC 9113, 6.8 and 8.7).

use std::{
    error::Error as _,
    io,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt as _;
use h2::Reason;
use http_body_util::{BodyStream, Full, StreamBody};
use reqwest::{Body, ClientBuilder, Response, dns::Resolve, redirect::Policy};
use rustls::ClientConfig;
use thiserror::Error;
use tokio::time::timeout;

use super::transport::TlsError;

/// A TCP and TLS handshake that takes longer is a dead end; another address or try is better.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// What APNs' connections get too: a half-open connection is found out after six seconds of a push's ten.
const PINGS: Pings = Pings {
    silence: Duration::from_secs(3),
    limit: Duration::from_secs(3),
};
/// HTTP/2 connections unused for longer are closed: the providers do so too.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// HTTP/1.1 connections are one for each push under way, to hosts that devices name: unused ones go sooner ...
const IDLE_LIMIT_HTTP1: Duration = Duration::from_secs(30);
/// ... and of one host at most so many are kept.
const IDLE_PER_HOST: usize = 64;

/// Which HTTP versions to offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Versions {
    /// HTTP/2, else HTTP/1.1.
    Any,
    /// HTTP/2 alone: pushes that come together then wait for one connection. With a choice each would dial, since
    /// the version is known only after the handshake.
    Http2,
    /// HTTP/1.1 alone, as Microsoft documents WNS.
    Http1,
}

/// When a connection with open streams is asked whether it lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pings {
    /// Nothing came for so long.
    pub(crate) silence: Duration,
    /// Then it is given up after this.
    pub(crate) limit: Duration,
}

/// What a client is to do.
pub(crate) struct Options {
    pub(crate) versions: Versions,
    /// With one only the addresses it gives are connected to.
    pub(crate) resolver: Option<Arc<dyn Resolve>>,
    pub(crate) pings: Pings,
    /// Connections that wait for the next request, for each host.
    pub(crate) idle_per_host: usize,
}

impl Options {
    /// For a token endpoint.
    pub(crate) fn tokens() -> Self {
        Self {
            versions: Versions::Any,
            resolver: None,
            pings: PINGS,
            idle_per_host: IDLE_PER_HOST,
        }
    }

    /// For FCM.
    pub(crate) fn http2() -> Self {
        Self {
            versions: Versions::Http2,
            ..Self::tokens()
        }
    }

    /// For WNS.
    pub(crate) fn http1(resolver: Arc<dyn Resolve>) -> Self {
        Self {
            versions: Versions::Http1,
            resolver: Some(resolver),
            ..Self::tokens()
        }
    }

    /// Each request over a connection of its own.
    pub(crate) fn without_pool(self) -> Self {
        Self {
            idle_per_host: 0,
            ..self
        }
    }
}

/// The client could not be made.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No trusted roots, or a bad extra CA.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The HTTP library refused.
    #[error("the HTTP client could not be made: {0}")]
    Client(#[source] reqwest::Error),
}

/// A client that trusts what `tls` does, follows no redirects, and honours `HTTPS_PROXY` and `NO_PROXY`.
pub(crate) fn client(tls: &ClientConfig, options: Options) -> Result<reqwest::Client, ClientError> {
    let mut tls = tls.clone();
    tls.alpn_protocols = match options.versions {
        Versions::Any => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Versions::Http2 => vec![b"h2".to_vec()],
        Versions::Http1 => vec![b"http/1.1".to_vec()],
    };
    let builder = ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(options.idle_per_host)
        .pool_idle_timeout(IDLE_LIMIT)
        .http2_keep_alive_interval(options.pings.silence)
        .http2_keep_alive_timeout(options.pings.limit)
        .user_agent(concat!("sovereign-relay/", env!("CARGO_PKG_VERSION")));
    let builder = match options.versions {
        Versions::Any => builder,
        Versions::Http2 => builder.http2_prior_knowledge(),
        Versions::Http1 => builder.http1_only().pool_idle_timeout(IDLE_LIMIT_HTTP1),
    };
    let builder = match options.resolver {
        Some(resolver) => builder.dns_resolver(resolver),
        None => builder,
    };
    builder.build().map_err(ClientError::Client)
}

/// Who has the body of a request.
#[derive(Clone, Debug)]
pub(crate) struct Custody(Arc<AtomicU8>);

const WAITING: u8 = 0;
const TAKEN_UP: u8 = 1;
const WITHDRAWN: u8 = 2;

impl Custody {
    /// Takes the body back, unless the HTTP library has taken it up. `true`: it is not sent and never will be. Giving
    /// up the request is not enough: when it waits for a stream of HTTP/2, its body may still be asked for when that
    /// is free.
    pub(crate) fn withdraw(&self) -> bool {
        self.0
            .compare_exchange(WAITING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(|found| found == WITHDRAWN, |_| true)
    }

    fn take_up(&self) -> Result<(), Withdrawn> {
        self.0
            .compare_exchange(WAITING, TAKEN_UP, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(
                |found| if found == TAKEN_UP { Ok(()) } else { Err(Withdrawn) },
                |_| Ok(()),
            )
    }
}

/// What the HTTP library finds instead of a body that was taken back: it ends the stream.
#[derive(Debug, Error)]
#[error("the request was given up")]
struct Withdrawn;

/// A body that notes when it is taken up. Its length has to be said in `Content-Length` by whoever sends it.
pub(crate) fn watched_body(bytes: Bytes) -> (Body, Custody) {
    // An empty one is over with the head and never asked for.
    let at_first = if bytes.is_empty() { TAKEN_UP } else { WAITING };
    let custody = Custody(Arc::new(AtomicU8::new(at_first)));
    let library = custody.clone();
    let frames = BodyStream::new(Full::new(bytes)).map(move |frame| match library.take_up() {
        Ok(()) => frame.map_err(|never| match never {}),
        Err(withdrawn) => Err(withdrawn),
    });
    (Body::wrap(StreamBody::new(frames)), custody)
}

/// Why there is no response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendError {
    /// No request can be made of it.
    Unsendable,
    /// Surely not seen by the provider: no connection, or no stream on it.
    NotSent,
    /// Surely not seen by the provider, which is there and refused the stream.
    Refused,
    /// No answer in time.
    TimedOut,
    /// The peer ended the stream, and not its connection, after the request may have been read.
    Reset,
    /// The connection was lost after the request may have been read.
    Lost,
}

/// Sorts an error of the HTTP client.
pub(crate) fn classify(error: &reqwest::Error, custody: &Custody) -> SendError {
    if error.is_builder() {
        return SendError::Unsendable;
    }
    if h2_error(error).is_some_and(is_refusal) {
        return SendError::Refused;
    }
    if custody.withdraw() || error.is_connect() {
        return SendError::NotSent;
    }
    if h2_error(error).is_some_and(|error| error.is_reset() && error.is_remote()) {
        return SendError::Reset;
    }
    // A PING without an answer is among these: it ends the connection, not one push.
    SendError::Lost
}

fn h2_error(error: &reqwest::Error) -> Option<&h2::Error> {
    let mut cause = error.source();
    while let Some(current) = cause {
        if let Some(h2) = current.downcast_ref() {
            return Some(h2);
        }
        cause = current.source();
    }
    None
}

/// A stream above a graceful GOAWAY's last id gets that GOAWAY as its error; one at or below it goes on.
fn is_refusal(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.is_remote() && error.reason() == Some(Reason::REFUSED_STREAM);
    let left_out = error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR);
    refused || left_out
}

/// An error with all its causes, and without the URL. A certificate that doesn't fit is told with the host's name.
pub(crate) fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text = format!("{text}: {current}");
        cause = current.source();
    }
    text
}

/// Which kind of failure it was and no more: what a device's channel leads to is not for the log.
pub(crate) fn kind_of_failure(error: reqwest::Error) -> String {
    let mut kind = None;
    let mut cause = error.source();
    while let Some(current) = cause {
        kind = current.downcast_ref::<io::Error>().map(io::Error::kind).or(kind);
        cause = current.source();
    }
    kind.map_or_else(|| "no more is known".to_owned(), |kind| kind.to_string())
}

/// Why an answer whose head came has no body that could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub(crate) enum BodyError {
    /// The connection or the stream ended within it.
    #[error("cut off")]
    Cut,
    /// It is longer than any of the provider's.
    #[error("too long")]
    TooLong,
    /// The rest did not come in time.
    #[error("too slow")]
    TooSlow,
}

/// Reads a body of at most `most` bytes within `limit`.
pub(crate) async fn read_body(response: Response, most: usize, limit: Duration) -> Result<Bytes, BodyError> {
    timeout(limit, read_all(response, most))
        .await
        .unwrap_or(Err(BodyError::TooSlow))
}

async fn read_all(mut response: Response, most: usize) -> Result<Bytes, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| BodyError::Cut)? {
        if body.len() + chunk.len() > most {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Bytes::from(body))
}

#[cfg(test)]
mod tests;
