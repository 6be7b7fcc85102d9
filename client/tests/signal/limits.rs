//! A relay whose operator set other limits than the defaults.

use std::time::Duration;

use sovereign_relay_client::{
    protocol::{
        limits::SIGNAL_FRAME_BYTES,
        signal::{
            frame::{ClientFrame, Opaque, ServerFrame, Welcome},
            id::Slot,
            seal::Opener,
            session::SessionLimits,
        },
    },
    signal::{
        connection::{Connection, NotStored, SendError},
        event::ConnectionEvent,
        message::Message,
        session::{Options, Session},
    },
    trust::Trust,
};
use tokio::time::Instant;

use super::server::*;

fn limited(limits: SessionLimits) -> Welcome {
    Welcome {
        limits,
        ..welcome(Slot::A, 1, 0)
    }
}

fn open(server: &Server) -> Connection {
    let invitation = server.invitation();
    Connection::open(&invitation.url, invitation.ticket, &Trust::system().unwrap()).unwrap()
}

async fn connected(connection: &mut Connection) {
    let event = soon(connection.next()).await;
    assert!(
        matches!(event, Some(ConnectionEvent::Connected { .. })),
        "{event:?}"
    );
}

fn x(length: usize) -> Opaque {
    Opaque::new("x".repeat(length))
}

#[tokio::test]
async fn the_longest_frame_is_the_operators_in_both_directions() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let small = SessionLimits {
        frame_bytes: 1000,
        ..hurried()
    };
    assert_eq!(connection.sender().limits(), SessionLimits::default());
    let (mut peer, _) = server.welcome(limited(small)).await;
    connected(&mut connection).await;
    assert_eq!(connection.sender().limits(), small);
    let frame = |length| ServerFrame::Message {
        seq: u64::MAX,
        generation: u32::MAX,
        content: x(length),
    };
    let longest = 1000 - frame(0).to_text().len();
    assert_eq!(
        soon(connection.send(x(longest + 1))).await.unwrap_err(),
        SendError::TooLarge
    );
    let _ = soon(connection.send(x(longest))).await.unwrap();
    assert_eq!(peer.message().await, (1, "x".repeat(longest)));

    let server = Server::start().await;
    let mut connection = open(&server);
    let large = SessionLimits {
        frame_bytes: 4 * SIGNAL_FRAME_BYTES,
        ..hurried()
    };
    let (mut peer, _) = server.welcome(limited(large)).await;
    connected(&mut connection).await;
    let _ = soon(connection.send(x(2 * SIGNAL_FRAME_BYTES))).await.unwrap();
    assert_eq!(peer.message().await.1.len(), 2 * SIGNAL_FRAME_BYTES);
}

#[tokio::test]
async fn what_was_in_line_before_the_welcome_and_does_not_fit_fails_alone() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let first = soon(connection.send(x(10))).await.unwrap();
    let large = soon(connection.send(x(5000))).await.unwrap();
    let last = soon(connection.send(x(20))).await.unwrap();
    let small = SessionLimits {
        frame_bytes: 1000,
        ..hurried()
    };
    let (mut peer, _) = server.welcome(limited(small)).await;
    assert_eq!(soon(large.stored()).await, Err(NotStored::TooLarge));
    assert_eq!(peer.message().await, (1, "x".repeat(10)));
    assert_eq!(peer.message().await, (2, "x".repeat(20)));
    peer.say(&ServerFrame::Ack { n: 2 }).await;
    soon(first.stored()).await.unwrap();
    soon(last.stored()).await.unwrap();
    connected(&mut connection).await;
}

#[tokio::test]
async fn a_sealed_message_is_as_long_as_the_longest_padding_that_fits_and_a_refused_one_leaves_no_gap() {
    let server = Server::start().await;
    let options = Options::new(Trust::system().unwrap());
    let small = SessionLimits {
        frame_bytes: 8 * 1024,
        ..hurried()
    };
    let connecting = Session::connect(server.invitation(), &options);
    let (session, (mut peer, _)) = tokio::join!(connecting, server.welcome(limited(small)));
    let session = session.unwrap();
    let note = |length| Message::Other {
        kind: "note".to_owned(),
        negotiation: String::new(),
        value: "x".repeat(length).into(),
    };
    // What is around the text of a note is less than this.
    let (around, longest) = (64, 4096);
    assert_eq!(
        soon(session.send(&note(longest))).await.unwrap_err(),
        SendError::TooLarge
    );
    let _ = soon(session.send(&note(longest - around))).await.unwrap();
    let (n, sealed) = peer.message().await;
    assert!(
        n == 1 && sealed.split('.').nth(2) == Some("1"),
        "the first one sealed, too"
    );
    let opened = Opener::new(secret(), SESSION, Slot::A).open(&Opaque::new(sealed));
    assert_eq!(opened.unwrap().len(), longest);
}

#[tokio::test]
async fn messages_come_no_faster_than_the_operator_says() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let slow = SessionLimits {
        messages_per_second: 10,
        burst: 3,
        ..SessionLimits::default()
    };
    let (mut peer, _) = server.welcome(limited(slow)).await;
    connected(&mut connection).await;
    let start = Instant::now();
    for length in 1..=6 {
        let _ = soon(connection.send(x(length))).await.unwrap();
    }
    for n in 1..=6 {
        assert_eq!(peer.message().await.0, n);
    }
    // All but one of the burst at once, then four at their rate.
    assert!(
        start.elapsed() >= Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn no_more_waits_here_than_in_the_relays_mailbox() {
    let server = Server::start().await;
    let mut connection = open(&server);
    let small = SessionLimits {
        mailbox_messages: 3,
        ..hurried()
    };
    let (mut peer, _) = server.welcome(limited(small)).await;
    connected(&mut connection).await;
    let sender = connection.sender();
    let sent = tokio::spawn(async move {
        for length in 1..=20 {
            let _ = sender.send(x(length)).await.unwrap();
        }
    });
    for n in 1..=3 {
        assert_eq!(peer.message().await.0, n);
    }
    // No fourth is under way: the answer comes next.
    peer.say(&ServerFrame::Ping).await;
    assert_eq!(peer.frame().await, ClientFrame::Pong);
    assert!(
        !sent.is_finished(),
        "three wait in line, and as many as are handed over"
    );
    for n in 4..=20 {
        peer.say(&ServerFrame::Ack { n: n - 1 }).await;
        assert_eq!(peer.message().await.0, n);
    }
    soon(sent).await.unwrap();
}
