//! A connection that lives and carries nothing.

use std::net::Ipv4Addr;

use tokio::net::{TcpListener, TcpStream};

use super::*;

/// An FCM whose first connection gives no streams and lives on; the others do. Answers with its endpoint.
async fn barren_at_first() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for streams in std::iter::once(0).chain(std::iter::repeat(100)) {
            let (socket, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(socket, streams));
        }
    });
    endpoint
}

async fn serve(socket: TcpStream, streams: u32) {
    let mut connection = h2::server::Builder::new()
        .max_concurrent_streams(streams)
        .handshake(socket)
        .await
        .unwrap();
    while let Some(Ok((_request, mut respond))) = connection.accept().await {
        let mut stream = respond.send_response(::http::Response::new(()), false).unwrap();
        stream
            .send_data(Bytes::from_static(br#"{"name":"projects/p/messages/1"}"#), true)
            .unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_gives_no_stream_is_left_for_another_within_the_push() {
    let world = World::start().await;
    let provider = world.with_fcm_at(&barren_at_first().await);
    let pushes = (0..20).map(|_| provider.deliver(world.delivery(Duration::from_secs(60))));
    for outcome in futures_util::future::join_all(pushes).await {
        assert!(matches!(outcome, Outcome::Sent { .. }), "{outcome:?}");
    }
    let next = provider.deliver(world.delivery(Duration::from_secs(4))).await;
    assert!(matches!(next, Outcome::Sent { .. }), "{next:?}");
}
