//! How a connection to a provider is opened: trusted roots, name resolution, outgoing proxy, TLS.
//!
//! APNs dials here for each new connection. FCM and WNS hand [`tls_config`] to their HTTP client, so that all
//! providers trust the same roots.
//!
//! ```text
//! direct: DNS (fresh, both families raced) -> TCP -> TLS (ALPN h2)
//! proxy:  TCP -> [TLS to the proxy] -> CONNECT host:port -> TLS (ALPN h2); the proxy resolves the name
//! ```
//!
//! Invariant: what is returned speaks HTTP/2 with the named host and has TCP_NODELAY set; nothing is dialled
//! without a time limit.

use std::{fmt, io, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::{
    client::{
        legacy::connect::{HttpConnector, proxy::Tunnel},
        proxy::matcher::{Intercept, Matcher},
    },
    rt::TokioIo,
};
use rustls::{ClientConfig, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls_platform_verifier::Verifier;
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;
use tower_service::Service as _;

/// HTTP/2 in the TLS handshake.
const ALPN_H2: &[u8] = b"h2";
/// When the first address family does not answer, the other is tried beside it (RFC 8305's recommended value).
const HAPPY_EYEBALLS: Duration = Duration::from_millis(250);

/// Opens connections. Cheap to clone; one for the whole process, since it holds the system's root certificates.
#[derive(Clone)]
pub struct Transport {
    h2: TlsConnector,
    to_proxy: TlsConnector,
    proxies: Arc<Matcher>,
}

/// Where a provider listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Without TLS the connection is HTTP/2 with prior knowledge: for simulators only.
    pub tls: bool,
}

/// The TLS configuration could not be made.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The extra CA bundle is not PEM.
    #[error("the extra CA bundle is not PEM: {0}")]
    ExtraCaPem(rustls_pki_types::pem::Error),
    /// The extra CA bundle is empty.
    #[error("the extra CA bundle holds no certificate")]
    ExtraCaEmpty,
    /// A certificate of the bundle, or the system's store, was not accepted.
    #[error("the trusted root certificates could not be loaded: {0}")]
    Roots(rustls::Error),
}

/// A connection could not be opened. No request was sent.
#[derive(Debug, Error)]
pub enum DialError {
    /// Nothing answered in time.
    #[error("no connection within {0:?}")]
    TimedOut(Duration),
    /// The host and port don't make an address.
    #[error("the endpoint is not a valid host and port")]
    Endpoint,
    /// DNS, TCP or the proxy said no.
    #[error("connecting failed: {0}")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The handshake or the certificate was not accepted.
    #[error("the TLS handshake failed: {0}")]
    Tls(#[source] io::Error),
    /// The peer does not offer HTTP/2.
    #[error("the peer does not offer HTTP/2")]
    NoHttp2,
}

/// A byte stream, whatever it is made of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}
/// What a dial gives.
pub(crate) type BoxStream = Box<dyn Stream>;

/// The roots of the platform plus `extra_ca` (PEM, one or more certificates), TLS 1.2 or newer, by aws-lc.
/// ALPN is left empty: reqwest's `tls_backend_preconfigured` takes the configuration as it is, so its caller
/// sets `alpn_protocols` itself.
pub(crate) fn tls_config(extra_ca: Option<&str>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let extra_roots = extra_ca.map(parse_bundle).transpose()?.unwrap_or_default();
    let verifier = Verifier::new_with_extra_roots(extra_roots, provider.clone()).map_err(TlsError::Roots)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Roots)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(config)
}

/// The certificates of an extra CA bundle, of which there is at least one.
pub(crate) fn parse_bundle(pem: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(TlsError::ExtraCaPem)?;
    if certificates.is_empty() {
        return Err(TlsError::ExtraCaEmpty);
    }
    Ok(certificates)
}

impl Transport {
    /// With the platform's roots plus `extra_ca`, and the proxies that `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`
    /// name.
    pub fn new(extra_ca: Option<&str>) -> Result<Self, TlsError> {
        Self::with_proxies(extra_ca, Matcher::from_env())
    }

