//! Connections that are cut, moved, refused or broken, and what arrives all the same.

use sovereign_relay_client::{
    protocol::signal::{
        frame::{ClientFrame, Opaque, Refused, ServerFrame},
        id::Slot,
    },
    signal::{
        connection::Connection,
        event::{ConnectionEvent, Interruption},
    },
    trust::Trust,
};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::server::*;

fn open(server: &Server) -> Connection {
    let invitation = server.invitation();
    Connection::open(&invitation.url, invitation.ticket, &Trust::system().unwrap()).unwrap()
}

async fn interruption(connection: &mut Connection) -> Interruption {
    loop {
        match soon(connection.next()).await.expect("not the end") {
            ConnectionEvent::Interrupted { cause, .. } => return cause,
            ConnectionEvent::Ended(ended) => panic!("ended: {ended}"),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_socket_killed_between_storing_and_acknowledging_costs_nothing_and_repeats_nothing() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let sender = connection.sender();
    let mut receipts = Vec::new();
    for n in 0..12 {
        let content = Opaque::new(format!("e1.{n}"));
        receipts.push(soon(sender.send(content)).await.unwrap());
    }
    // Whoever knows that the network is back doesn't wait.
    let _impatient = tokio::spawn(async move {
        while let Some(event) = connection.next().await {
            if matches!(event, ConnectionEvent::Interrupted { .. }) {
                connection.sender().wake();
            }
        }
    });
    let mut stored = Vec::new();
    let mut identity = None;
    for attempt in 1..=4 {
        let next = stored.len() as u64 + 1;
        let (mut peer, hello) = server.welcome(welcome(Slot::A, next, 0)).await;
        assert_eq!(hello.attempt, attempt);
        assert_eq!(*identity.get_or_insert(hello.connection), hello.connection);
        for _ in 0..3 {
            let (n, content) = peer.message().await;
            assert_eq!(n, stored.len() as u64 + 1);
            stored.push(content);
        }
        // Dropped without a close frame and without an acknowledgement.
    }
    let (_peer, _) = server.welcome(welcome(Slot::A, 13, 0)).await;
    for receipt in receipts {
        soon(receipt.stored()).await.unwrap();
    }
    assert_eq!(stored, (0..12).map(|n| format!("e1.{n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_refused_message_comes_again_on_the_same_connection_with_those_behind_it() {
    let server = Server::start().await;
    let mut connection = open(&server);
    for n in 1..=6 {
        let _ = soon(connection.send(Opaque::new(format!("e1.{n}"))))
            .await
            .unwrap();
    }
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    for n in 1..=6 {
        assert_eq!(peer.message().await.0, n);
    }
    let code = Refused::MailboxFull;
    peer.say(&ServerFrame::Err {
        code,
        n: 1,
        retry_ms: 30,
    })
    .await;
    for n in 1..=6 {
        assert_eq!(peer.message().await, (n, format!("e1.{n}")));
    }
    let delayed = async {
        while let Some(event) = connection.next().await {
            if let ConnectionEvent::Delayed { code, .. } = event {
                return code;
            }
        }
        panic!("it ended");
    };
    assert_eq!(soon(delayed).await, code);
}

#[tokio::test]
async fn what_was_received_twice_is_told_once() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let message = |seq: u64| ServerFrame::Message {
        seq,
        generation: 1,
        content: Opaque::new(seq.to_string()),
    };
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    for seq in 1..=3 {
        peer.say(&message(seq)).await;
    }
    peer.close(1001).await;
    let (mut peer, hello) = server.welcome(welcome(Slot::A, 1, 0)).await;
    for seq in hello.last + 1..=5 {
        peer.say(&message(seq)).await;
    }
    let mut heard = Vec::new();
    while heard.len() < 5 {
        if let Some(ConnectionEvent::Message { content, .. }) = soon(connection.next()).await {
            heard.push(content.expose().to_owned());
        }
    }
    assert_eq!(heard, ["1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn after_a_goaway_it_dials_again_by_itself() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    peer.say(&ServerFrame::Goaway { in_ms: 20 }).await;
    let (mut moved, hello) = server.welcome(welcome(Slot::A, 1, 0)).await;
    assert_eq!(hello.attempt, 2);
    assert_eq!(interruption(&mut connection).await, Interruption::Moving);
    let Some(Message::Close(Some(frame))) = peer.raw().await else {
        panic!("the old connection is closed");
    };
    assert_eq!(u16::from(frame.code), 1001);
    let _ = soon(connection.send(Opaque::new("e1.x"))).await.unwrap();
    assert_eq!(moved.message().await.0, 1);
}

#[tokio::test]
async fn what_breaks_the_protocol_costs_the_connection_and_not_the_session() {
    for wrong in [
        Message::text("null"),
        Message::text(ServerFrame::Ack { n: 9 }.to_text()),
        Message::Binary(vec![1].into()),
    ] {
        let server = Server::start().await;
        let mut connection = open(&server);
        let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
        peer.raw_say(wrong).await;
        assert_eq!(interruption(&mut connection).await, Interruption::Fault);
        let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
        peer.say(&ServerFrame::Ping).await;
        assert_eq!(peer.frame().await, ClientFrame::Pong);
    }
}

#[tokio::test]
async fn a_relay_that_is_not_there_yet_is_found_when_it_is() {
    let server = Server::start().await;
    let mut connection = open(&server);
    for _ in 0..2 {
        // Accepted and dropped before the upgrade.
        soon(server.listener.accept()).await.unwrap();
        assert_eq!(interruption(&mut connection).await, Interruption::Unreachable);
    }
    let (_peer, hello) = server.welcome(welcome(Slot::A, 1, 0)).await;
    assert_eq!(hello.attempt, 3);
}

#[tokio::test]
async fn a_network_that_swallows_everything_is_noticed_10_s_after_an_unanswered_ping() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    assert!(matches!(
        soon(connection.next()).await,
        Some(ConnectionEvent::Connected { .. })
    ));
    let start = Instant::now();
    tokio::time::pause();
    let Some(ConnectionEvent::Interrupted { cause, .. }) = connection.next().await else {
        panic!("an interruption");
    };
    tokio::time::resume();
    assert_eq!(cause, Interruption::Silent);
    assert!(
        (29..32).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(peer.frame().await, ClientFrame::Ping);
}
