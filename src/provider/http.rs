//! The HTTP client of FCM, WNS and their token endpoints, and what its errors mean for a push.
//!
//! Called by [`super::call`] and [`super::oauth`]. Invariant: an error is called [`SendError::NotSent`] only when the
//! provider surely never saw the request.

use std::{error::Error as _, io, sync::Arc, time::Duration};

use bytes::Bytes;
use h2::Reason;
use reqwest::{ClientBuilder, Response, dns::Resolve, redirect::Policy};
use thiserror::Error;
use tokio::time::timeout;

use super::transport::{self, TlsError};

/// A TCP and TLS handshake that takes longer is a dead end; another address or try is better.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A connection on which nothing comes back is asked after this ...
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// ... and given up after this.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// Connections unused for longer are closed: the providers do so too.
const IDLE_LIMIT: Duration = Duration::from_secs(90);

/// Which HTTP versions to offer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Versions {
    /// HTTP/2, else HTTP/1.1.
    Any,
    /// HTTP/1.1 alone, as Microsoft documents WNS.
    Http1,
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

/// A client with the relay's roots, no redirects, and `HTTPS_PROXY`/`NO_PROXY` honoured. With a `resolver` only the
/// addresses it gives are connected to.
pub(crate) fn client(
    extra_ca: Option<&str>,
    versions: Versions,
    resolver: Option<Arc<dyn Resolve>>,
) -> Result<reqwest::Client, ClientError> {
    let mut tls = transport::tls_config(extra_ca)?;
    tls.alpn_protocols = match versions {
        Versions::Any => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        Versions::Http1 => vec![b"http/1.1".to_vec()],
    };
    let mut builder = ClientBuilder::new()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE_LIMIT)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_LIMIT)
        .user_agent(concat!("sovereign-relay/", env!("CARGO_PKG_VERSION")));
    if versions == Versions::Http1 {
        builder = builder.http1_only();
    }
    if let Some(resolver) = resolver {
        builder = builder.dns_resolver(resolver);
    }
    builder.build().map_err(ClientError::Client)
}

/// Why there is no response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendError {
    /// Surely not seen by the provider: dialling failed, the stream was refused, or the connection had closed before
    /// anything was written.
    NotSent,
    /// No answer in time.
    TimedOut,
    /// The connection was lost after the request may have been read.
    Lost,
}

/// Sorts an error of the HTTP client. The error itself may hold the URL, which for WNS is a device's address: it is
/// not to be logged with it.
pub(crate) fn classify(error: &reqwest::Error) -> SendError {
    if error.is_connect() {
        return SendError::NotSent;
    }
    if error.is_timeout() {
        return SendError::TimedOut;
    }
    let mut cause = error.source();
    while let Some(current) = cause {
        if let Some(h2) = current.downcast_ref::<h2::Error>() {
            return classify_h2(h2);
        }
        if current
            .downcast_ref::<io::Error>()
            .is_some_and(|io| io.kind() == io::ErrorKind::TimedOut)
        {
            return SendError::Lost;
        }
        cause = current.source();
    }
    SendError::Lost
}

/// A stream above a graceful GOAWAY's last id gets that GOAWAY as its error; one at or below it goes on.
fn classify_h2(error: &h2::Error) -> SendError {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    let left_out = error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR);
    if refused || left_out {
        SendError::NotSent
    } else {
        SendError::Lost
    }
}

/// Reads a body of at most `most` bytes within `limit`; what is longer or slower gives `None`.
pub(crate) async fn read_body(response: Response, most: usize, limit: Duration) -> Option<Bytes> {
    timeout(limit, read_all(response, most)).await.ok().flatten()
}

async fn read_all(mut response: Response, most: usize) -> Option<Bytes> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.ok()? {
        if body.len() + chunk.len() > most {
            return None;
        }
        body.extend_from_slice(&chunk);
    }
    Some(Bytes::from(body))
}
