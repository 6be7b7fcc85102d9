//! TLS: who is believed, and who isn't.

use std::sync::Arc;

use rustls::{ServerConfig, crypto::aws_lc_rs};
use rustls_pki_types::PrivateKeyDer;
use sovereign_relay_client::{
    protocol::signal::{frame::ServerFrame, id::Slot},
    signal::{
        connection::Connection,
        event::{ConnectionEvent, Interruption},
        invitation::Invitation,
        session::{Options, Session},
    },
    trust::Trust,
};
use tokio_rustls::TlsAcceptor;

use super::server::*;

struct Identity {
    acceptor: TlsAcceptor,
    pem: String,
}

fn identity() -> Identity {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    Identity {
        acceptor: TlsAcceptor::from(Arc::new(config)),
        pem: certified.cert.pem(),
    }
}

fn secure(server: &Server) -> Invitation {
    let port = server.listener.local_addr().unwrap().port();
    Invitation {
        url: format!("wss://localhost:{port}/v1/signal"),
        ..server.invitation()
    }
}

#[tokio::test]
async fn a_certificate_of_the_extra_bundle_is_believed() {
    let (server, identity) = (Server::start().await, identity());
    let options = Options::new(Trust::with_extra(&identity.pem).unwrap());
    let greet = async {
        let (stream, _) = soon(server.listener.accept()).await.unwrap();
        let stream = soon(identity.acceptor.accept(stream)).await.unwrap();
        let mut peer = Peer::upgrade(stream).await;
        peer.hello().await;
        peer.say(&ServerFrame::Welcome(welcome(Slot::A, 1, 0))).await;
        peer
    };
    let (session, _peer) = tokio::join!(Session::connect(secure(&server), &options), greet);
    assert_eq!(session.unwrap().welcome().slot, Slot::A);
}

#[tokio::test]
async fn a_stranger_gets_no_ticket() {
    let (server, identity) = (Server::start().await, identity());
    let (trust, invitation) = (Trust::system().unwrap(), secure(&server));
    let mut connection = Connection::open(&invitation.url, invitation.ticket, &trust).unwrap();
    let (stream, _) = soon(server.listener.accept()).await.unwrap();
    assert!(
        soon(identity.acceptor.accept(stream)).await.is_err(),
        "the handshake must fail"
    );
    let Some(ConnectionEvent::Interrupted { cause, .. }) = soon(connection.next()).await else {
        panic!("an interruption");
    };
    assert_eq!(cause, Interruption::Unreachable);
}
