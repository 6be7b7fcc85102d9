//! Messages that wait for somebody, and what happens when too many do.

use std::{cell::Cell, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};
use sovereign_relay_client::{
    protocol::signal::frame::{Mood, Opaque},
    signal::event::ConnectionEvent,
};

use crate::support::{
    DEADLINE,
    answer::{Answer, Instance},
    clock::HandClock,
    in_process::InProcess,
    peer::{LOST, Peer, load, resume},
    relay::{Relay, RelayOptions},
    sessions::{Made, open_session_at},
    until,
};

const HALF_A_MIB: &str = "512KiB";
const LONG: usize = 30_000;
const STALLED: u64 = 10;

#[tokio::test]
async fn an_offer_and_twenty_candidates_wait_for_a_peer_that_was_never_there() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let session = relay.open_session(&instance).await;
    let (mut a, welcome) = session.join("a", load(1)).await;
    assert_eq!(welcome["peer"], json!({ "state": "absent", "gen": 0 }));
    a.messages(1..=21).await;
    a.stored(21).await;
    let view = relay.look_at(&instance, &session).await.body;
    let absent = json!({ "state": "absent", "gen": 0, "queued": 21 });
    assert_eq!(view["slots"]["b"], absent);
    drop(a);
    let (mut b, _) = session.join("b", load(2)).await;
    for seq in 1..=21 {
        let expected = json!({ "t": "msg", "seq": seq, "gen": 1, "d": seq.to_string() });
        assert_eq!(b.next().await, expected);
    }
}

#[tokio::test]
async fn a_refused_message_and_the_five_behind_it_arrive_in_order_over_the_same_socket() {
    let clock = HandClock::new();
    let relay = InProcess::start(clock.ports()).await;
    let session = open_session_at(&relay.url).await;
    let (mut a, _) = session.join("a", load(1)).await;
    let (mut b, _) = session.join("b", load(2)).await;
    // Faster than it may: one of them is refused while those behind it are under way.
    a.messages(1..=100).await;
    let refused = a.next_of("err").await;
    assert_eq!(refused["code"], "rate_limited");
    let mut next = refused["n"].as_u64().unwrap();
    let first_refused = next;
    clock.advance(Duration::from_secs(1));
    while next <= first_refused + 5 {
        a.messages(next..=first_refused + 5).await;
        for frame in a.so_far().await {
            match frame["t"].as_str().unwrap() {
                "ack" => next = next.max(frame["n"].as_u64().unwrap() + 1),
                "err" => assert_eq!(frame["code"], "rate_limited"),
                _ => {}
            }
        }
    }
    for seq in 1..=first_refused + 5 {
        let message = b.next_of("msg").await;
        assert_eq!(
            (&message["seq"], &message["d"]),
            (&json!(seq), &json!(seq.to_string()))
        );
    }
}

/// A client paces itself, but a page load can't know what the one before it has said.
#[tokio::test]
async fn a_client_that_speaks_faster_than_it_may_is_told_and_loses_neither_messages_nor_its_connection() {
    // No budget refills before the client was told to wait, however slowly it speaks.
    let clock = HandClock::new();
    let relay = InProcess::start(clock.ports()).await;
    let session = open_session_at(&relay.url).await;
    let first = session.open("a", &session.url);
    let mut receipts = Vec::new();
    for n in 1..=59 {
        receipts.push(first.send(Opaque::new(n.to_string())).await.unwrap());
    }
    for receipt in receipts {
        receipt.stored().await.unwrap();
    }
    let mut second = session.open("a", &session.url);
    for n in 60..=69 {
        let _ = second.send(Opaque::new(n.to_string())).await.unwrap();
    }
    let mut b = session.open("b", &session.url);
    let watching = async {
        let mut delays = 0;
        while let Some(event) = second.next().await {
            match event {
                ConnectionEvent::Delayed { .. } => {
                    delays += 1;
                    clock.advance(Duration::from_secs(1));
                }
                ConnectionEvent::Interrupted { cause, .. } => panic!("{cause}"),
                ConnectionEvent::Message { .. } => return delays,
                _ => {}
            }
        }
        unreachable!("it does not end")
    };
    let hearing = async {
        let mut heard = 0;
        while heard < 69 {
            if let Some(ConnectionEvent::Message { content, .. }) = b.next().await {
                heard += 1;
                assert_eq!(content.expose(), heard.to_string());
            }
        }
        b.send(Opaque::new("all heard"))
            .await
            .unwrap()
            .stored()
            .await
            .unwrap();
    };
    let all = async { tokio::join!(watching, hearing).0 };
    let delays = tokio::time::timeout(DEADLINE, all).await.expect("all arrives");
    assert!(delays > 0);
    // The relay waits for its connections to end before it does.
    tokio::join!(second.leave(Mood::Direct), b.leave(Mood::Direct));
}

