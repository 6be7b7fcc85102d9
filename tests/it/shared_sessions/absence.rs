//! Peers that drop, or whose replica dies: they are away, and what came meanwhile is theirs when they are back elsewhere.

use serde_json::{Value, json};

use super::Place;
use crate::support::peer::{load, resume};

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_somebody_who_dropped_after_the_offer_is_heard_once_at_a_third_replica() {
    let place = Place::of(3).await;
    let (mut b, _) = place.join(1, "b", load(2)).await;
    let (mut a, _) = place.join(0, "a", load(1)).await;
    // A replica tells how it is, not how it was: somebody who is gone by then was never there.
    let mut states = vec![b.next_of("peer").await["state"].clone()];
    a.message(1, "offer").await;
    a.stored(1).await;
    drop(a);
    let mut offers = 0;
    while states.last() != Some(&json!("away")) {
        let frame = b.next().await;
        offers += usize::from(frame["t"] == "msg" && frame["d"] == "offer");
        states.extend((frame["t"] == "peer").then(|| frame["state"].clone()));
    }
    assert_eq!(offers, 1);
    b.ack(1).await;
    b.message(1, "answer").await;
    b.stored(1).await;

    let (mut a, welcome) = place.join(2, "a", resume(1, 2, 0)).await;
    assert_eq!(
        (&welcome["gen"], &welcome["next"], &welcome["peer"]["state"]),
        (&json!(1), &json!(2), &json!("online"))
    );
    let answer = a.next_of("msg").await;
    assert_eq!((&answer["seq"], &answer["d"]), (&json!(1), &json!("answer")));
    a.ack(1).await;
    assert!(has_no_message(&a.so_far().await));
    states.push(b.next_of("peer").await["state"].clone());
    assert_eq!(states, ["online", "away", "online"]);
    let (mut a, _) = place.join(0, "a", resume(1, 3, 1)).await;
    assert!(has_no_message(&a.so_far().await), "once is enough");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_whose_replica_is_killed_is_away_until_it_resumes_elsewhere_and_nothing_is_lost() {
    let mut place = Place::of(2).await;
    let (mut b, _) = place.join(0, "b", load(2)).await;
    let (mut a, _) = place.join(1, "a", load(1)).await;
    a.message(1, "stored").await;
    a.stored(1).await;
    assert_eq!(b.next_of("msg").await["d"], "stored");
    // The other replica has lived long enough to judge.
    place.replicas.pop().unwrap().kill().await;
    while b.next_of("peer").await["state"] != "away" {}
    b.message(1, "while away").await;
    b.stored(1).await;
    let (mut a, welcome) = place.join(0, "a", resume(1, 2, 0)).await;
    assert_eq!(welcome["next"], 2);
    assert_eq!(a.next_of("msg").await["d"], "while away");
    assert_eq!(b.next_of("peer").await["state"], "online");
}

fn has_no_message(frames: &[Value]) -> bool {
    frames.iter().all(|frame| frame["t"] != "msg")
}
