//! How many connections an address may hold. Addresses of the loopback network stand for
//! strangers.

use std::net::SocketAddr;

use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use super::{
    kit::{Relay, Request, Setup, listener_limits, read_answer},
    wire::DEADLINE,
};
use crate::http::ListenerLimits;

const HERE: [u8; 4] = [127, 0, 0, 2];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 3];

async fn start(trusted: Vec<&'static str>, listener: ListenerLimits) -> Relay {
    Relay::start_as(Setup {
        trusted,
        listener,
        ..Setup::default()
    })
    .await
}

fn two_each() -> ListenerLimits {
    ListenerLimits {
        per_address: 2,
        ..listener_limits()
    }
}

async fn dial(relay: &Relay, from: [u8; 4]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    socket.connect(relay.address).await.unwrap()
}

/// Asks for something on a connection that stays open. `None`: the relay closed it instead.
async fn ask(mut socket: TcpStream) -> Option<TcpStream> {
    // It may be closed before anything was sent.
    let _ = socket
        .write_all(&Request::new("GET", "/livez").into_bytes())
        .await;
    let mut first = [0];
    let read = timeout(DEADLINE, socket.peek(&mut first)).await;
    let answers = read.expect("an answer or an end").is_ok_and(|length| length > 0);
    if !answers {
        return None;
    }
    assert_eq!(read_answer(&mut socket, false).await.status, 200);
    Some(socket)
}

#[actix_web::test]
async fn an_address_with_all_its_connections_gets_no_more_and_its_neighbour_does() {
    let relay = start(Vec::new(), two_each()).await;
    // One idle after its answer, one with half a head.
    let idle = ask(dial(&relay, HERE).await).await.unwrap();
    let mut half = dial(&relay, HERE).await;
    half.write_all(b"GET /livez HTTP/1.1\r\nHost: re").await.unwrap();
    assert!(ask(dial(&relay, HERE).await).await.is_none());
    assert!(ask(dial(&relay, ELSEWHERE).await).await.is_some());
    half.write_all(b"lay\r\n\r\n").await.unwrap();
    assert_eq!(
        read_answer(&mut half, false).await.status,
        200,
        "the others go on"
    );
    drop(idle);
    // The relay learns of the end a moment later.
    let back = async { while ask(dial(&relay, HERE).await).await.is_none() {} };
    timeout(DEADLINE, back).await.unwrap();
}

#[actix_web::test]
async fn a_trusted_proxy_has_as_many_as_it_wants() {
    let relay = start(vec!["127.0.0.2/32"], two_each()).await;
    let mut held = Vec::new();
    for _ in 0..10 {
        held.push(ask(dial(&relay, HERE).await).await.unwrap());
    }
    let strangers = [dial(&relay, ELSEWHERE).await, dial(&relay, ELSEWHERE).await];
    assert!(ask(dial(&relay, ELSEWHERE).await).await.is_none());
    drop((held, strangers));
}
