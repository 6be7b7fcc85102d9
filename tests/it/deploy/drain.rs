//! A stop while two thousand peers are connected. That what they had not got yet is there at the next relay takes a store
//! that outlives this one.

use futures_util::{StreamExt as _, future::join_all, stream};

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

fn options() -> RelayOptions {
    RelayOptions::new()
        .with_grown_instances()
        .set("RELAY_SESSIONS_PER_INSTANCE", SESSIONS.to_string())
        .set("RELAY_SESSIONS_PER_MINUTE", "100000")
        .set("RELAY_LOG", "warn,sovereign_relay::app=info")
}

/// Both peers of a session that outlives the test.
async fn pair(relay: &Relay, instance: &Instance) -> [Peer; 2] {
    let settings = serde_json::json!({ "ttlSeconds": 600 });
    let session: Made = relay.session(instance, settings).await;
    [
        session.join("a", load(1)).await.0,
        session.join("b", load(2)).await.0,
    ]
}

/// When it was asked to leave, and that it was served until then.
async fn leave(mut peer: Peer) -> u64 {
    let within = peer.next_of("goaway").await["inMs"].as_u64().unwrap();
    // Whoever is to leave at once may be gone already.
    if within > 1000 {
        peer.so_far().await;
    }
    assert_eq!(peer.end().await, SERVICE_RESTART);
    within
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_with_two_thousand_sockets_is_told_at_once_and_asks_each_to_leave_at_a_moment_of_its_own() {
    let (mut relay, instance) = (Relay::start(options()).await, grown_instance());
    let pairs = stream::iter(0..SESSIONS).map(|_| pair(&relay, &instance));
    let peers: Vec<[Peer; 2]> = pairs.buffer_unordered(AT_ONCE).collect().await;
    relay.terminate();
    relay.logged("\"stopping\"").await;
    assert_eq!(relay.get("/readyz").await.word(), "draining");
    let url = format!("{}/v1/signal", relay.url.replace("http", "ws"));
    assert_eq!(
        Peer::connect(&url).await.end().await,
        SERVICE_RESTART,
        "a newcomer"
    );
    let mut moments = join_all(peers.into_iter().flatten().map(leave)).await;
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
