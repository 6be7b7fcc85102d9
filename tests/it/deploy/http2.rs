//! Over TLS, where instances speak HTTP/2 to Caddy: many requests on one connection, which none of them may end.

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request};
use rustls_pki_types::ServerName;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::caddy::{Caddy, own_certificate};
use crate::support::upstream::{Fate, Upstream};

#[tokio::test]
async fn a_body_of_unknown_length_does_not_end_the_connection_for_the_others() {
    let upstream = Upstream::start(Fate::Answered).await;
    let place = Caddy::choose();
    let own = own_certificate();
    let _caddy = Caddy::start_with_tls(place, &[upstream.address()], &own).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let mut tls = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(place).await.unwrap();
    let stream = TlsConnector::from(Arc::new(tls))
        .connect(name, stream)
        .await
        .unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    for _ in 0..3 {
        requests = post(requests, place.port()).await;
    }
    assert!(!connection.is_finished());
}

/// A push whose length the head does not name.
async fn post(requests: SendRequest<Bytes>, port: u16) -> SendRequest<Bytes> {
    let mut requests = requests.ready().await.expect("the connection is still good");
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("https://localhost:{port}/v1/push"))
        .body(())
        .unwrap();
    let (answer, mut body) = requests.send_request(request, false).unwrap();
    body.send_data(Bytes::from_static(b"{}"), true).unwrap();
    assert_eq!(answer.await.unwrap().status(), 200);
    requests
}
