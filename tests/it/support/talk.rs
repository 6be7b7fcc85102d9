//! Two clients of a session, one of which talks to the other through whatever happens on the way.

use std::{
    future::pending,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use sovereign_relay_client::{
    protocol::signal::frame::Opaque,
    signal::{
        connection::{Connection, Receipt, Sender},
        event::ConnectionEvent,
    },
};

use super::sessions::Made;

const LAST: &str = "the last one";

/// Talks until it is told to stop, and on until the last message has arrived: everything did, in order and once.
pub async fn talk(session: &Made, heard: &AtomicUsize, stop: &AtomicBool) {
    talk_through([&session.url, &session.url], session, heard, stop).await;
}

/// The same, each of the two through a relay of its own.
pub async fn talk_through(urls: [&str; 2], session: &Made, heard: &AtomicUsize, stop: &AtomicBool) {
    let [mut sending, receiving] = [session.open("a", urls[0]), session.open("b", urls[1])];
    let sender = sending.sender();
    let (sent, received) = tokio::select! {
        talked = async { tokio::join!(send_on(&sender, stop), hear_all(receiving, heard)) } => talked,
        message = next_message(&mut sending) => panic!("{message:?} from whom?"),
    };
    assert_eq!(received, (1..=sent).map(|n| n.to_string()).collect::<Vec<_>>());
}

/// One message after the other; how many.
async fn send_on(sender: &Sender, stop: &AtomicBool) -> usize {
    let mut sent = 0;
    while !stop.load(Ordering::SeqCst) {
        sent += 1;
        let receipt = sender.send(Opaque::new(sent.to_string())).await.unwrap();
        stored(receipt).await;
    }
    stored(sender.send(Opaque::new(LAST)).await.unwrap()).await;
    sent
}

/// Waits for good where the session ended meanwhile: whoever reads its connection hears why.
async fn stored(receipt: Receipt) {
    if receipt.stored().await.is_err() {
        pending().await
    }
}

async fn hear_all(mut connection: Connection, heard: &AtomicUsize) -> Vec<String> {
    let mut contents = Vec::new();
    loop {
        let content = next_message(&mut connection).await;
        if content.expose() == LAST {
            return contents;
        }
        contents.push(content.expose().to_owned());
        heard.fetch_add(1, Ordering::SeqCst);
    }
}

/// The next message. Whoever knows that the way is open again doesn't wait after an interruption.
pub async fn next_message(connection: &mut Connection) -> Opaque {
    loop {
        match connection.next().await.expect("not the end") {
            ConnectionEvent::Message { content, .. } => return content,
            ConnectionEvent::Interrupted { .. } => connection.sender().wake(),
            ConnectionEvent::Ended(ended) => panic!("ended: {ended}"),
            ConnectionEvent::Connected { .. }
            | ConnectionEvent::Peer(_)
            | ConnectionEvent::IceServers { .. }
            | ConnectionEvent::Delayed { .. }
            | ConnectionEvent::Stale => {}
        }
    }
}
