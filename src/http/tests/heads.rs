//! Heads that don't end, first and later ones.

use std::{net::SocketAddr, time::Duration};

use actix_web::dev::ServerHandle;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::kit::{Relay, Request, listener_limits, read_answer};
use crate::http::{self, ListenerLimits};

const HALF_A_HEAD: &[u8] = b"GET /livez HTTP/1.1\r\nHost: re";

/// A listener that gives a head 300 ms.
async fn impatient(keep_alive: Duration) -> (SocketAddr, ServerHandle) {
    let relay = Relay::start().await;
    let limits = ListenerLimits {
        head_time: Duration::from_millis(300),
        keep_alive,
        ..listener_limits()
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let bound = http::bind(address, limits, relay.services.clone(), None).unwrap();
    let handle = bound.server.handle();
    actix_web::rt::spawn(bound.server);
    (bound.address, handle)
}

fn whole_head() -> Vec<u8> {
    Request::new("GET", "/livez").into_bytes()
}

/// The relay closes, with or without a word for what it has not read.
async fn is_closed(socket: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(super::wire::DEADLINE, socket.read_u8());
    read.await.is_ok_and(|byte| byte.is_err())
}

#[actix_web::test]
async fn a_first_head_that_does_not_end_is_answered_408() {
    let (address, handle) = impatient(Duration::from_secs(60)).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(HALF_A_HEAD).await.unwrap();
    assert_eq!(read_answer(&mut socket, false).await.status, 408);
    handle.stop(false).await;
}

#[actix_web::test]
async fn a_later_head_that_does_not_end_is_cut() {
    let (address, handle) = impatient(Duration::from_secs(60)).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        socket.write_all(&whole_head()).await.unwrap();
        assert_eq!(read_answer(&mut socket, false).await.status, 200);
    }
    socket.write_all(HALF_A_HEAD).await.unwrap();
    assert!(is_closed(&mut socket).await);
    handle.stop(false).await;
}

#[actix_web::test]
async fn a_later_head_that_came_half_with_the_first_is_cut_after_the_keep_alive() {
    let (address, handle) = impatient(Duration::from_millis(50)).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    let both = [whole_head().as_slice(), HALF_A_HEAD].concat();
    socket.write_all(&both).await.unwrap();
    assert_eq!(read_answer(&mut socket, false).await.status, 200);
    assert!(is_closed(&mut socket).await);
    handle.stop(false).await;
}

#[actix_web::test]
async fn a_connection_that_is_idle_is_kept_longer_than_a_head_may_take() {
    let (address, handle) = impatient(Duration::from_secs(60)).await;
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(&whole_head()).await.unwrap();
    assert_eq!(read_answer(&mut socket, false).await.status, 200);
    let quiet = tokio::time::timeout(Duration::from_millis(900), socket.read_u8());
    assert!(quiet.await.is_err(), "it is still open");
    socket.write_all(&whole_head()).await.unwrap();
    assert_eq!(read_answer(&mut socket, false).await.status, 200);
    handle.stop(false).await;
}
