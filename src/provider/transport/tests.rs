use std::net::Ipv4Addr;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::*;

const SOON: Duration = Duration::from_secs(60);

/// A server on loopback for one connection; its task ends with what the client sent first, read to a pause.
struct Server {
    port: u16,
    task: JoinHandle<String>,
}

struct Identity {
    acceptor: TlsAcceptor,
    pem: String,
}

fn identity(alpn: &[&[u8]]) -> Identity {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        pem: cert.pem(),
    }
}

/// Echoes four bytes over TLS.
async fn target(identity: &Identity) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let (port, acceptor) = (listener.local_addr().unwrap().port(), identity.acceptor.clone());
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = acceptor.accept(stream).await else {
            return "no handshake".to_owned();
        };
        let mut bytes = [0; 4];
        if stream.read_exact(&mut bytes).await.is_ok() {
            stream.write_all(&bytes).await.unwrap();
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    Server { port, task }
}

/// A CONNECT proxy that goes to `to` whatever the name, since it is the proxy that resolves it. With an identity it
/// is reached over TLS.
async fn proxy(to: u16, identity: Option<&Identity>) -> Server {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = identity.map(|identity| identity.acceptor.clone());
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream: BoxStream = match acceptor {
            Some(acceptor) => Box::new(acceptor.accept(stream).await.unwrap()),
            None => Box::new(stream),
        };
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream
            .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            .await
            .unwrap();
        let mut upstream = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await.unwrap();
        let _ = copy_bidirectional(&mut stream, &mut upstream).await;
        String::from_utf8(head).unwrap()
    });
    Server { port, task }
}

fn endpoint(host: &str, port: u16) -> Endpoint {
    Endpoint {
        host: host.to_owned(),
        port,
        tls: true,
    }
}

fn transport(pem: &str, proxies: Matcher) -> Transport {
    Transport::with_proxies(Some(pem), proxies).unwrap()
}

fn no_proxy() -> Matcher {
    Matcher::builder().build()
}

async fn echo(mut stream: BoxStream) {
    stream.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"ping");
}

#[tokio::test]
async fn a_direct_dial_speaks_h2_with_a_host_under_the_extra_ca() {
    let identity = identity(&[ALPN_H2]);
    let server = target(&identity).await;
    echo(
        transport(&identity.pem, no_proxy())
            .dial(&endpoint("localhost", server.port), SOON)
            .await
            .unwrap(),
    )
    .await;
    server.task.await.unwrap();
}

#[tokio::test]
async fn a_certificate_of_another_authority_or_for_another_name_is_refused() {
    let (served, trusted) = (identity(&[ALPN_H2]), identity(&[ALPN_H2]));
    let server = target(&served).await;
    let dialled = transport(&trusted.pem, no_proxy())
        .dial(&endpoint("localhost", server.port), SOON)
        .await;
    assert!(matches!(dialled, Err(DialError::Tls(_))));
    let server = target(&served).await;
    let dialled = transport(&served.pem, no_proxy())
        .dial(&endpoint("127.0.0.1", server.port), SOON)
        .await;
    assert!(matches!(dialled, Err(DialError::Tls(_))));
}

#[tokio::test]
async fn a_peer_without_h2_is_refused() {
    let identity = identity(&[]);
    let server = target(&identity).await;
    let dialled = transport(&identity.pem, no_proxy())
        .dial(&endpoint("localhost", server.port), SOON)
        .await;
    assert!(matches!(dialled, Err(DialError::NoHttp2)));
}

#[tokio::test]
async fn a_silent_peer_costs_the_limit_and_a_closed_port_less() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let transport = transport(&identity(&[]).pem, no_proxy());
    let limit = Duration::from_millis(100);
    let silent = transport.dial(&endpoint("localhost", port), limit).await;
    assert!(matches!(silent, Err(DialError::TimedOut(_))));
    drop(listener);
    let closed = transport.dial(&endpoint("127.0.0.1", port), SOON).await;
    assert!(matches!(closed, Err(DialError::Connect(_))));
}

#[tokio::test]
async fn a_connection_sends_small_writes_at_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let target = endpoint("127.0.0.1", listener.local_addr().unwrap().port());
    assert!(connect(target.uri().unwrap()).await.unwrap().nodelay().unwrap());
}

#[tokio::test]
async fn a_proxy_is_asked_to_connect_by_name_and_given_its_credentials() {
    let identity = identity(&[ALPN_H2]);
    let server = target(&identity).await;
    let proxy = proxy(server.port, None).await;
    let proxies = Matcher::builder()
        .https(format!("http://user:secret@127.0.0.1:{}", proxy.port))
        .build();
    let transport = transport(&identity.pem, proxies);
    echo(transport.dial(&endpoint("localhost", 443), SOON).await.unwrap()).await;
    let head = proxy.task.await.unwrap();
    assert!(head.starts_with("CONNECT localhost:443 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("Basic dXNlcjpzZWNyZXQ="), "{head}");
}

#[tokio::test]
async fn a_proxy_may_itself_be_reached_over_tls() {
    let identity = identity(&[ALPN_H2]);
    let server = target(&identity).await;
    let proxy = proxy(server.port, Some(&identity)).await;
    let proxies = Matcher::builder()
        .https(format!("https://localhost:{}", proxy.port))
        .build();
    echo(
        transport(&identity.pem, proxies)
            .dial(&endpoint("localhost", 443), SOON)
            .await
            .unwrap(),
    )
    .await;
}

#[tokio::test]
async fn a_host_that_no_proxy_names_is_dialled_directly() {
    let identity = identity(&[ALPN_H2]);
    let server = target(&identity).await;
    let proxies = Matcher::builder()
        .https("http://127.0.0.1:1")
        .no("localhost")
        .build();
    echo(
        transport(&identity.pem, proxies)
            .dial(&endpoint("localhost", server.port), SOON)
            .await
            .unwrap(),
    )
    .await;
}

#[tokio::test]
async fn a_proxy_that_refuses_is_a_failed_dial() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refusing = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
    });
    let proxies = Matcher::builder()
        .https(format!("http://127.0.0.1:{port}"))
        .build();
    let dialled = transport(&identity(&[]).pem, proxies)
        .dial(&endpoint("localhost", 443), SOON)
        .await;
    assert!(matches!(dialled, Err(DialError::Connect(_))));
    refusing.await.unwrap();
}

#[test]
fn a_bad_ca_bundle_is_refused_with_its_reason() {
    assert!(matches!(tls_config(Some("")), Err(TlsError::ExtraCaEmpty)));
    assert!(matches!(tls_config(Some("no pem")), Err(TlsError::ExtraCaEmpty)));
    let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----";
    assert!(matches!(tls_config(Some(broken)), Err(TlsError::ExtraCaPem(_))));
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----";
    assert!(matches!(
        tls_config(Some(no_certificate)),
        Err(TlsError::Roots(_))
    ));
}
