//! A replica stops while many sessions talk over it.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{SinkExt as _, future::join_all};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_tungstenite::tungstenite::Message;

use super::{Place, through};
use crate::support::{
    peer::{Peer, load, resume},
    redis::Server,
    relay::RelayOptions,
    sessions::Made,
    until,
};

const SESSIONS: usize = 100;
const SERVICE_RESTART: u16 = 1012;
const LAST: &str = "the last one";
/// Messages that each session hears before the replica stops.
const SOME: u64 = 3;
/// Between two messages of a peer.
const PACE: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stops_under_two_hundred_sockets_sends_them_to_the_other_one_and_no_message_is_lost() {
    let options = RelayOptions::new()
        .set("RELAY_SESSIONS_PER_MINUTE", "10000")
        .set("RELAY_SIGNAL_MESSAGES_PER_SECOND", "1000")
        .set("RELAY_SIGNAL_BURST", "1000")
        .set("RELAY_SIGNAL_SOCKETS_BEFORE_HELLO_PER_ADDRESS", "1000");
    let mut place = Place::with(Server::start(), 2, options).await;
    let stopping = place.replicas.pop().unwrap();
    let sessions = (0..SESSIONS).map(|_| stopping.open_session(&place.instance));
    let sessions = join_all(sessions).await;
    let (heard, talking) = (AtomicU64::new(0), AtomicUsize::new(0));
    let talks = sessions.iter().map(async |session| {
        let (here, there) = (through(&stopping, session), through(&place.replicas[0], session));
        tokio::join!(send(&here, &there), hear(&here, &there, &heard, &talking)).0
    });
    let stop = async {
        until("all talk", async || talking.load(Ordering::SeqCst) == SESSIONS).await;
        stopping.terminate();
    };
    let (sent, ()) = tokio::join!(join_all(talks), stop);
    assert_eq!(heard.into_inner(), sent.iter().sum::<u64>());
    let (status, log) = stopping.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("not everything ended in time"), "{log}");
}

/// One message after the other until this replica sends the peer away, and the last one at the other replica. How many.
async fn send(here: &Made, there: &Made) -> u64 {
    let (mut a, _) = here.join("a", load(1)).await;
    let (mut n, mut turns) = (0, interval(PACE));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = loop {
        turns.tick().await;
        n += 1;
        if let Some(end) = send_one(&mut a, n).await {
            break end;
        }
    };
    assert_eq!(end, SERVICE_RESTART);
    let (mut a, welcome) = there.join("a", resume(1, 2, 0)).await;
    let next = welcome["next"].as_u64().unwrap();
    assert!(
        next == n || next == n + 1,
        "all that was acknowledged: {next} of {n}"
    );
    a.messages(next..=n).await;
    a.message(n + 1, LAST).await;
    a.stored(n + 1).await;
    n + 1
}

/// The end, if that came instead of an acknowledgement.
async fn send_one(a: &mut Peer, n: u64) -> Option<u16> {
    let message = json!({ "t": "msg", "n": n, "d": n.to_string() }).to_string();
    loop {
        // Where the relay has left already, the end is what is read.
        let _ = a.socket.send(Message::text(message.as_str())).await;
        let refused = loop {
            match a.next_or_end().await {
                Ok(frame) if frame["t"] == "ack" && frame["n"] == n => return None,
                Ok(frame) if frame["t"] == "err" => break frame,
                Ok(_) => {}
                Err(end) => return Some(end),
            }
        };
        // Redis took too long, on a machine that all this keeps busy: again, no sooner than it was asked for.
        assert_eq!(
            (&refused["code"], &refused["n"]),
            (&json!("unavailable"), &json!(n))
        );
        sleep(Duration::from_millis(refused["retryMs"].as_u64().unwrap())).await;
    }
}

/// Everything to the last, first at this replica, then at the other.
async fn hear(here: &Made, there: &Made, heard: &AtomicU64, talking: &AtomicUsize) {
    let (mut b, _) = here.join("b", load(2)).await;
    let mut seq = 0;
    loop {
        match b.next_or_end().await {
            Ok(frame) if frame["t"] == "msg" => {
                seq += 1;
                assert_eq!(frame["seq"], seq);
                heard.fetch_add(1, Ordering::SeqCst);
                talking.fetch_add(usize::from(seq == SOME), Ordering::SeqCst);
                if frame["d"] == LAST {
                    return;
                }
                assert_eq!(frame["d"], seq.to_string());
                let ack = json!({ "t": "ack", "seq": seq }).to_string();
                let _ = b.socket.send(Message::text(ack)).await;
            }
            Ok(_) => {}
            Err(end) => {
                assert_eq!(end, SERVICE_RESTART);
                b = there.join("b", resume(2, 2, seq)).await.0;
            }
        }
    }
}
