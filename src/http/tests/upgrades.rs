//! Requests that ask for an upgrade where there is none: they are served as if they had not asked.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::kit::{Relay, Request, message, read_answer};

fn asking(request: Request) -> Request {
    request
        .header("Connection", "keep-alive, Upgrade")
        .header("Upgrade", "websocket")
}

#[actix_web::test]
async fn an_upgrade_is_ignored_on_every_route() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let pushed = relay.send(asking(Request::push().key(&key))).await;
    assert_eq!((pushed.status, &pushed.json()["result"]), (200, &"sent".into()));
    assert_eq!(
        relay.send(asking(Request::new("GET", "/livez"))).await.status,
        200
    );
    let unknown = relay.send(asking(Request::new("GET", "/nowhere"))).await;
    assert_eq!(unknown.refusal(), (404, "not_found".to_owned()));
    let wrong = relay.send(asking(Request::new("GET", "/v1/push"))).await;
    assert_eq!(wrong.refusal(), (405, "method_not_allowed".to_owned()));
}

#[actix_web::test]
async fn an_upgrade_that_was_ignored_is_the_last_request_of_its_connection() {
    let relay = Relay::start().await;
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let plain = Request::new("GET", "/livez").into_bytes();
    let head = asking(Request::new("HEAD", "/livez")).into_bytes();
    for bytes in [&plain, &head] {
        socket.write_all(bytes).await.unwrap();
        let answer = read_answer(&mut socket, bytes == &head).await;
        assert_eq!(answer.status, 200);
        let last = (bytes == &head).then_some("close");
        assert_eq!(answer.header("connection"), last);
    }
    assert_eq!(socket.read(&mut [0; 1]).await.unwrap(), 0);
    // And behind another.
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    socket.write_all(&[plain, head].concat()).await.unwrap();
    let mut answers = String::new();
    socket.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
}

#[actix_web::test]
async fn a_body_that_comes_late_is_waited_for() {
    let relay = Relay::start().await;
    let key = relay.enroll().await;
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let body = message().to_string();
    let head = asking(Request::new("POST", "/v1/push").key(&key))
        .header("Content-Type", "application/json")
        .header("Content-Length", &body.len().to_string())
        .header("Expect", "100-continue");
    socket.write_all(&head.into_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    socket.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    socket.write_all(body.as_bytes()).await.unwrap();
    let answer = read_answer(&mut socket, false).await;
    assert_eq!(answer.json()["result"], "sent");
}

#[actix_web::test]
async fn a_connect_is_no_route_and_ends_its_connection() {
    let relay = Relay::start().await;
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let connect = "CONNECT relay:443 HTTP/1.1\r\nHost: relay\r\n\r\n";
    socket.write_all(connect.as_bytes()).await.unwrap();
    let answer = read_answer(&mut socket, false).await;
    assert_eq!(answer.refusal(), (404, "not_found".to_owned()));
    assert_eq!(socket.read(&mut [0; 1]).await.unwrap(), 0);
}
