//! Before a connection has its slot.

use std::time::Duration;

use futures_util::StreamExt as _;
use sovereign_relay_protocol::signal::session::EndToEnd;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_tungstenite::{MaybeTlsStream, connect_async, tungstenite::Message};

use super::{kit::*, *};
use crate::{http::tests::kit::exchange, shutdown::Phase};

/// The status and code of a refused handshake.
async fn refusal(kit: &Kit, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let answer = exchange(kit.address, kit.handshake(path, headers).as_bytes()).await;
    answer.refusal()
}

const SPOKEN: (&str, &str) = ("sec-websocket-protocol", "other, sovereign.signal.v1");

#[actix_web::test]
async fn a_handshake_without_the_subprotocol_is_refused_in_json_and_elsewhere_there_is_none() {
    let kit = Kit::start().await;
    let invalid = (400, "invalid_request".to_owned());
    assert_eq!(refusal(&kit, "/v1/signal", &[]).await, invalid);
    let later = ("sec-websocket-protocol", "sovereign.signal.v2");
    assert_eq!(refusal(&kit, "/v1/signal", &[later]).await, invalid);
    assert_eq!(
        refusal(&kit, "/v1/push", &[SPOKEN]).await,
        (405, "method_not_allowed".to_owned())
    );
    let alive = exchange(kit.address, kit.handshake("/livez", &[SPOKEN]).as_bytes()).await;
    assert_eq!(alive.status, 200);
}

#[actix_web::test]
async fn a_handshake_that_is_wrong_is_told_what_is_and_what_is_spoken_here() {
    let kit = Kit::start().await;
    let right = kit.handshake("/v1/signal", &[SPOKEN]);
    for (was, becomes, hint) in [
        ("GET /v1/signal HTTP/1.1", "GET /v1/signal HTTP/1.0", "HTTP/1.0"),
        ("-version: 13", "-version: 8", "version 13"),
        (
            "-version: 13",
            "-version: 13\r\nsec-websocket-version: 13",
            "Sec-WebSocket-Version",
        ),
        ("sec-websocket-version: 13\r\n", "", "version 13"),
        (
            "-key: ",
            "-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-key: ",
            "Sec-WebSocket-Key",
        ),
        ("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ=", "Sec-WebSocket-Key"),
        (
            "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            "",
            "a WebSocket is served here",
        ),
        (
            "host:",
            "origin: https://a.example\r\norigin: https://a.example\r\nhost:",
            "Origin",
        ),
        ("host:", "content-length: 1\r\nhost:", "no body"),
        ("host:", "transfer-encoding: chunked\r\nhost:", "no body"),
        ("upgrade: websocket\r\n", "", "`Upgrade: websocket`"),
        ("connection: upgrade\r\n", "", "`Connection: Upgrade`"),
        (
            "connection: upgrade\r\n",
            "connection: close, upgrade\r\n",
            "`Connection: Upgrade`",
        ),
    ] {
        let wrong = right.replacen(was, becomes, 1);
        assert_ne!(wrong, right, "{was}");
        let answer = exchange(kit.address, wrong.as_bytes()).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{becomes}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(hint), "{becomes}: {message}");
        assert_eq!(answer.header("sec-websocket-version"), Some("13"), "{becomes}");
        assert_eq!(answer.header("upgrade"), Some("websocket"), "{becomes}");
    }
}

#[actix_web::test]
async fn other_methods_of_the_endpoint_are_told_the_right_one() {
    let kit = Kit::start().await;
    for asks in [true, false] {
        let mut post = kit.handshake("/v1/signal", &[SPOKEN]).replacen("GET", "POST", 1);
        if !asks {
            post = post.replacen("upgrade: websocket\r\n", "", 1);
        }
        let answer = exchange(kit.address, post.as_bytes()).await;
        assert_eq!(answer.refusal(), (405, "method_not_allowed".to_owned()));
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
}

#[actix_web::test]
async fn pages_of_other_origins_are_refused_where_the_operator_says_so() {
    let kit = Kit::start_for(&["https://app.example"]).await;
    let evil = [SPOKEN, ("origin", "https://evil.example")];
    assert_eq!(
        refusal(&kit, "/v1/signal", &evil).await,
        (403, "origin_not_allowed".to_owned())
    );
    let mut own = kit.request();
    own.headers_mut()
        .insert("origin", "https://app.example".parse().unwrap());
    assert!(connect_async(own).await.is_ok());
    assert!(
        connect_async(kit.request()).await.is_ok(),
        "no browser, no origin"
    );
}

#[actix_web::test]
async fn a_hello_that_is_wrong_has_its_close_code() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let hello = |change: serde_json::Value| {
        let mut hello = json!({"t": "hello", "v": 1, "ticket": format!("{session} a"), "cid": "0".repeat(32),
            "try": 1, "last": 0});
        hello
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        hello
    };
    let elsewhere = format!(
        "{} a",
        sovereign_relay_protocol::signal::id::SessionId::from_bytes([1; 16])
    );
    for (first, code) in [
        (json!({"t": "ping"}), CloseCode::Malformed),
        (json!({"t": "msg", "n": 1, "d": ""}), CloseCode::Malformed),
        (hello(json!({"v": 2})), CloseCode::Version),
        (hello(json!({"cid": "short"})), CloseCode::Malformed),
        (hello(json!({"try": "1"})), CloseCode::Malformed),
        (hello(json!({"ticket": "nonsense"})), CloseCode::BadTicket),
        (hello(json!({"ticket": "revoked"})), CloseCode::Revoked),
        (hello(json!({"ticket": elsewhere})), CloseCode::NoSuchSession),
        (hello(json!({"last": 1})), CloseCode::NoSuchSession),
        (hello(json!({"pad": "x".repeat(5000)})), CloseCode::TooLarge),
    ] {
        let mut peer = kit.socket().await;
        peer.send(first.clone()).await;
        assert_eq!(peer.end().await, Ended::Closed(code.code()), "{first:.80}");
    }
}

