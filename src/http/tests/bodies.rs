//! Size, time, type and order of reading.

use std::time::Duration;

use sovereign_relay_protocol::limits;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::kit::{Relay, Request, Setup, message, read_answer};

/// A head that promises `length` bytes, which never come.
fn head_only(path: &str, length: usize) -> Request {
    Request::new("POST", path).header("Content-Length", &length.to_string())
}

#[actix_web::test]
async fn a_bad_key_in_the_header_is_refused_before_the_body_arrives() {
    let relay = Relay::start().await;
    for path in ["/v1/push", "/v1/push/batch", "/v1/keys/rotate"] {
        let answer = relay.send(head_only(path, 100).key("wrong")).await;
        assert_eq!(answer.refusal(), (401, "unauthorized".to_owned()), "{path}");
        assert_eq!(answer.header("connection"), Some("close"), "{path}");
    }
}

#[actix_web::test]
async fn a_declared_length_over_the_limit_is_refused_before_the_body_arrives() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for (path, limit) in [
        ("/v1/push", limits::BODY_BYTES),
        ("/v1/push/batch", limits::BATCH_BODY_BYTES),
    ] {
        let answer = relay.send(head_only(path, limit + 1).key(&key)).await;
        assert_eq!(answer.refusal(), (413, "payload_too_large".to_owned()), "{path}");
    }
}

#[actix_web::test]
async fn a_chunked_body_is_cut_where_it_crosses_the_limit() {
    let relay = Relay::start().await;
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let head = Request::new("POST", "/v1/push").header("Transfer-Encoding", "chunked");
    let head = head.into_bytes();
    socket.write_all(&head).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    for _ in 0..5 {
        socket.write_all(chunk.as_bytes()).await.unwrap();
    }
    let answer = read_answer(&mut socket, false).await.documented(&head);
    assert_eq!(answer.refusal(), (413, "payload_too_large".to_owned()));
}

#[actix_web::test]
async fn a_body_of_exactly_the_limit_is_read() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let mut body = message().to_string();
    body.push_str(&" ".repeat(limits::BODY_BYTES - body.len()));
    let answer = relay
        .send(
            Request::new("POST", "/v1/push")
                .key(&key)
                .body("application/json", &body),
        )
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[actix_web::test]
async fn a_chunked_body_within_the_limit_is_read() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let body = message().to_string();
    let mut bytes = Request::new("POST", "/v1/push")
        .key(&key)
        .header("Transfer-Encoding", "chunked")
        .into_bytes();
    bytes.extend(format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes());
    let answer = super::kit::exchange(relay.address, &bytes).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[actix_web::test]
async fn a_body_that_trickles_in_is_a_408_and_its_connection_ends() {
    let relay = Relay::start_as(Setup {
        body_time: Duration::from_millis(50),
        ..Setup::default()
    })
    .await;
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let mut bytes = head_only("/v1/push", 1000).into_bytes();
    bytes.extend(b"{\"deviceToken\":");
    socket.write_all(&bytes).await.unwrap();
    let answer = read_answer(&mut socket, false).await.documented(&bytes);
    assert_eq!(answer.refusal(), (408, "request_timeout".to_owned()));
    assert_eq!(answer.header("connection"), Some("close"));
}

#[actix_web::test]
async fn other_content_types_are_a_415_and_none_is_json() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let body = message().to_string();
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let answer = relay
            .send(
                Request::new("POST", "/v1/push")
                    .key(&key)
                    .body(content_type, &body),
            )
            .await;
        assert_eq!(
            answer.refusal(),
            (415, "unsupported_media_type".to_owned()),
            "{content_type}"
        );
    }
    let mut untyped = head_only("/v1/push", body.len()).key(&key).into_bytes();
    untyped.extend(body.as_bytes());
    assert_eq!(super::kit::exchange(relay.address, &untyped).await.status, 200);
}

/// Routes that read a body, those that need none among them.
const WITH_BODY: [&str; 5] = [
    "/v1/enroll",
    "/v1/keys/rotate",
    "/v1/push",
    "/v1/push/batch",
    "/v1/signal/sessions",
];

#[actix_web::test]
async fn another_content_type_is_a_415_with_an_empty_body_too() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    for path in WITH_BODY {
        let empty = Request::new("POST", path).key(&key).body("text/plain", "");
        let refusal = relay.send(empty).await.refusal();
        assert_eq!(refusal, (415, "unsupported_media_type".to_owned()), "{path}");
    }
}

#[actix_web::test]
async fn a_body_that_is_not_utf8_is_a_400_even_where_nobody_looks_at_it() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    // A surrogate half, in a field that no route knows.
    let body = b"{\"unknown\":\"\xed\xa0\x80\"}";
    for path in WITH_BODY {
        let mut bytes = head_only(path, body.len()).key(&key).into_bytes();
        bytes.extend(body);
        let answer = super::kit::exchange(relay.address, &bytes).await;
        assert_eq!(answer.refusal(), (400, "invalid_request".to_owned()), "{path}");
        let message = answer.json()["message"].to_string();
        assert!(message.contains("UTF-8"), "{path}: {message}");
    }
}

#[actix_web::test]
async fn a_client_that_waits_for_100_continue_gets_it() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let body = message().to_string();
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let head = head_only("/v1/push", body.len())
        .key(&key)
        .header("Expect", "100-continue");
    socket.write_all(&head.into_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut socket, true).await.status, 100);
    socket.write_all(body.as_bytes()).await.unwrap();
    assert_eq!(read_answer(&mut socket, false).await.status, 200);
}

#[actix_web::test]
async fn a_connection_is_used_again_after_an_answer() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    for _ in 0..3 {
        socket
            .write_all(&Request::push().key(&key).into_bytes())
            .await
            .unwrap();
        assert_eq!(read_answer(&mut socket, false).await.status, 200);
    }
}
