//! Ends: said by this side, by the relay, or by dropping.

use std::time::Duration;

use sovereign_relay_client::{
    protocol::signal::{
        close::CloseCode,
        frame::{ClientFrame, Mood, ServerFrame},
        id::Slot,
    },
    signal::{
        connection::{NotStored, SendError},
        event::{Ended, Interruption},
        message::Message,
        session::{ConnectError, Event, Options, Session},
    },
    trust::Trust,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite;

use super::server::*;

fn note() -> Message {
    Message::Other {
        kind: "note".to_owned(),
        negotiation: String::new(),
        value: 7.into(),
    }
}

async fn joined(server: &Server) -> (Session, Peer) {
    let options = Options::new(Trust::system().unwrap());
    let connecting = Session::connect(server.invitation(), &options);
    let (session, (peer, _)) = tokio::join!(connecting, server.welcome(welcome(Slot::B, 1, 0)));
    (session.unwrap(), peer)
}

#[tokio::test]
async fn who_closes_waits_for_the_last_message_then_says_how_it_went() {
    let server = Server::start().await;
    let (session, mut peer) = joined(&server).await;
    let receipt = soon(session.send(&note())).await.unwrap();
    let closing = tokio::spawn(session.close(Mood::Relayed));
    let (n, _) = peer.message().await;
    peer.say(&ServerFrame::Ack { n }).await;
    let mood = Some(Mood::Relayed);
    assert_eq!(peer.frame().await, ClientFrame::Bye { mood });
    let Some(tungstenite::Message::Close(Some(frame))) = peer.raw().await else {
        panic!("a closing handshake");
    };
    assert_eq!(u16::from(frame.code), 1000);
    while peer.raw().await.is_some() {}
    assert_eq!(soon(closing).await.unwrap(), Ended::Left);
    soon(receipt.stored()).await.unwrap();
}

#[tokio::test]
async fn a_final_close_code_is_told_once_and_nothing_can_be_sent_after_it() {
    let server = Server::start().await;
    let (mut session, mut peer) = joined(&server).await;
    let sender = session.sender();
    let receipt = soon(session.send(&note())).await.unwrap();
    peer.message().await;
    peer.close(4410).await;
    let ended = Event::Ended(Ended::Closed(CloseCode::SessionOver));
    assert_eq!(soon(session.next()).await, Some(ended));
    assert_eq!(soon(session.next()).await, None);
    assert_eq!(soon(receipt.stored()).await, Err(NotStored::Ended));
    assert_eq!(soon(sender.send(&note())).await.unwrap_err(), SendError::Ended);
    assert_eq!(soon(session.close(Mood::Failed)).await, Ended::Left);
}

#[tokio::test]
async fn a_dropped_session_leaves_no_socket_and_its_senders_notice() {
    let server = Server::start().await;
    let (session, mut peer) = joined(&server).await;
    let sender = session.sender();
    drop(session);
    while peer.raw().await.is_some() {}
    assert_eq!(soon(sender.send(&note())).await.unwrap_err(), SendError::Ended);
}

#[tokio::test]
async fn a_connect_that_is_given_up_leaves_no_socket() {
    let server = Server::start().await;
    let options = Options::new(Trust::system().unwrap());
    let connecting = Session::connect(server.invitation(), &options);
    let mut peer = tokio::select! {
        _ = connecting => panic!("nobody welcomed it"),
        peer = server.accept() => peer,
    };
    while peer.raw().await.is_some() {}
}

#[tokio::test]
async fn an_address_that_is_no_relay_is_told_at_once() {
    let server = Server::start().await;
    let options = Options::new(Trust::system().unwrap());
    let refuse = async {
        let (mut stream, _) = server.listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream
    };
    let (session, _stream) =
        soon(async { tokio::join!(Session::connect(server.invitation(), &options), refuse) }).await;
    assert_eq!(session.err(), Some(ConnectError::Ended(Ended::Refused(404))));
}

#[tokio::test]
async fn a_relay_that_never_welcomes_is_given_up_in_time_and_the_last_trouble_told() {
    let server = Server::start().await;
    let mut options = Options::new(Trust::system().unwrap());
    options.connect_within = Duration::from_millis(1500);
    let accepting = async {
        loop {
            let _ = server.listener.accept().await;
        }
    };
    let result = tokio::select! {
        result = Session::connect(server.invitation(), &options) => result,
        () = accepting => unreachable!(),
    };
    assert_eq!(
        result.err(),
        Some(ConnectError::TimedOut(Some(Interruption::Unreachable)))
    );
}
