//! Peers on different replicas: they talk, hop, leave messages for each other, and hear of the end.

use serde_json::json;

use super::{OVER, Place, through};
use crate::support::{
    peer::{load, resume},
    redis::Server,
    relay::RelayOptions,
};

#[tokio::test(flavor = "multi_thread")]
async fn peers_on_two_replicas_talk_and_see_each_other_come_and_go() {
    let place = Place::of(2).await;
    let (mut a, welcome) = place.join(0, "a", load(1)).await;
    assert_eq!(welcome["peer"]["state"], "absent");
    a.message(1, "before b was there").await;
    a.stored(1).await;
    let (mut b, welcome) = place.join(1, "b", load(2)).await;
    assert_eq!(welcome["peer"], json!({ "state": "online", "gen": 1 }));
    assert_eq!(b.next_of("msg").await["d"], "before b was there");
    assert_eq!(a.next_of("peer").await["state"], "online");

    b.ack(1).await;
    b.message(1, "an answer").await;
    assert_eq!(a.next_of("msg").await["d"], "an answer");
    a.message(2, "and more").await;
    assert_eq!(b.next_of("msg").await["d"], "and more");

    b.send(json!({ "t": "bye" })).await;
    assert_eq!(a.next_of("peer").await["state"], "left");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_peer_that_hops_between_three_replicas_arrive_in_order() {
    const MESSAGES: u64 = 200;
    // On a fast machine 67 messages to each replica in less than half a second are more than a slot may say.
    let options = RelayOptions::new()
        .set("RELAY_SIGNAL_RESUMES_PER_MINUTE", "1000")
        .set("RELAY_SIGNAL_BURST", "1000");
    let place = Place::with(Server::start(), 3, options).await;
    let (mut b, _) = place.join(0, "b", load(2)).await;
    let mut heard = 0;
    for n in 1..=MESSAGES {
        let replica = usize::try_from(n).unwrap() % 3;
        let (mut a, welcome) = place.join(replica, "a", resume(1, n, 0)).await;
        assert_eq!(welcome["next"], n);
        a.message(n, &n.to_string()).await;
        // Every other one is cut off before it can hear that its message was stored.
        if n % 2 == 0 {
            a.stored(n).await;
        }
        while heard < n {
            heard += 1;
            let message = b.next_of("msg").await;
            assert_eq!(
                (&message["seq"], &message["d"]),
                (&json!(heard), &json!(heard.to_string()))
            );
            b.ack(heard).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_and_twenty_candidates_wait_in_order_for_a_peer_that_comes_later_to_another_replica() {
    const CANDIDATES: u64 = 20;
    let place = Place::of(2).await;
    let (mut a, welcome) = place.join(0, "a", load(1)).await;
    assert_eq!(welcome["peer"]["state"], "absent");
    a.message(1, "offer").await;
    a.messages(2..=CANDIDATES + 1).await;
    a.stored(CANDIDATES + 1).await;
    let (mut b, welcome) = place.join(1, "b", load(2)).await;
    assert_eq!(welcome["peer"]["state"], "online");
    assert_eq!(b.next_of("msg").await["d"], "offer");
    for n in 2..=CANDIDATES + 1 {
        let message = b.next_of("msg").await;
        assert_eq!(
            (&message["seq"], &message["d"]),
            (&json!(n), &json!(n.to_string()))
        );
    }
    b.ack(CANDIDATES + 1).await;
    b.message(1, "answer").await;
    assert_eq!(a.next_of("msg").await["d"], "answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_peer_that_never_comes_is_told_when_the_session_expires() {
    let place = Place::of(2).await;
    let settings = json!({ "e2e": "optional", "ttlSeconds": 30 });
    let short = place.replicas[0].session(&place.instance, settings).await;
    let (mut a, _) = through(&place.replicas[1], &short).join("a", load(1)).await;
    a.message(1, "offer").await;
    a.stored(1).await;
    assert_eq!(a.end().await, OVER);
    for replica in &place.replicas {
        assert_eq!(through(replica, &short).refusal("b", load(2)).await, 4404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_on_one_replica_is_over_on_the_other() {
    let place = Place::of(2).await;
    let (mut b, _) = place.join(1, "b", load(2)).await;
    let deleted = place.replicas[0]
        .delete_session(&place.instance, &place.session)
        .await;
    assert_eq!(deleted.status, 204);
    assert_eq!(b.end().await, OVER);
    assert_eq!(place.at(1).refusal("b", resume(2, 2, 0)).await, 4404);
}
