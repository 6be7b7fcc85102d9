//! Clients for the tests.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Request, StatusCode};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::{Value, json};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{ApnsKey, ApnsSimulator, SimulatorOptions, Simulators};

/// How long a test waits for something that should happen at once.
pub(super) const SOON: Duration = Duration::from_secs(60);

pub(super) async fn simulators() -> Simulators {
    Simulators::start(SimulatorOptions::default()).await.unwrap()
}

/// Waits for a condition that no event announces, by letting the other tasks run.
pub(super) async fn until(condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, met).await.unwrap();
}

pub(super) async fn dial(ca_pem: &str, port: u16, alpn: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

pub(super) fn sign(key: &ApnsKey, team: &str, issued_at: i64) -> String {
    let header = Header {
        kid: Some(key.key_id.clone()),
        typ: None,
        ..Header::new(Algorithm::ES256)
    };
    let encoding = EncodingKey::from_ec_pem(key.pem.as_bytes()).unwrap();
    jsonwebtoken::encode(&header, &json!({ "iss": team, "iat": issued_at }), &encoding).unwrap()
}

/// An APNs client on one connection.
pub(super) struct Apns {
    pub(super) send: SendRequest<Bytes>,
    pub(super) jwt: String,
    topic: String,
    pub(super) connection: JoinHandle<Result<(), h2::Error>>,
}

/// An answer of APNs.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn reason(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["reason"].as_str().unwrap().to_owned()
    }
}

impl Apns {
    pub(super) async fn connect(simulators: &Simulators, apns: &ApnsSimulator) -> Self {
        let stream = dial(&simulators.ca_pem, apns.port(), b"h2").await.unwrap();
        let (send, connection) = h2::client::handshake(stream).await.unwrap();
        let jwt = sign(
            &apns.key(),
            &apns.options().team_id,
            simulators.clock().unix_seconds(),
        );
        Self {
            send,
            jwt,
            topic: apns.options().bundle_id.clone(),
            connection: tokio::spawn(connection),
        }
    }

    pub(super) fn request(&self, token: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::post(format!("https://localhost/3/device/{token}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let set = |name: &str| headers.iter().any(|(given, _)| *given == name);
        if !set("authorization") {
            request = request.header("authorization", format!("bearer {}", self.jwt));
        }
        if !set("apns-topic") {
            request = request.header("apns-topic", &self.topic);
        }
        request.body(()).unwrap()
    }

    /// Opens a stream with a good body; the future is its answer.
    pub(super) async fn start(&self, request: Request<()>) -> Result<h2::client::ResponseFuture, h2::Error> {
        let mut send = self.send.clone().ready().await?;
        let (response, mut body) = send.send_request(request, false)?;
        body.send_data(Bytes::from_static(b"{\"aps\":{\"mutable-content\":1}}"), true)?;
        Ok(response)
    }

    pub(super) async fn exchange(&self, request: Request<()>) -> Result<Answer, h2::Error> {
        read(self.start(request).await?).await
    }

    pub(super) async fn push(&self, token: &str) -> Result<Answer, h2::Error> {
        self.exchange(self.request(token, &[])).await
    }

    pub(super) async fn push_with(&self, token: &str, headers: &[(&str, &str)]) -> Answer {
        self.exchange(self.request(token, headers)).await.unwrap()
    }

    /// Waits until the peer's SETTINGS allow `limit` streams.
    pub(super) async fn await_limit(&self, limit: usize) {
        until(|| self.send.current_max_send_streams() == limit).await;
    }
}

pub(super) async fn read(response: h2::client::ResponseFuture) -> Result<Answer, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        body.extend_from_slice(&data);
    }
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: String::from_utf8(body).unwrap(),
    })
}

/// An HTTP client that trusts the simulators and follows no redirect.
pub(super) fn http(simulators: &Simulators) -> reqwest::Client {
    let ca = reqwest::Certificate::from_pem(simulators.ca_pem.as_bytes()).unwrap();
    reqwest::Client::builder()
        .tls_certs_only([ca])
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap()
}
