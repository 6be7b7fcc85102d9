//! Clients that break the protocol or don't read.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use sovereign_relay_actors::session::port::SessionStore as _;
use sovereign_relay_protocol::{
    limits,
    signal::{frame::MESSAGE_ENVELOPE_BYTES, session::EndToEnd},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_tungstenite::{MaybeTlsStream, tungstenite::Message};

use super::{super::door::DoorBounds, kit::*, *};

#[actix_web::test]
async fn a_frame_that_breaks_the_protocol_closes_its_socket_alone() {
    let kit = Kit::start().await;
    let healthy = kit.session().await;
    let (mut a, _) = kit.join(healthy, "a", load(1)).await;
    let (mut b, _) = kit.join(healthy, "b", load(2)).await;
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_known = format!(r#"{{"t":"msg","n":{deep},"d":""}}"#);
    for (number, (text, code)) in (1..).zip([
        ("{", CloseCode::Malformed),
        ("null", CloseCode::Malformed),
        ("[]", CloseCode::Malformed),
        (r#"{"t":"msg","n":1,"d":"\ud800"}"#, CloseCode::Malformed),
        (r#"{"t":"msg","n":0,"d":""}"#, CloseCode::Malformed),
        (r#"{"t":"msg","n":2,"d":""}"#, CloseCode::OutOfStep),
        (r#"{"t":"ack","seq":1}"#, CloseCode::NoSuchSession),
        (r#"{"t":"hello","v":1}"#, CloseCode::Malformed),
        (&deep, CloseCode::Malformed),
        (&deep_known, CloseCode::Malformed),
        (
            &format!(
                r#"{{"t":"msg","n":1,"d":"{}"}}"#,
                "x".repeat(limits::SIGNAL_FRAME_BYTES)
            ),
            CloseCode::TooLarge,
        ),
    ]) {
        let session = kit.session().await;
        let (mut peer, _) = kit.join(session, "a", load(1)).await;
        peer.send_text(text).await;
        assert_eq!(peer.end().await, Ended::Closed(code.code()), "{text:.80}");
        a.message(number, "still here").await;
        assert_eq!(b.next_of("msg").await["seq"], number);
    }
}

/// Of a message that is no longer than a frame may be, whatever `seq` and `gen` its receiver gets it with, but would be
/// with one byte more. Shorter ones leave room for the numbers of here.
#[actix_web::test]
async fn content_that_fits_the_relays_frame_is_delivered_and_a_byte_more_is_too_large() {
    let kit = Kit::start().await;
    let most = limits::SIGNAL_FRAME_BYTES - MESSAGE_ENVELOPE_BYTES;
    for (unit, bytes) in [("x", 1), ("\\", 2), ("\n", 2), ("\u{1}", 6), ("\u{e9}", 2)] {
        let content =
            |bytes_in_all: usize| unit.repeat(bytes_in_all / bytes) + &"x".repeat(bytes_in_all % bytes);
        let session = kit.session().await;
        let (mut a, _) = kit.join(session, "a", load(1)).await;
        let (mut b, _) = kit.join(session, "b", load(2)).await;
        for (n, length) in [(1, most - 1), (2, most)] {
            let content = content(length);
            a.message(n, &content).await;
            assert_eq!(b.next_of("msg").await["d"], content, "{unit:?} {length}");
        }
        // The client's own frame is within the limit; only the relay's would not be.
        let frame = json!({"t": "msg", "n": 3, "d": content(most + 1)}).to_string();
        assert!(frame.len() < limits::SIGNAL_FRAME_BYTES);
        a.send_text(&frame).await;
        assert_eq!(
            a.end().await,
            Ended::Closed(CloseCode::TooLarge.code()),
            "{unit:?}"
        );
        assert_eq!(
            kit.store
                .view(session, INSTANCE)
                .await
                .unwrap()
                .unwrap()
                .slots
                .b
                .queued,
            2
        );
    }
}

#[actix_web::test]
async fn content_that_is_not_sealed_is_refused_where_sealing_is_required() {
    let kit = Kit::start().await;
    let session = kit.session_with(EndToEnd::Required, PATIENCE).await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    a.message(1, "e1.sealed").await;
    assert_eq!(a.next_of("ack").await["n"], 1);
    a.message(2, "v=0").await;
    assert_eq!(a.end().await, Ended::Closed(CloseCode::Malformed.code()));
}

/// Bytes that no client library would send, behind a masked `hello`.
#[actix_web::test]
async fn bytes_that_are_no_frames_close_the_socket() {
    let kit = Kit::start().await;
    for (bytes, code) in [
        (vec![0x82, 0x81, 0, 0, 0, 0, b'x'], CloseCode::Unsupported),
        (vec![0x81, 0x01, b'x'], CloseCode::ProtocolError),
        (vec![0xc1, 0x81, 0, 0, 0, 0, b'x'], CloseCode::ProtocolError),
        (vec![0x80, 0x81, 0, 0, 0, 0, b'x'], CloseCode::ProtocolError),
        (vec![0x83, 0x80, 0, 0, 0, 0], CloseCode::ProtocolError),
        (vec![0x89, 0xfe, 0, 126, 0, 0, 0, 0], CloseCode::ProtocolError),
        (vec![0x81, 0x81, 0, 0, 0, 0, 0xff], CloseCode::InvalidPayload),
        (
            vec![0x81, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            CloseCode::TooLarge,
        ),
    ] {
        let session = kit.session().await;
        let (mut peer, _) = kit.join(session, "a", load(1)).await;
        let raw = raw(&mut peer);
        raw.write_all(&bytes).await.unwrap();
        assert_eq!(peer.end().await, Ended::Closed(code.code()), "{bytes:?}");
    }
}

/// As Caddy before 2.7 sends it when its configuration changes, to the client as well: no code of ours may overtake it.
#[actix_web::test]
async fn a_proxys_close_is_answered_with_nothing_and_the_client_resumes() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut peer, _) = kit.join(session, "a", load(1)).await;
    raw(&mut peer).write_all(&[0x88, 2, 0x03, 0xe9]).await.unwrap();
    assert_eq!(peer.end().await, Ended::Cut);
    let (_, welcome) = kit.join(session, "a", resume(1, 2, 0)).await;
    assert_eq!(welcome["gen"], 1);
}

#[actix_web::test]
async fn a_frame_that_declares_gigabytes_is_cut_at_the_limit() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut peer, _) = kit.join(session, "a", load(1)).await;
    let MaybeTlsStream::Plain(raw) = peer.socket.get_mut() else {
        unreachable!("no TLS here")
    };
    raw.write_all(&[0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let chunk = [b'x'; 8192];
    let mut sent = 0;
    // The relay stops reading and closes; what fits into the buffers between is all that can be sent.
    while raw.write_all(&chunk).await.is_ok() && sent < 64 * 1024 * 1024 {
        sent += chunk.len();
        if raw.read_u8().now_or_never_ok() {
            break;
        }
    }
    assert!(sent < 64 * 1024 * 1024, "{sent} bytes were taken");
}

#[actix_web::test]
async fn a_fragmented_message_is_put_together_and_bounded() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut peer, _) = kit.join(session, "a", load(1)).await;
    use tokio_tungstenite::tungstenite::protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    };
    let part = |text: &str, opcode, last| {
        Message::Frame(Frame::message(text.to_owned(), OpCode::Data(opcode), last))
    };
    peer.socket
        .send(part(r#"{"t":"#, Data::Text, false))
        .await
        .unwrap();
    peer.socket.send(Message::Ping(Vec::new().into())).await.unwrap();
    peer.socket
        .send(part(r#""ping"}"#, Data::Continue, true))
        .await
        .unwrap();
    assert_eq!(peer.next().await, json!({"t": "pong"}));
    peer.socket.send(part("{", Data::Text, false)).await.unwrap();
    for _ in 0..5 {
        let _ = peer
            .socket
            .send(part(&"x".repeat(8192), Data::Continue, false))
            .await;
    }
    assert_eq!(peer.end().await, Ended::Closed(CloseCode::TooLarge.code()));
}

/// A client on a slow line, whose every segment ends within a message.
#[actix_web::test]
async fn messages_back_to_back_may_take_as_long_as_they_like_and_the_parts_of_one_may_not() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    kit.clock.stop();
    let frame = |n: u64| {
        let text = json!({"t": "msg", "n": n, "d": "x".repeat(80)}).to_string();
        [&[0x81, 0x80 | text.len() as u8, 0, 0, 0, 0], text.as_bytes()].concat()
    };
    let mut segment = frame(1);
    for n in 1..=5 {
        let (rest, next) = (segment, frame(n + 1));
        let (half, other_half) = next.split_at(next.len() / 2);
        raw(&mut a).write_all(&[&rest, half].concat()).await.unwrap();
        assert_eq!(a.next_of("ack").await["n"], n);
        kit.clock.advance(Duration::from_secs(6));
        segment = other_half.to_owned();
    }
    // Byte by byte, slowly enough that each is seen before the message is whole, however late the relay looks.
    let mut bytes = segment.chunks(1);
    let end = loop {
        kit.clock.advance(Duration::from_secs(6));
        let byte = bytes.next().expect("it ends before the message does");
        raw(&mut a).write_all(byte).await.unwrap();
        if let Ok(end) = tokio::time::timeout(Duration::from_millis(200), a.end()).await {
            break end;
        }
    };
    assert_eq!(end, Ended::Closed(CloseCode::ProtocolError.code()));
}

/// The bytes beneath.
fn raw(peer: &mut Peer) -> &mut TcpStream {
    let MaybeTlsStream::Plain(raw) = peer.socket.get_mut() else {
        unreachable!("no TLS here")
    };
    raw
}

#[actix_web::test]
async fn a_peer_that_does_not_read_costs_its_sender_a_refusal_and_is_closed_and_resumes() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut stalled, _) = kit.join(session, "b", load(2)).await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    let content = "x".repeat(8000);
    let mut n = 1;
    // As fast as it may, until the mailbox is full for good.
    loop {
        a.message(n, &content).await;
        let answer = a.next().await;
        match answer["t"].as_str().unwrap() {
            "ack" => n = answer["n"].as_u64().unwrap() + 1,
            "err" if answer["code"] == "mailbox_full" => break,
            _ => {}
        }
    }
    assert!((50..=256).contains(&n), "{n}");
    let (mut resumed, welcome) = kit.join(session, "b", resume(2, 2, 0)).await;
    assert_eq!(welcome["base"], 0);
    for seq in 1..n {
        assert_eq!(resumed.next_of("msg").await["seq"], seq);
    }
    assert_eq!(stalled.end().await, Ended::Closed(CloseCode::Replaced.code()));
}

#[actix_web::test]
async fn a_muted_relay_acknowledges_and_writes_no_message_until_it_may_again() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    let (mut b, _) = kit.join(session, "b", load(2)).await;
    kit.sessions.write_until(Duration::ZERO);
    a.message(1, "hello").await;
    assert_eq!(a.next_of("ack").await["n"], 1);
    b.send(json!({ "t": "ping" })).await;
    loop {
        let frame = b.next().await;
        assert_ne!(frame["t"], "msg");
        if frame["t"] == "pong" {
            break;
        }
    }
    kit.sessions.write_until(Duration::MAX);
    assert_eq!(b.next_of("msg").await["d"], "hello");
}

#[actix_web::test]
async fn sockets_that_do_not_say_goodbye_are_bounded_and_the_oldest_is_cut() {
    let bounds = DoorBounds {
        sockets_per_address: 3,
        ..DoorBounds::default()
    };
    let kit = Kit::start_with(&[], bounds).await;
    let mut sockets = Vec::new();
    for number in 1..=5 {
        let mut peer = kit.socket().await;
        peer.send_text("{").await;
        // It is told, says nothing, and stays.
        while kit.endpoint.door.leaving() < number.min(3) || kit.endpoint.door.knocking() > 0 {
            tokio::task::yield_now().await;
        }
        sockets.push(peer);
    }
    assert_eq!(kit.endpoint.door.leaving(), 3);
    for (number, peer) in sockets.iter_mut().enumerate() {
        let MaybeTlsStream::Plain(raw) = peer.socket.get_mut() else {
            unreachable!("no TLS here")
        };
        let mut said = [0; 4];
        raw.read_exact(&mut said).await.unwrap();
        assert_eq!(
            u16::from_be_bytes([said[2], said[3]]),
            CloseCode::Malformed.code()
        );
        if number < 2 {
            let rest = tokio::time::timeout(PATIENCE, raw.read_to_end(&mut Vec::new())).await;
            rest.expect("an end").unwrap();
        }
    }
    drop(sockets);
    while kit.endpoint.door.leaving() > 0 {
        tokio::task::yield_now().await;
    }
}

#[actix_web::test]
async fn a_newcomer_without_a_place_waits_and_replaces_nobody() {
    let bounds = DoorBounds {
        welcomed: Some(1),
        ..DoorBounds::default()
    };
    let kit = Kit::start_with(&[], bounds).await;
    let session = kit.session().await;
    let (mut gone, _) = kit.join(session, "a", load(1)).await;
    let mut peer = kit.socket().await;
    peer.hello(session, "b", load(2)).await;
    assert_eq!(peer.end().await, Ended::Closed(CloseCode::TryAgainLater.code()));
    // Whoever is here already comes back.
    let (mut here, _) = kit.join(session, "a", resume(1, 2, 0)).await;
    assert_eq!(gone.end().await, Ended::Closed(CloseCode::Replaced.code()));
    here.message(1, "still here").await;
    assert_eq!(here.next_of("ack").await["n"], 1);
    here.close().await;
    while kit.endpoint.door.welcomed() > 0 {
        tokio::task::yield_now().await;
    }
    kit.join(session, "b", load(2)).await;
}

/// Were all answers kept, it would not be read any more, and its own writes would end.
#[actix_web::test]
async fn pings_of_a_client_that_does_not_read_are_taken_and_the_latest_is_answered() {
    const PINGS: usize = 60_000;
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    kit.clock.stop();
    // Its receive buffer stays as it is: where a smaller one overflows with frames this small, Linux drops segments with
    // the acknowledgements in them, and both sides wait for retransmissions.
    let options = socket2::SockRef::from(&*raw(&mut a));
    options.set_send_buffer_size(16 * 1024).unwrap();
    for ping in [&b"\x89\x84\0\0\0\0many"[..], b"\x81\x8c\0\0\0\0{\"t\":\"ping\"}"] {
        // They are taken, however long a busy machine has for so many.
        raw(&mut a).write_all(&ping.repeat(PINGS)).await.unwrap();
    }
    a.socket.send(Message::Ping("last".into())).await.unwrap();
    let mut pongs = 0;
    loop {
        match a.socket.next().await.unwrap().unwrap() {
            Message::Pong(data) if *data == *b"last" => break,
            _ => pongs += 1,
        }
    }
    assert!((1..PINGS).contains(&pongs), "{pongs}");
}

/// Whether a read of one byte came to an end, without waiting.
trait NowOrNever {
    fn now_or_never_ok(self) -> bool;
}

impl<F: Future> NowOrNever for F {
    fn now_or_never_ok(self) -> bool {
        futures_util::FutureExt::now_or_never(self).is_some()
    }
}