#[tokio::test]
async fn a_reader_that_stalls_is_closed_after_ten_seconds_and_resumes_and_costs_nobody_else_anything() {
    let clock = HandClock::new();
    let relay = InProcess::start(clock.ports()).await;
    let (session, other) = (
        open_session_at(&relay.url).await,
        open_session_at(&relay.url).await,
    );
    let mut stalled = Peer::connect_narrow(&session.url).await;
    stalled.hello(&session.b, load(2)).await;
    assert_eq!(stalled.next().await["t"], "welcome");
    let (mut a, _) = session.join("a", load(1)).await;

    // A full mailbox is more than the buffers on its way hold.
    let stored = flood(&mut a).await;
    let (mut c, _) = other.join("a", load(1)).await;
    let (mut d, _) = other.join("b", load(2)).await;
    c.message(1, "unhindered").await;
    assert_eq!(d.next_of("msg").await["d"], "unhindered");

    a.send(json!({ "t": "bye" })).await;
    assert_eq!(a.end().await, 1000);
    let mut a = until_given_up(&session, &clock).await;
    // It began to read too late for the rest of the frame that was begun; then it gets no close frame either.
    let end = stalled.end().await;
    assert!([4503, LOST].contains(&end), "{end}");
    let (mut b, welcome) = session.join("b", resume(2, 2, 0)).await;
    assert_eq!(welcome["gen"], 1);
    for seq in 1..=stored {
        assert_eq!(b.next_of("msg").await["seq"], seq);
    }
    b.ack(stored).await;
    a.message(stored + 1, "there is room again").await;
    a.stored(stored + 1).await;
    assert_eq!(b.next_of("msg").await["d"], "there is room again");
}

/// Lets time pass until slot b's connection is given up. Whoever dials as slot a makes that connection look at its
/// clock, since there is a presence to be told, and is told in turn whether it is still there.
async fn until_given_up(session: &Made, clock: &HandClock) -> Peer {
    let attempts = Cell::new(1);
    let dial = || {
        attempts.update(|attempt| attempt + 1);
        session.join("a", resume(1, attempts.get(), 0))
    };
    until("a connection that stalls is given up", async || {
        clock.advance(Duration::from_secs(1));
        dial().await.1["peer"]["state"] != "online"
    })
    .await;
    dial().await.0
}

#[tokio::test]
async fn readers_that_stall_while_they_are_flooded_cost_the_relay_less_than_a_mebibyte_each() {
    let relay = Relay::start(RelayOptions::new()).await;
    let instance = relay.enroll().await;
    let one = async || {
        let session = relay.open_session(&instance).await;
        let mut stalled = Peer::connect_narrow(&session.url).await;
        stalled.hello(&session.b, load(2)).await;
        assert_eq!(stalled.next().await["t"], "welcome");
        let (mut a, _) = session.join("a", load(1)).await;
        let stored = flood(&mut a).await;
        assert!(stored as usize * LONG > 400 * 1024, "{stored}");
        (stalled, a)
    };
    // What the first one costs is the process's own.
    let _first = one().await;
    let before_kib = relay.resident_kib();
    let _stalled = join_all((0..STALLED).map(|_| one())).await;
    let grown_kib = relay.resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < STALLED * 1024, "grown by {grown_kib} KiB");
    // Each is given up for what it is, though none can be told.
    until("every stalled reader is counted", async || {
        relay.metric("relay_signal_closes_total", "slow consumer").await >= (STALLED + 1) as f64
    })
    .await;
}

/// Speaks until the peer's mailbox is full; how many are in it.
async fn flood(peer: &mut Peer) -> u64 {
    let mut n = 1;
    loop {
        peer.message(n, &"x".repeat(LONG)).await;
        let answer = peer.next().await;
        match answer["t"].as_str().unwrap() {
            "ack" => n = answer["n"].as_u64().unwrap() + 1,
            "err" if answer["code"] == "mailbox_full" => return n - 1,
            _ => {}
        }
    }
}

