//! A connection that nothing happens to.

use futures_util::future::poll_immediate;
use sovereign_relay_client::{
    protocol::signal::{
        frame::{ClientFrame, Opaque, PeerPresence, PeerState, ServerFrame},
        id::Slot,
        seal::{Opener, Sealer},
    },
    signal::{
        connection::{Connection, SendError},
        event::ConnectionEvent,
        message::Message,
        session::{Event, Options, Session},
    },
    trust::Trust,
};
use tokio_tungstenite::tungstenite;

use super::server::*;

fn options() -> Options {
    Options::new(Trust::system().unwrap())
}

fn offer() -> Message {
    Message::Offer {
        negotiation: "n1".to_owned(),
        sdp: "v=0 marked".to_owned(),
    }
}

fn delivered(seq: u64, content: Opaque) -> ServerFrame {
    ServerFrame::Message {
        seq,
        generation: 1,
        content,
    }
}

#[tokio::test]
async fn what_one_side_says_the_other_opens_and_the_relay_sees_neither_it_nor_a_ticket_in_the_upgrade() {
    let server = Server::start().await;
    let options = options();
    let connecting = Session::connect(server.invitation(), &options);
    let (session, (mut peer, hello)) = tokio::join!(connecting, server.welcome(welcome(Slot::A, 1, 0)));
    let mut session = session.unwrap();
    assert_eq!(hello.ticket.expose(), "the-ticket");
    assert!(!peer.upgrade.contains("the-ticket"), "{}", peer.upgrade);
    assert_eq!(session.welcome().slot, Slot::A);

    let receipt = soon(session.send(&offer())).await.unwrap();
    let (n, sealed) = peer.message().await;
    assert!(n == 1 && sealed.starts_with("e1.") && !sealed.contains("marked"));
    peer.say(&ServerFrame::Ack { n }).await;
    soon(receipt.stored()).await.unwrap();
    let opened = Opener::new(secret(), SESSION, Slot::A).open(&Opaque::new(sealed));
    let json = opened.unwrap();
    assert!(json.contains("v=0 marked"));

    let mut other = Sealer::new(&secret(), SESSION, Slot::B, [2; 16]);
    let answer = r#"{"kind":"answer","negotiation":"n1","value":{"type":"answer","sdp":"v=0"}}"#;
    let online = PeerPresence {
        state: PeerState::Online,
        generation: 1,
    };
    let (state, generation) = (online.state, online.generation);
    peer.say(&ServerFrame::Peer {
        state,
        generation,
        seq: None,
    })
    .await;
    peer.say(&delivered(1, other.seal(answer).unwrap())).await;
    assert_eq!(soon(session.next()).await, Some(Event::Peer(online)));
    let Some(Event::Message(Message::Answer { negotiation, .. })) = soon(session.next()).await else {
        panic!("the answer");
    };
    assert_eq!(negotiation, "n1");
    assert_eq!(peer.frame().await, ClientFrame::Ack { seq: 1 });
}

#[tokio::test]
async fn pings_of_both_kinds_are_answered() {
    let server = Server::start().await;
    let options = options();
    let connecting = Session::connect(server.invitation(), &options);
    let (session, (mut peer, _)) = tokio::join!(connecting, server.welcome(welcome(Slot::A, 1, 0)));
    let _session = session.unwrap();
    peer.say(&ServerFrame::Ping).await;
    assert_eq!(peer.frame().await, ClientFrame::Pong);
    peer.raw_say(tungstenite::Message::Ping("x".into())).await;
    assert_eq!(peer.raw().await, Some(tungstenite::Message::Pong("x".into())));
}

#[tokio::test]
async fn a_wake_up_makes_an_open_connection_prove_itself() {
    let server = Server::start().await;
    let options = options();
    let connecting = Session::connect(server.invitation(), &options);
    let (session, (mut peer, _)) = tokio::join!(connecting, server.welcome(welcome(Slot::A, 1, 0)));
    session.as_ref().unwrap().sender().wake();
    assert_eq!(peer.frame().await, ClientFrame::Ping);
    session.unwrap().sender().request_ice();
}

