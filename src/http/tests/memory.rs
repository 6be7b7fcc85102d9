//! Bodies under way take no more memory than there is for them, and give it back.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use super::{
    kit::{Answer, Relay, Request, Setup, message, read_answer, sent},
    wire::DEADLINE,
};
use crate::limit::BodyBounds;

const KIB: usize = 1024;
const BOUNDS: BodyBounds = BodyBounds {
    total: 1024 * KIB,
    batches: 768 * KIB,
    instance: 256 * KIB,
};
/// What a half-sent body is given: its 100 KiB, rounded up.
const HALF: usize = 128 * KIB;

async fn relay() -> Relay {
    Relay::start_as(Setup {
        bodies: BOUNDS,
        ..Setup::default()
    })
    .await
}

/// A batch that announces 1 MiB, sends 100 KiB and then nothing.
async fn half_sent(relay: &Relay, key: &str) -> TcpStream {
    let mut socket = TcpStream::connect(relay.address).await.unwrap();
    let mut bytes = announced().key(key).into_bytes();
    bytes.extend(vec![b' '; 100 * KIB]);
    // The relay may have refused it before everything was sent.
    let _ = socket.write_all(&bytes).await;
    socket
}

fn announced() -> Request {
    Request::new("POST", "/v1/push/batch").header("Content-Length", "1048576")
}

/// The answer to a batch that was sent half.
async fn refused(socket: &mut TcpStream) -> Answer {
    let answer = read_answer(socket, false).await;
    answer.documented(&announced().into_bytes())
}

async fn holds(relay: &Relay, bytes: usize) {
    let holding = async {
        while relay.services.bodies.held() != bytes {
            assert!(relay.services.bodies.held() <= BOUNDS.total);
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, holding)
        .await
        .unwrap_or_else(|_| panic!("never {bytes}: {}", relay.services.bodies.held()));
}

fn batch(key: &str) -> Request {
    Request::new("POST", "/v1/push/batch")
        .json(&json!({"messages": [message()]}))
        .key(key)
}

#[actix_web::test]
async fn one_instance_with_half_sent_bodies_is_refused_more_and_no_other_is() {
    let relay = relay().await;
    let (one, other) = (relay.enroll().await, relay.enroll().await);
    let _first = half_sent(&relay, &one).await;
    let _second = half_sent(&relay, &one).await;
    holds(&relay, 2 * HALF).await;
    let mut third = half_sent(&relay, &one).await;
    let answer = refused(&mut third).await;
    assert_eq!(answer.refusal(), (429, "rate_limited".to_owned()));
    assert_eq!(
        (answer.header("retry-after"), answer.header("connection")),
        (Some("1"), Some("close"))
    );
    assert_eq!(relay.send(batch(&other)).await.status, 200);
    assert_eq!(relay.send(Request::push().key(&other)).await.status, 200);
}

#[actix_web::test]
async fn half_sent_bodies_of_many_instances_end_at_the_bound_and_single_pushes_go_on() {
    let relay = relay().await;
    let mut keys = Vec::new();
    for _ in 0..6 {
        keys.push(relay.enroll().await);
    }
    let mut sockets = Vec::new();
    for key in &keys {
        sockets.push(half_sent(&relay, key).await);
        holds(&relay, sockets.len() * HALF).await;
    }
    for nth in 0..40 {
        let mut more = half_sent(&relay, &keys[nth % 6]).await;
        let answer = refused(&mut more).await;
        assert_eq!(answer.refusal(), (503, "overloaded".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    assert_eq!(relay.services.bodies.held(), BOUNDS.batches);
    assert_eq!(relay.send(Request::push().key(&keys[0])).await.status, 200);
    sockets.clear();
    holds(&relay, 0).await;
    assert_eq!(relay.send(batch(&keys[0])).await.status, 200);
}

#[actix_web::test]
async fn a_body_that_never_ends_gives_its_memory_back_when_its_time_is_over() {
    let relay = Relay::start_as(Setup {
        bodies: BOUNDS,
        body_time: Duration::from_millis(200),
        ..Setup::default()
    })
    .await;
    let key = relay.enroll().await;
    let mut slow = half_sent(&relay, &key).await;
    assert_eq!(
        refused(&mut slow).await.refusal(),
        (408, "request_timeout".to_owned())
    );
    holds(&relay, 0).await;
}

#[actix_web::test]
async fn a_batch_keeps_its_memory_until_its_messages_are_answered() {
    let relay = relay().await;
    let key = relay.enroll().await;
    let (held, bodies) = (Arc::new(Mutex::new(Vec::new())), relay.services.bodies.clone());
    let seen = held.clone();
    relay.pushes.answer(move |_| {
        seen.lock().unwrap().push(bodies.held());
        Ok(sent())
    });
    let request = batch(&key);
    assert_eq!(relay.send(request).await.status, 200);
    assert!(held.lock().unwrap().iter().all(|&bytes| bytes > 0), "{held:?}");
    holds(&relay, 0).await;
}

#[actix_web::test]
async fn a_body_is_given_what_it_announces_and_not_more() {
    let relay = relay().await;
    let key = relay.enroll().await;
    let (held, bodies) = (Arc::new(Mutex::new(0)), relay.services.bodies.clone());
    let seen = held.clone();
    relay.pushes.answer(move |_| {
        *seen.lock().unwrap() = bodies.held();
        Ok(sent())
    });
    let mut text = json!({"messages": [message()]}).to_string();
    text.push_str(&" ".repeat(3000 - text.len()));
    let request = Request::new("POST", "/v1/push/batch").key(&key);
    assert_eq!(
        relay.send(request.body("application/json", &text)).await.status,
        200
    );
    assert_eq!(*held.lock().unwrap(), 3000);
}