#[tokio::test]
async fn an_instance_at_its_cap_of_sessions_is_refused_and_its_neighbours_sessions_live_on() {
    let options = RelayOptions::new().set("RELAY_SESSIONS_PER_INSTANCE", "5");
    let relay = Relay::start(options).await;
    let (greedy, neighbour) = (relay.enroll().await, relay.enroll().await);
    let mut sessions = Vec::new();
    for _ in 0..5 {
        sessions.push(relay.open_session(&neighbour).await);
    }
    let refused = loop {
        let request = relay.session_request(&greedy, &json!({}));
        let answer = Answer::from(request).await;
        if answer.status != 201 {
            break answer;
        }
    };
    assert_eq!((refused.status.as_u16(), refused.word()), (429, "rate_limited"));
    assert!(refused.retry_after() >= 1);
    assert_eq!(relay.metric("relay_signal_sessions", "").await, 10.0);
    for session in &sessions {
        let (mut a, _) = session.join("a", load(1)).await;
        let (mut b, _) = session.join("b", load(2)).await;
        a.message(1, "alive").await;
        assert_eq!(b.next_of("msg").await["d"], "alive");
    }
}

/// Fills mailboxes of an instance until it is refused; the peer that was, and the number it was refused with.
async fn fill(relay: &Relay, instance: &Instance) -> (Made, Peer, u64) {
    loop {
        let session = relay.open_session(instance).await;
        let (mut a, _) = session.join("a", load(1)).await;
        // Less than a mailbox, so that it is the instance's bytes that run out.
        for n in 1..=8 {
            a.message(n, &"x".repeat(LONG)).await;
            let answer = a.next().await;
            if answer["t"] == "err" {
                assert!(n > 1, "something of this session waits");
                assert_eq!(
                    (&answer["code"], &answer["n"]),
                    (&json!("mailbox_full"), &json!(n))
                );
                return (session, a, n);
            }
        }
    }
}

async fn says(session: &Made, connection: u64, n: u64) -> Value {
    let (mut a, _) = session.join("a", load(connection)).await;
    a.message(n, "a few words").await;
    a.next().await
}

#[tokio::test]
async fn a_tenant_that_fills_its_bytes_is_refused_alone_and_goes_on_when_something_was_read() {
    let options = RelayOptions::new().set("RELAY_INSTANCE_MAILBOXES", HALF_A_MIB);
    let relay = Relay::start(options).await;
    let (greedy, neighbour) = (relay.enroll().await, relay.enroll().await);
    let (session, mut a, n) = fill(&relay, &greedy).await;
    let other = relay.open_session(&neighbour).await;
    assert_eq!(says(&other, 1, 1).await, json!({ "t": "ack", "n": 1 }));

    let (mut b, _) = session.join("b", load(2)).await;
    for seq in 1..n {
        assert_eq!(b.next_of("msg").await["seq"], seq);
        b.ack(seq).await;
    }
    b.so_far().await;
    a.message(n, &"x".repeat(LONG)).await;
    a.stored(n).await;
    assert_eq!(b.next_of("msg").await["seq"], n);
}

#[tokio::test]
async fn when_all_mailboxes_are_full_the_heaviest_tenant_is_refused_and_a_light_one_goes_on() {
    let options = RelayOptions::new()
        .set("RELAY_MAILBOXES", HALF_A_MIB)
        .set("RELAY_INSTANCE_MAILBOXES", HALF_A_MIB);
    let relay = Relay::start(options).await;
    let (heavy, light) = (relay.enroll().await, relay.enroll().await);
    let other = relay.open_session(&light).await;
    let (mut c, _) = other.join("a", load(1)).await;
    // So that all mailboxes are full before the heavy one has all that an instance may have.
    for n in 1..=3 {
        c.message(n, &"x".repeat(LONG)).await;
        c.stored(n).await;
    }
    let (_, mut a, n) = fill(&relay, &heavy).await;
    // More than there is room for, but little beside what the heavy one has.
    c.message(4, &"x".repeat(LONG)).await;
    c.stored(4).await;
    a.message(n, &"x".repeat(LONG)).await;
    assert_eq!(a.next().await["code"], "mailbox_full");
    let refused = Answer::from(relay.session_request(&light, &json!({}))).await;
    assert_eq!((refused.status.as_u16(), refused.word()), (503, "overloaded"));
}
