//! Requests that are sent before the answer to the one before them.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    kit::{Relay, Request},
    wire::DEADLINE,
};
use crate::shutdown::Phase;

/// Sends all requests at once, then reads what comes until the relay closes.
async fn pipelined(relay: &Relay, requests: Vec<Request>) -> String {
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let bytes: Vec<_> = requests.into_iter().flat_map(Request::into_bytes).collect();
    socket.write_all(&bytes).await.unwrap();
    let mut answers = Vec::new();
    let read = tokio::time::timeout(DEADLINE, socket.read_to_end(&mut answers));
    read.await.expect("the relay closes").unwrap();
    String::from_utf8(answers).unwrap()
}

/// One answer that says it is the last, and nothing after it.
fn assert_only(answers: &str, status: u16) {
    assert!(
        answers.starts_with(&format!("HTTP/1.1 {status} ")),
        "{status}: {answers}"
    );
    assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{status}: {answers}");
    assert!(answers.contains("connection: close\r\n"), "{status}: {answers}");
}

fn chunked(path: &str, length: usize) -> Request {
    let request = Request::new("POST", path).header("Transfer-Encoding", "chunked");
    request.raw_body(&format!("{length:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(length)))
}

#[actix_web::test]
async fn what_follows_an_answer_that_closes_is_not_served() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let follower = || Request::push().key(&key);
    let other_type = Request::new("POST", "/v1/push")
        .key(&key)
        .body("text/plain", "{}");
    let last_by_wish = Request::new("GET", "/livez").header("Connection", "close");
    for (first, status) in [
        (other_type, 415),
        (chunked("/v1/push", 20_000), 413),
        (last_by_wish, 200),
    ] {
        let answers = pipelined(&relay, vec![first, follower(), follower()]).await;
        assert_only(&answers, status);
    }
    assert_eq!(relay.pushes.seen.lock().unwrap().len(), 0);
}

#[actix_web::test]
async fn a_relay_that_stops_serves_what_it_began_and_nothing_after_it() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    relay.lifecycle.advance(Phase::Draining);
    let requests = vec![Request::new("GET", "/livez"), Request::push().key(&key)];
    assert_only(&pipelined(&relay, requests).await, 200);
    assert_eq!(relay.pushes.seen.lock().unwrap().len(), 0);
}

#[actix_web::test]
async fn an_answer_that_closes_nothing_is_followed_by_the_next() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let refused = Request::new("POST", "/v1/push").key(&key).json(&json!({}));
    let requests = [
        refused.into_bytes(),
        Request::push().key(&key).into_bytes(),
        Request::new("GET", "/nowhere").into_bytes(),
        Request::push()
            .key(&key)
            .header("Connection", "close")
            .into_bytes(),
    ];
    socket.write_all(&requests.concat()).await.unwrap();
    for status in [400, 200, 404, 200] {
        assert_eq!(read_one(&mut socket).await, status);
    }
}

/// Byte by byte: the next answer may be there already.
async fn read_one(socket: &mut TcpStream) -> u16 {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let byte = tokio::time::timeout(DEADLINE, socket.read_u8()).await;
        head.push(byte.expect("an answer before the deadline").unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.unwrap();
    head.split(' ').nth(1).unwrap().parse().unwrap()
}