#[tokio::test]
async fn a_full_outbox_makes_the_caller_wait_until_the_relay_has_stored_something() {
    let server = Server::start().await;
    let invitation = server.invitation();
    let trust = Trust::system().unwrap();
    let connection = Connection::open(&invitation.url, invitation.ticket, &trust).unwrap();
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    let content = |n: usize| Opaque::new(format!("e1.{n}"));
    // What the outbox holds, and what is handed over to it.
    for n in 0..260 {
        let _ = soon(connection.send(content(n))).await.unwrap();
    }
    let mut next = Box::pin(connection.send(content(260)));
    for _ in 0..1000 {
        assert!(poll_immediate(&mut next).await.is_none());
        tokio::task::yield_now().await;
    }
    for n in 1..=32 {
        assert_eq!(peer.message().await.0, n);
    }
    peer.say(&ServerFrame::Ack { n: 1 }).await;
    let receipt = soon(&mut next).await.unwrap();
    for n in 33..=261 {
        assert_eq!(peer.message().await, (n, format!("e1.{}", n - 1)));
        peer.say(&ServerFrame::Ack { n }).await;
    }
    soon(receipt.stored()).await.unwrap();
    let large = soon(connection.send(Opaque::new("x".repeat(32 * 1024)))).await;
    assert_eq!(large.unwrap_err(), SendError::TooLarge);
}

#[tokio::test]
async fn calls_that_are_given_up_lose_nothing_and_repeat_nothing() {
    let server = Server::start().await;
    let invitation = server.invitation();
    let trust = Trust::system().unwrap();
    let mut connection = Connection::open(&invitation.url, invitation.ticket, &trust).unwrap();
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    for seq in 1..=50 {
        peer.say(&delivered(seq, Opaque::new(seq.to_string()))).await;
    }
    let mut heard = Vec::new();
    let all = async {
        while heard.len() < 50 {
            // Polled once and dropped.
            if let Some(Some(ConnectionEvent::Message { content, .. })) =
                poll_immediate(connection.next()).await
            {
                heard.push(content.expose().to_owned());
            }
            tokio::task::yield_now().await;
        }
    };
    soon(all).await;
    assert_eq!(heard, (1..=50).map(|seq| seq.to_string()).collect::<Vec<_>>());

    let mut said = Vec::new();
    for n in 0..200 {
        let content = format!("e1.{n}");
        if let Some(sent) = poll_immediate(connection.send(Opaque::new(content.clone()))).await {
            let _ = sent.unwrap();
            said.push(content);
        }
        if n % 7 == 0 {
            tokio::task::yield_now().await;
        }
    }
    for (index, content) in said.into_iter().enumerate() {
        let n = index as u64 + 1;
        assert_eq!(peer.message().await, (n, content));
        peer.say(&ServerFrame::Ack { n }).await;
    }
}

#[tokio::test]
async fn a_message_is_acknowledged_when_the_application_takes_it_and_not_before() {
    let server = Server::start().await;
    let invitation = server.invitation();
    let trust = Trust::system().unwrap();
    let mut connection = Connection::open(&invitation.url, invitation.ticket, &trust).unwrap();
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    for seq in 1..=2 {
        peer.say(&delivered(seq, Opaque::new("e1.x"))).await;
    }
    assert!(matches!(
        soon(connection.next()).await,
        Some(ConnectionEvent::Connected { .. })
    ));
    // An acknowledgement that isn't held back would come before this answer.
    peer.say(&ServerFrame::Ping).await;
    assert_eq!(peer.frame().await, ClientFrame::Pong);
    assert!(matches!(
        soon(connection.next()).await,
        Some(ConnectionEvent::Message { .. })
    ));
    assert_eq!(peer.frame().await, ClientFrame::Ack { seq: 1 });
}

#[tokio::test]
async fn an_application_that_is_behind_is_not_flooded_and_misses_nothing() {
    let server = Server::start().await;
    let invitation = server.invitation();
    let trust = Trust::system().unwrap();
    let mut connection = Connection::open(&invitation.url, invitation.ticket, &trust).unwrap();
    let (mut peer, _) = server.welcome(welcome(Slot::A, 1, 0)).await;
    for seq in 1..=600 {
        peer.say(&delivered(seq, Opaque::new(seq.to_string()))).await;
    }
    peer.say(&ServerFrame::Ping).await;
    let mut heard = 0;
    while heard < 600 {
        if let Some(ConnectionEvent::Message { content, .. }) = soon(connection.next()).await {
            heard += 1;
            assert_eq!(content.expose(), heard.to_string());
        }
    }
    // The ping was read only after some had been taken, and those were acknowledged.
    assert!(matches!(peer.frame().await, ClientFrame::Ack { .. }));
    while peer.frame().await != ClientFrame::Pong {}
}
