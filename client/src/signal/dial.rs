//! Opens one WebSocket to the relay (RFC 6455). Called by the shell for each dial of the core, which keeps the time.
//!
//! ```text
//! direct: DNS (fresh, both families raced) -> TCP -> TLS -> upgrade
//! proxy:  TCP -> CONNECT host:port -> TLS -> upgrade; the proxy resolves the name
//! ```

use std::{error::Error, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
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
use tower_service::Service as _;
use url::{Host, Url};

use super::socket::Socket;
use crate::trust::{AddressError, Trust};

/// A signaling connection carries a few messages a second; ten thousand of them should fit into one load generator.
const BUFFER_BYTES: usize = 8 * 1024;
/// Longest message that is read. A relay's own limit is 32 KiB unless its operator raised it.
const MESSAGE_BYTES: usize = 1024 * 1024;

/// When the first address family does not answer, the other is tried beside it (RFC 8305's recommended value).
const HAPPY_EYEBALLS: Duration = Duration::from_millis(250);

/// A byte stream, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
pub(super) type BoxStream = Box<dyn Stream>;

/// Where to dial, again and again.
#[derive(Clone)]
pub(super) struct Dialer {
    url: Url,
    tls: TlsConnector,
    proxies: Arc<Matcher>,
}

#[derive(Debug, Error)]
pub(super) enum DialError {
    #[error("no connection: {0}")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    #[error("a proxy that is reached over something else than plain HTTP")]
    Proxy,
    #[error("no TLS: {0}")]
    Tls(#[source] std::io::Error),
    #[error("not a name that can be dialled")]
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
    /// With the proxies that `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` name, as for HTTP.
    pub(super) fn new(url: &str, trust: &Trust) -> Result<Self, AddressError> {
        Self::with_proxies(url, trust, Matcher::from_env())
    }

    fn with_proxies(url: &str, trust: &Trust, proxies: Matcher) -> Result<Self, AddressError> {
        Ok(Self {
            url: trust.address(url, "wss", "ws")?,
            tls: TlsConnector::from(Arc::new(trust.tls(&[b"http/1.1"]))),
            proxies: Arc::new(proxies),
        })
    }

    /// Dials once. Dropping the future gives up.
    pub(super) fn dial(&self) -> BoxFuture<'static, Result<Box<Socket>, DialError>> {
        let dialer = self.clone();
        Box::pin(async move { dialer.open().await })
    }

    async fn open(&self) -> Result<Box<Socket>, DialError> {
        let tcp = self.connect().await?;
        let stream: BoxStream = if self.is_secure() {
            let secured = self.tls.connect(self.server_name()?, tcp).await;
            Box::new(secured.map_err(DialError::Tls)?)
        } else {
            Box::new(tcp)
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

    async fn connect(&self) -> Result<TcpStream, DialError> {
        let target = self.target()?;
        // What has no TLS is on loopback, or on a network of which each cable is known.
        let proxy = self.proxies.intercept(&target).filter(|_| self.is_secure());
        let Some(proxy) = proxy else {
            return connected(connector().call(target).await);
        };
        if proxy.uri().scheme_str() != Some("http") {
            return Err(DialError::Proxy);
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), connector());
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        connected(tunnel.call(target).await)
    }

    /// The relay's host and port, as an https URI for the proxies' rules.
    fn target(&self) -> Result<Uri, DialError> {
        let host = self.url.host_str().ok_or(DialError::Name)?;
        let port = self.url.port_or_known_default().unwrap_or(443);
        let parts = Uri::builder()
            .scheme("https")
            .authority(format!("{host}:{port}"))
            .path_and_query("/");
        parts.build().map_err(|_| DialError::Name)
    }

    fn is_secure(&self) -> bool {
        self.url.scheme() == "wss"
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

/// Names are looked up at each dial: a relay's addresses change while the program lives.
fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_happy_eyeballs_timeout(Some(HAPPY_EYEBALLS));
    connector
}

fn connected<E: Error + Send + Sync + 'static>(
    connection: Result<TokioIo<TcpStream>, E>,
) -> Result<TcpStream, DialError> {
    connection
        .map(TokioIo::into_inner)
        .map_err(|error| DialError::Connect(error.into()))
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES))
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    fn dialer(url: &str, proxy: &str) -> Dialer {
        let proxies = Matcher::builder().https(proxy).build();
        Dialer::with_proxies(url, &Trust::system().unwrap(), proxies).unwrap()
    }

    /// The first request that comes, answered with `answer`.
    async fn request(listener: TcpListener, answer: &str) -> String {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8(head).unwrap()
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_the_relays_name_and_shown_its_own_credentials_only() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://user:word@{}", listener.local_addr().unwrap());
        let dialer = dialer("wss://relay.example/v1/signal", &proxy);
        let (dialled, asked) = tokio::join!(dialer.dial(), request(listener, "HTTP/1.1 403 No\r\n\r\n"));
        let error = dialled.err().expect("no tunnel");
        assert!(matches!(error, DialError::Connect(_)), "{error}");
        assert_eq!(error.refused(), None, "a proxy's word is not the relay's");
        assert!(
            asked.starts_with("CONNECT relay.example:443 HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(
            asked.to_lowercase().contains("proxy-authorization: basic "),
            "{asked}"
        );
    }

    #[tokio::test]
    async fn loopback_without_tls_needs_no_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/v1/signal", listener.local_addr().unwrap());
        let dialer = dialer(&url, "http://127.0.0.1:1");
        let busy = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
        let (dialled, asked) = tokio::join!(dialer.dial(), request(listener, busy));
        assert!(asked.starts_with("GET /v1/signal HTTP/1.1\r\n"), "{asked}");
        assert_eq!(dialled.err().expect("no upgrade").refused(), None, "503 passes");
    }

    #[tokio::test]
    async fn a_proxy_over_tls_is_refused_by_name() {
        let dialer = dialer("wss://relay.example/v1/signal", "https://127.0.0.1:1");
        assert!(matches!(dialer.dial().await.err(), Some(DialError::Proxy)));
    }
}
