//! A Redis that lost all it had under replicas that run on: their operator hears of it.

use super::*;

const WARNING: &str = "redis lost its data";
const COUNTED: &str = "relay_store_data_lost_total";

/// Each replica has told so often.
async fn is_told(place: &Place, times: usize) {
    for relay in place.replicas() {
        until("it is counted", async || {
            relay.metric(COUNTED, "").await == times as f64
        })
        .await;
        until("it is said", async || {
            relay.log().matches(WARNING).count() == times
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_emptied_is_told_of_once_by_each_replica_though_nothing_is_left_to_write_back() {
    let mut place = Place::of(2).await;
    let instance = place.world.relay.enroll().await;
    is_told(&place, 0).await;
    place.redis.answer(&["FLUSHALL"]);
    is_told(&place, 1).await;

    place.admin(&instance, "limit", json!({ "perMinute": 30 })).await;
    place.all_hear().await;
    place.redis.restart();
    is_told(&place, 2).await;
    for relay in place.replicas() {
        let log = relay.log();
        let line = log.lines().rfind(|line| line.contains(WARNING)).unwrap();
        assert!(line.contains("\"suspensions_and_limits\":1"), "{line}");
    }
    // One that starts has lost nothing.
    let newcomer = place.newcomer().await;
    assert_eq!(newcomer.metric(COUNTED, "").await, 0.0);
    assert!(!newcomer.log().contains(WARNING));
    // Nor do those that run on say it again when they hear of something else.
    place.admin(&instance, "revoke", json!({})).await;
    place.all_answer(&instance, "revoked").await;
    is_told(&place, 2).await;
}
