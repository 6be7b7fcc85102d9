//! What an idle connection holds: one future of this size, one session's share of an actor, and no buffer (which
//! `socket/tests.rs` shows). docs/PERFORMANCE.md has what it comes to.

use actix_codec::Framed;
use actix_http::{h1, test::TestRequest};
use tokio::net::{TcpListener, TcpStream};

use super::kit::*;
use crate::ws::upgrade;

/// More than it is, so that a compiler may differ, and less than a buffer or a second copy of it.
const MOST_BYTES: usize = 2048;

async fn accepted() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, _) = tokio::join!(listener.accept(), TcpStream::connect(address));
    accepted.unwrap().0
}

#[actix_web::test]
async fn a_connection_is_one_small_future() {
    let kit = Kit::start().await;
    let mut request = TestRequest::with_uri(upgrade::PATH);
    for (name, value) in HANDSHAKE {
        request.insert_header((name, value));
    }
    let framed = Framed::new(accepted().await, h1::Codec::default());
    let request = request.finish();
    assert!(kit.upgrades.takes(&request));
    let upgraded = upgrade::accept(kit.upgrades.clone(), &request, framed).await;
    let connection = upgraded.unwrap().converse();
    let bytes = size_of_val(&*connection);
    assert!(bytes <= MOST_BYTES, "{bytes}");
}

const HANDSHAKE: [(&str, &str); 5] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("sec-websocket-protocol", "sovereign.signal.v1"),
];
