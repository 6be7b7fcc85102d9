//! Two connections for one slot on different replicas: the newer one has it, whatever becomes of the other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Place, REPLACED, through};
use crate::support::{
    peer::{Peer, load, resume},
    relay::Relay,
    until,
};

const ABUSE: u16 = 4429;
const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_on_another_replica_closes_the_old_connection_and_the_peer_sees_nothing_of_it() {
    let place = Place::of(2).await;
    let (mut old, _) = place.join(0, "a", load(1)).await;
    let (mut b, _) = place.join(0, "b", load(2)).await;
    let (mut new, welcome) = place.join(1, "a", resume(1, 2, 0)).await;
    assert_eq!(welcome["gen"], 1);
    assert_eq!(old.end().await, REPLACED);
    let frames = b.so_far().await;
    assert!(frames.iter().all(is_no_departure), "{frames:?}");
    new.message(1, "still here").await;
    assert_eq!(b.next_of("msg").await["d"], "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_connection_that_dies_after_its_slot_was_taken_over_elsewhere_changes_nothing() {
    let place = Place::of(3).await;
    let other = place.replicas[0].open_session(&place.instance).await;
    let [first, _, third] = &place.replicas[..] else {
        unreachable!();
    };
    // Nobody reads from it any more: the relay's goodbye is not answered.
    let (old, _) = place.join(0, "a", load(1)).await;
    let (mut b, _) = place.join(2, "b", load(2)).await;
    let (marker, _) = through(first, &other).join("a", load(3)).await;
    let (mut sees_marker, _) = through(third, &other).join("b", load(4)).await;
    let (mut new, _) = place.join(1, "a", resume(1, 2, 0)).await;
    drop(old);
    until("only the marker is left", async || sockets(first).await == 1.0).await;
    // Somebody who leaves the same replica after that is seen to be away: so would the one before have been.
    drop(marker);
    while sees_marker.next_of("peer").await["state"] != "away" {}
    let frames = b.so_far().await;
    assert!(frames.iter().all(is_no_departure), "{frames:?}");
    let seen = third.look_at(&place.instance, &place.session).await;
    let slot = &seen.body["slots"]["a"];
    assert_eq!((&slot["state"], &slot["gen"]), (&json!("online"), &json!(1)));
    new.message(1, "still here").await;
    assert_eq!(b.next_of("msg").await["d"], "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_clients_with_one_ticket_the_newer_has_the_slot_and_the_older_comes_back_at_no_replica() {
    let place = Place::of(3).await;
    let (mut older, _) = place.join(0, "a", load(1)).await;
    let (mut b, _) = place.join(2, "b", load(9)).await;
    let (mut newer, welcome) = place.join(1, "a", load(2)).await;
    assert_eq!(welcome["gen"], 2);
    assert_eq!(older.end().await, REPLACED);
    for (replica, attempt) in (0..3).zip(2..) {
        let back = place.at(replica).refusal("a", resume(1, attempt, 0)).await;
        assert_eq!(back, REPLACED, "at replica {replica}");
    }
    newer.message(1, "of the newer").await;
    let message = b.next_of("msg").await;
    assert_eq!(
        (&message["gen"], &message["d"]),
        (&json!(2), &json!("of the newer"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_takes_ten_page_loads_a_minute_over_all_replicas_and_whoever_has_it_still_resumes() {
    let place = Place::of(3).await;
    let began = Instant::now();
    let mut loads = 0;
    let refused = loop {
        let connection = loads + 1;
        let replica = usize::try_from(connection).unwrap() % 3;
        let mut peer = Peer::connect(&place.at(replica).url).await;
        peer.hello(place.session.ticket("a"), load(connection)).await;
        match peer.next_or_end().await {
            Ok(welcome) => assert_eq!(
                (&welcome["t"], &welcome["gen"]),
                (&json!("welcome"), &json!(connection))
            ),
            Err(code) => break code,
        }
        loads = connection;
    };
    assert_eq!(refused, ABUSE);
    // A machine that takes longer than a minute for this has begun another one.
    assert!(loads == 10 || began.elapsed() >= MINUTE, "{loads}");
    for (replica, attempt) in (0..3).zip(2..) {
        let (_, welcome) = place.join(replica, "a", resume(loads, attempt, 0)).await;
        assert_eq!(welcome["gen"], loads);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_resumes_thirty_times_a_minute_over_all_replicas_is_never_shut_out() {
    let place = Place::of(3).await;
    let (mut b, _) = place.join(0, "b", load(2)).await;
    for attempt in 1..=30 {
        let replica = usize::try_from(attempt).unwrap() % 3;
        let (mut a, welcome) = place.join(replica, "a", resume(1, attempt, 0)).await;
        assert_eq!((&welcome["gen"], &welcome["next"]), (&json!(1), &json!(attempt)));
        a.message(attempt, &attempt.to_string()).await;
        assert_eq!(b.next_of("msg").await["d"], attempt.to_string());
    }
}

async fn sockets(relay: &Relay) -> f64 {
    relay.metric("relay_signal_sockets ", "").await
}

fn is_no_departure(frame: &Value) -> bool {
    frame["t"] != "peer" || frame["state"] == "online"
}
