//! https, as every push service outside a demo has it.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer},
};

use super::*;

const NAME: &str = "push.example";

/// A push service with a certificate for [`NAME`] that takes one push and gives its head, or `None` if the client
/// turned away at the handshake.
struct Secure {
    ca_pem: String,
    port: u16,
    head: JoinHandle<Option<String>>,
}

impl Secure {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (ca_pem, acceptor) = certificate();
        let head = tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let mut stream = acceptor.accept(socket).await.ok()?;
            let mut head = vec![0; 2048];
            let length = stream.read(&mut head).await.ok()?;
            let _ = stream
                .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
                .await;
            head.truncate(length);
            Some(String::from_utf8_lossy(&head).into_owned())
        });
        Self { ca_pem, port, head }
    }

    fn sender(&self, extra_ca: Option<String>) -> WebPush {
        let settings = Settings { extra_ca, ..local() };
        let address = format!("127.0.0.1:{}", self.port).parse().unwrap();
        hostile::with_names(&settings, &[(NAME, address)])
    }

    fn endpoint(&self) -> String {
        format!("https://{NAME}:{}/send/1", self.port)
    }
}

fn certificate() -> (String, TlsAcceptor) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let issuer = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([NAME.to_owned()]).unwrap();
    let chain = vec![params.signed_by(&key, &issuer).unwrap().der().clone()];
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    (issuer.pem(), TlsAcceptor::from(Arc::new(config)))
}

#[tokio::test]
async fn a_push_goes_over_tls_with_the_head_that_the_rfcs_ask_for() {
    let service = Secure::start().await;
    let web_push = service.sender(Some(service.ca_pem.clone()));
    assert_eq!(hostile::post(&web_push, &service.endpoint()).await, Outcome::Sent);
    let head = service.head.await.unwrap().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("post /send/1 http/1.1\r\n"));
    for line in [
        "ttl: 60",
        "urgency: high",
        "content-encoding: aes128gcm",
        "authorization: vapid t=",
    ] {
        assert!(head.contains(&format!("\r\n{line}")), "{line}");
    }
    assert!(!head.contains("\r\ntopic:"));
}

#[tokio::test]
async fn a_service_whose_certificate_nobody_vouches_for_gets_nothing() {
    let service = Secure::start().await;
    let web_push = service.sender(None);
    assert_eq!(
        hostile::post(&web_push, &service.endpoint()).await,
        Outcome::retry(RetryCause::NotReached)
    );
    assert_eq!(service.head.await.unwrap(), None);
}
