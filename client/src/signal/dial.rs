//! Opens one WebSocket to the relay (RFC 6455): TCP, TLS, upgrade. Called by the shell for each dial of the core, which
//! keeps the time.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rustls_pki_types::ServerName;
use sovereign_relay_protocol::signal::SUBPROTOCOL;
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{
    client_async_with_config,
    tungstenite::{
        self,
        client::IntoClientRequest as _,
        http::{HeaderValue, header::SEC_WEBSOCKET_PROTOCOL},
        protocol::WebSocketConfig,
    },
};
use url::{Host, Url};

use super::socket::Socket;
use crate::trust::{AddressError, Trust};

/// A signaling connection carries a few messages a second; ten thousand of them should fit into one load generator.
const BUFFER_BYTES: usize = 8 * 1024;
/// Longest message that is read. A relay's own limit is 32 KiB unless its operator raised it.
const MESSAGE_BYTES: usize = 1024 * 1024;

/// A byte stream, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
pub(super) type BoxStream = Box<dyn Stream>;

/// Where to dial, again and again.
#[derive(Clone)]
pub(super) struct Dialer {
    url: Url,
    tls: TlsConnector,
}

#[derive(Debug, Error)]
pub(super) enum DialError {
    #[error("no connection: {0}")]
    Connect(#[from] std::io::Error),
    #[error("not a name that TLS can check")]
    Name,
    #[error("no WebSocket: {0}")]
    Upgrade(#[source] Box<tungstenite::Error>),
}

impl DialError {
    /// The HTTP status of a server that is no relay, or a relay that will never take us.
    pub(super) fn refused(&self) -> Option<u16> {
        let Self::Upgrade(error) = self else { return None };
        let tungstenite::Error::Http(response) = error.as_ref() else {
            return None;
        };
        let status = response.status().as_u16();
        matches!(status, 400 | 401 | 403 | 404 | 405 | 410 | 426).then_some(status)
    }
}

impl Dialer {
    pub(super) fn new(url: &str, trust: &Trust) -> Result<Self, AddressError> {
        Ok(Self {
            url: trust.address(url, "wss", "ws")?,
            tls: TlsConnector::from(Arc::new(trust.tls(&[b"http/1.1"]))),
        })
    }

    /// Dials once. Dropping the future gives up.
    pub(super) fn dial(&self) -> BoxFuture<'static, Result<Box<Socket>, DialError>> {
        let dialer = self.clone();
        Box::pin(async move { dialer.open().await })
    }

    async fn open(&self) -> Result<Box<Socket>, DialError> {
        let tcp = self.connect().await?;
        tcp.set_nodelay(true)?;
        let stream: BoxStream = match self.url.scheme() {
            "wss" => Box::new(self.tls.connect(self.server_name()?, tcp).await?),
            _ => Box::new(tcp),
        };
        let upgrade = |error| DialError::Upgrade(Box::new(error));
        let mut request = self.url.as_str().into_client_request().map_err(upgrade)?;
        let subprotocol = HeaderValue::from_static(SUBPROTOCOL);
        request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, subprotocol);
        let opened = client_async_with_config(request, stream, Some(config())).await;
        opened
            .map(|(websocket, _)| Box::new(Socket::new(websocket)))
            .map_err(upgrade)
    }

    async fn connect(&self) -> std::io::Result<TcpStream> {
        let port = self.url.port_or_known_default().unwrap_or(443);
        match self.url.host() {
            Some(Host::Domain(name)) => TcpStream::connect((name, port)).await,
            Some(Host::Ipv4(address)) => TcpStream::connect((address, port)).await,
            Some(Host::Ipv6(address)) => TcpStream::connect((address, port)).await,
            None => Err(std::io::ErrorKind::AddrNotAvailable.into()),
        }
    }

    fn server_name(&self) -> Result<ServerName<'static>, DialError> {
        match self.url.host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.to_owned()).map_err(|_| DialError::Name),
            Some(Host::Ipv4(address)) => Ok(ServerName::IpAddress(std::net::IpAddr::from(address).into())),
            Some(Host::Ipv6(address)) => Ok(ServerName::IpAddress(std::net::IpAddr::from(address).into())),
            None => Err(DialError::Name),
        }
    }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES))
}