#[actix_web::test]
async fn a_silent_socket_is_closed_and_leaves_no_trace() {
    let kit = Kit::start().await;
    let mut peer = kit.socket().await;
    assert_eq!(peer.end().await, Ended::Closed(CloseCode::NoHello.code()));
    while kit.endpoint.door.knocking() > 0 {
        tokio::task::yield_now().await;
    }
}

#[actix_web::test]
async fn an_address_that_showed_ten_bad_tickets_is_asked_to_wait() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    kit.clock.stop();
    for _ in 0..10 {
        let mut peer = kit.socket().await;
        peer.send(json!({"t": "hello", "v": 1, "ticket": "x", "cid": "0".repeat(32), "try": 1, "last": 0}))
            .await;
        assert_eq!(peer.end().await, Ended::Closed(CloseCode::BadTicket.code()));
    }
    let mut peer = kit.socket().await;
    peer.hello(session, "a", load(1)).await;
    assert_eq!(peer.end().await, Ended::Closed(CloseCode::TryAgainLater.code()));
}

#[actix_web::test]
async fn a_relay_that_drains_asks_newcomers_to_dial_again_and_the_others_to_leave() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let (mut here, _) = kit.join(session, "a", load(1)).await;
    let mut undecided = kit.socket().await;
    // Until it goes on, nobody's time to leave has come.
    kit.clock.stop();
    kit.lifecycle.advance(Phase::Draining);
    kit.sessions.leave(Duration::from_millis(300));
    let mut newcomer = kit.socket().await;
    assert_eq!(
        newcomer.end().await,
        Ended::Closed(CloseCode::ServiceRestart.code())
    );
    undecided.hello(session, "b", load(2)).await;
    let end = undecided.end().await;
    assert_eq!(end, Ended::Closed(CloseCode::ServiceRestart.code()));
    assert_eq!(here.next_of("goaway").await["inMs"], 300);
    here.message(1, "still served").await;
    assert_eq!(here.next_of("ack").await["n"], 1);
    kit.clock.go_on();
    assert_eq!(here.end().await, Ended::Closed(CloseCode::ServiceRestart.code()));
}

#[actix_web::test]
async fn a_session_ends_at_its_time() {
    let kit = Kit::start().await;
    // Its time begins to run when somebody is there.
    kit.clock.stop();
    let session = kit.session_with(EndToEnd::Required, Duration::from_secs(1)).await;
    let (mut a, _) = kit.join(session, "a", load(1)).await;
    assert_eq!(a.end().await, Ended::Closed(CloseCode::SessionOver.code()));
    kit.clock.go_on();
    let mut late = kit.socket().await;
    late.hello(session, "a", resume(1, 2, 0)).await;
    assert_eq!(late.end().await, Ended::Closed(CloseCode::NoSuchSession.code()));
}

#[actix_web::test]
async fn an_instance_that_is_revoked_while_its_peer_dials_gets_no_slot() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let mut late = kit.socket().await;
    late.hello(session, &format!("a {MEANWHILE}"), load(1)).await;
    assert_eq!(late.end().await, Ended::Closed(CloseCode::Revoked.code()));
    // The slot was given back: nothing hinders the next one.
    kit.join(session, "a", load(2)).await;
}

#[actix_web::test]
async fn what_comes_in_one_piece_with_the_handshake_is_served() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let hello = json!({"t": "hello", "v": 1, "ticket": format!("{session} a"), "cid": "0".repeat(32), "try": 1,
        "last": 0});
    let mut bytes = kit.handshake("/v1/signal", &[SPOKEN]).into_bytes();
    for frame in [hello, json!({"t": "msg", "n": 1, "d": "x"}), json!({"t": "ping"})] {
        bytes.extend(masked(0x81, frame.to_string().as_bytes()));
    }
    let mut socket = TcpStream::connect(kit.address).await.unwrap();
    socket.write_all(&bytes).await.unwrap();
    let mut answered = Vec::new();
    // The pong may overtake the acknowledgement, which is the session's to give.
    while ![r#"{"t":"pong"}"#, r#"{"t":"ack","n":1}"#]
        .iter()
        .all(|frame| String::from_utf8_lossy(&answered).contains(frame))
    {
        let read = tokio::time::timeout(PATIENCE, socket.read_buf(&mut answered)).await;
        assert!(read.expect("an answer in time").unwrap() > 0);
    }
}

#[actix_web::test]
async fn a_flood_of_pings_before_the_hello_is_not_kept() {
    let kit = Kit::start().await;
    let session = kit.session().await;
    let mut peer = kit.socket().await;
    let MaybeTlsStream::Plain(raw) = peer.socket.get_mut() else {
        unreachable!("no TLS here")
    };
    // More than the buffers of both kernels hold, and nothing of it is read meanwhile.
    let pings = 400_000;
    let thousand = masked(0x89, &[b'p'; 125]).repeat(1000);
    for _ in 0..pings / 1000 {
        raw.write_all(&thousand).await.unwrap();
    }
    peer.hello(session, "a", load(1)).await;
    let mut pongs = 0;
    loop {
        match peer.socket.next().await.unwrap().unwrap() {
            Message::Pong(_) => pongs += 1,
            Message::Text(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(
        pongs < pings,
        "{pongs} answers were kept for a client that did not read"
    );
}

/// A client's frame: short ones alone, under a mask of zeros.
fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = match payload.len() {
        length @ ..126 => vec![first, 0x80 | length as u8],
        length => vec![first, 0x80 | 126, (length >> 8) as u8, length as u8],
    };
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}
