//! A stop while two thousand peers are connected. That what they had not got yet is there at the next relay takes a store
//! that outlives this one.

use std::time::{Duration, Instant};

use futures_util::{SinkExt as _, StreamExt as _, future::join_all, stream};
use tokio::{sync::watch, task::JoinHandle};
use tokio_tungstenite::tungstenite::Message;

use crate::support::{
    answer::Instance,
    grown::grown_instance,
    peer::{Peer, load},
    relay::{Relay, RelayOptions},
    sessions::Made,
};

const SESSIONS: usize = 1000;
/// How many are made at the same time.
const AT_ONCE: usize = 16;
const SERVICE_RESTART: u16 = 1012;

/// A peer that leaves.
type Leaving = JoinHandle<(u64, bool)>;

fn options() -> RelayOptions {
    RelayOptions::new()
        .with_grown_instances()
        .set("RELAY_SESSIONS_PER_INSTANCE", SESSIONS.to_string())
        .set("RELAY_SESSIONS_PER_MINUTE", "100000")
        .set("RELAY_LOG", "warn,sovereign_relay::app=info")
}

/// Both peers of a session that outlives the test, who answer the relay's pings until they are told to leave.
async fn pair(relay: &Relay, instance: &Instance, told: &watch::Receiver<Option<Instant>>) -> [Leaving; 2] {
    let settings = serde_json::json!({ "ttlSeconds": 600 });
    let session: Made = relay.session(instance, settings).await;
    let peers = [
        session.join("a", load(1)).await.0,
        session.join("b", load(2)).await.0,
    ];
    peers.map(|peer| tokio::spawn(leave(peer, told.clone())))
}

/// When it was asked to leave, no sooner than which it had to, and whether it was still served when it had been asked.
async fn leave(mut peer: Peer, told: watch::Receiver<Option<Instant>>) -> (u64, bool) {
    let within = peer.next_of("goaway").await["inMs"].as_u64().unwrap();
    let ping = serde_json::json!({ "t": "ping" }).to_string();
    let _ = peer.socket.send(Message::text(ping)).await;
    let mut is_served = false;
    let end = loop {
        match peer.next_or_end().await {
            Ok(frame) => is_served |= frame["t"] == "pong",
            Err(end) => break end,
        }
    };
    assert_eq!(end, SERVICE_RESTART);
    // The relay was told to stop before it told anybody.
    let since = told.borrow().unwrap().elapsed();
    assert!(since >= Duration::from_millis(within), "{since:?} of {within} ms");
    (within, is_served)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_with_two_thousand_sockets_is_told_at_once_and_asks_each_to_leave_at_a_moment_of_its_own() {
    let (mut relay, instance) = (Relay::start(options()).await, grown_instance());
    let (stopping, told) = watch::channel(None);
    let pairs = stream::iter(0..SESSIONS).map(|_| pair(&relay, &instance, &told));
    let peers: Vec<[Leaving; 2]> = pairs.buffer_unordered(AT_ONCE).collect().await;
    stopping.send_replace(Some(Instant::now()));
    relay.terminate();
    relay.logged("\"stopping\"").await;
    assert_eq!(relay.get("/readyz").await.word(), "draining");
    let url = format!("{}/v1/signal", relay.url.replace("http", "ws"));
    assert_eq!(
        Peer::connect(&url).await.end().await,
        SERVICE_RESTART,
        "a newcomer"
    );
    let left = join_all(peers.into_iter().flatten()).await;
    let (mut moments, served): (Vec<_>, Vec<_>) = left.into_iter().map(Result::unwrap).unzip();
    // On a busy machine the moment of some comes before their ping.
    let served = served.into_iter().filter(|is_served| *is_served).count();
    assert!(served >= SESSIONS, "{served} were served until they had to leave");
    moments.sort_unstable();
    assert_eq!(moments.len(), 2 * SESSIONS);
    let last = *moments.last().unwrap();
    for quarter in 0..4 {
        let (from, to) = (last * quarter / 4, last * (quarter + 1) / 4);
        let leaving = moments
            .iter()
            .filter(|moment| (from + 1..=to).contains(*moment))
            .count();
        let even = SESSIONS / 2;
        assert!(
            leaving.abs_diff(even) <= even / 5,
            "{leaving} from {from} to {to} ms"
        );
    }
    let (status, log) = relay.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("not everything ended in time"), "{log}");
}
