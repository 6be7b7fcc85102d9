//! The client: plain HTTP/1.1 connections to the relay, one HTTP/2 connection over TLS to the APNs simulator.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{ClientConfig, RootCertStore, pki_types::pem::PemObject as _};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

type Body = Full<Bytes>;

/// Connections that are kept alive and lent to one call at a time, as an instance's HTTP client does.
pub(crate) struct Http1 {
    address: SocketAddr,
    idle: Mutex<Vec<http1::SendRequest<Body>>>,
}

impl Http1 {
    pub(crate) fn to(url: &str) -> anyhow::Result<Self> {
        let address = url
            .trim_start_matches("http://")
            .parse()
            .context("not http://address:port")?;
        Ok(Self {
            address,
            idle: Mutex::default(),
        })
    }

    /// Makes a call and reads the whole answer.
    pub(crate) async fn call(&self, request: Request<Body>) -> anyhow::Result<(u16, Bytes)> {
        let mut connection = match self.kept() {
            Some(connection) => connection,
            None => self.open().await?,
        };
        connection.ready().await?;
        let answer = read(connection.send_request(request).await?).await?;
        self.idle().push(connection);
        Ok(answer)
    }

    /// Ends the connections that no call has now.
    pub(crate) fn close(&self) {
        self.idle().clear();
    }

    /// One that the server has not closed meanwhile.
    fn kept(&self) -> Option<http1::SendRequest<Body>> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop()).find(|connection| !connection.is_closed())
    }

    async fn open(&self) -> anyhow::Result<http1::SendRequest<Body>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<http1::SendRequest<Body>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One HTTP/2 connection over TLS.
#[derive(Clone)]
pub(crate) struct Http2(http2::SendRequest<Body>);

impl Http2 {
    pub(crate) async fn to(port: u16, ca_pem: &str) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut tls = builder.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
        // APNs allows one stream until it has seen a valid request.
        let mut builder = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder
            .initial_max_send_streams(1)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(Self(sender))
    }

    /// Makes a call and reads the whole answer.
    pub(crate) async fn call(&self, request: Request<Body>) -> anyhow::Result<(u16, Bytes)> {
        let mut sender = self.0.clone();
        sender.ready().await?;
        read(sender.send_request(request).await?).await
    }
}

async fn read(response: Response<Incoming>) -> anyhow::Result<(u16, Bytes)> {
    let status = response.status().as_u16();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}