    /// Like [`Transport::new`], with the proxies given.
    pub(crate) fn with_proxies(extra_ca: Option<&str>, proxies: Matcher) -> Result<Self, TlsError> {
        let to_proxy = tls_config(extra_ca)?;
        let mut h2 = to_proxy.clone();
        h2.alpn_protocols = vec![ALPN_H2.to_vec()];
        Ok(Self {
            h2: TlsConnector::from(Arc::new(h2)),
            to_proxy: TlsConnector::from(Arc::new(to_proxy)),
            proxies: Arc::new(proxies),
        })
    }

    /// Opens one connection within `limit`: name resolution, TCP, proxy and TLS together.
    pub(crate) async fn dial(&self, endpoint: &Endpoint, limit: Duration) -> Result<BoxStream, DialError> {
        timeout(limit, self.open(endpoint))
            .await
            .unwrap_or(Err(DialError::TimedOut(limit)))
    }

    async fn open(&self, endpoint: &Endpoint) -> Result<BoxStream, DialError> {
        let target = endpoint.uri()?;
        let stream = match self.proxies.intercept(&target) {
            Some(proxy) => self.open_through(&proxy, target).await?,
            None => Box::new(connect(target).await?) as BoxStream,
        };
        if !endpoint.tls {
            return Ok(stream);
        }
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|_| DialError::Endpoint)?;
        let secured = self.h2.connect(name, stream).await.map_err(DialError::Tls)?;
        if secured.get_ref().1.alpn_protocol() != Some(ALPN_H2) {
            return Err(DialError::NoHttp2);
        }
        Ok(Box::new(secured))
    }

    /// CONNECT through `proxy`, itself reached over TLS when its URL says https.
    async fn open_through(&self, proxy: &Intercept, target: Uri) -> Result<BoxStream, DialError> {
        let connector = ProxyConnector {
            tls: self.to_proxy.clone(),
        };
        let mut tunnel = Tunnel::new(proxy.uri().clone(), connector);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let stream = tunnel
            .call(target)
            .await
            .map_err(|error| DialError::Connect(error.into()))?;
        Ok(stream.into_inner())
    }
}

impl Endpoint {
    /// As `host:port`, with brackets around an IPv6 address.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// As an https URI: a proxy rule for https holds for everything a provider is sent, plain HTTP/2 included.
    fn uri(&self) -> Result<Uri, DialError> {
        let parts = Uri::builder()
            .scheme("https")
            .authority(self.authority())
            .path_and_query("/");
        parts.build().map_err(|_| DialError::Endpoint)
    }
}

/// One TCP connection, its name looked up now: a provider's addresses change while the process lives.
async fn connect(target: Uri) -> Result<TcpStream, DialError> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_happy_eyeballs_timeout(Some(HAPPY_EYEBALLS));
    let stream = connector
        .call(target)
        .await
        .map_err(|error| DialError::Connect(error.into()))?;
    Ok(stream.into_inner())
}

/// Reaches the proxy itself, for [`Tunnel`].
#[derive(Clone)]
struct ProxyConnector {
    tls: TlsConnector,
}

impl tower_service::Service<Uri> for ProxyConnector {
    type Response = TokioIo<BoxStream>;
    type Error = DialError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), DialError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, proxy: Uri) -> Self::Future {
        let tls = self.tls.clone();
        Box::pin(async move {
            let host = proxy
                .host()
                .ok_or(DialError::Endpoint)?
                .trim_matches(['[', ']'])
                .to_owned();
            let secure = proxy.scheme_str() == Some("https");
            let stream = connect(proxy).await?;
            if !secure {
                return Ok(TokioIo::new(Box::new(stream) as BoxStream));
            }
            let name = ServerName::try_from(host).map_err(|_| DialError::Endpoint)?;
            let secured = tls.connect(name, stream).await.map_err(DialError::Tls)?;
            Ok(TokioIo::new(Box::new(secured) as BoxStream))
        })
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

#[cfg(test)]
mod tests;
