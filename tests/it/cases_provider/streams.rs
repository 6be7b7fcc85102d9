//! Streams of APNs' connections: how many, and what becomes of them.

use std::{collections::HashSet, time::Duration};

use futures_util::future::{join, join_all};
use serde_json::Value;
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::Behaviour;

use super::{assert_all_sent, push, pushes, send_all, world};
use crate::support::{DEADLINE, grown::grown_instances, relay::Instance, until, world::World};

// The peer's SETTINGS allow 1 stream, then 10, then 1000, then 1 again, under load: never more open streams than
// allowed, the queue drains, and no push fails because of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_limit_that_moves_under_load_is_used_and_never_exceeded() {
    let world = world("17s").await;
    let instances = grown_instances(3);
    let apns = &world.simulators.apns;
    apns.set_stream_limit(1);
    apns.script()
        .always(Behaviour::accept().after(Duration::from_millis(100)));
    let load = pushes(&world, Platform::Ios, 500);
    let moves = async {
        apns.inbox().wait_for(8, DEADLINE).await.unwrap();
        assert_eq!(apns.stats().most_streams_open, 1);
        apns.set_stream_limit(10);
        apns.inbox().wait_for(60, DEADLINE).await.unwrap();
        assert!(apns.stats().most_streams_open <= 10);
        // None ends before the next begins, however slowly they begin.
        apns.script().hold(true);
        apns.set_stream_limit(1000);
        until("the new room is used", async || {
            apns.stats().most_streams_open > 20
        })
        .await;
        apns.set_stream_limit(1);
        apns.script().clear();
        apns.script().hold(false);
    };
    let (answers, ()) = join(send_all(&world, &instances, &load, 500), moves).await;
    assert_all_sent(&answers);
    assert_all_sent(&send_all(&world, &instances, &pushes(&world, Platform::Ios, 20), 20).await);
    assert_eq!(apns.limit_violations(), 0);
    assert_eq!(apns.inbox().total(), 520);
}

// 10,000 pushes on one connection: no RST_STREAM from the relay, nothing doubled, and no second connection while the
// first has room.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_pushes_go_over_one_connection_without_a_reset() {
    let world = world("17s").await;
    let apns = &world.simulators.apns;
    let first = push(&world, Platform::Ios);
    let mut instances = grown_instances(1);
    assert_all_sent(&[world.relay.push(&instances[0], &first).await]);
    instances.extend(grown_instances(19));
    // 15 batches of 64 at a time stay below the 1000 streams that the peer allows.
    let (early, late) = instances.split_at(10);
    for some in [early, late] {
        join_all(some.iter().map(|instance| batch_of_500(&world, instance))).await;
    }
    assert_eq!(apns.connections_accepted(), 1);
    assert_eq!(
        (
            apns.resets_received(),
            apns.limit_violations(),
            apns.stats().goaways_received
        ),
        (0, 0, 0)
    );
    let delivered = apns.inbox().all();
    let tokens: HashSet<&str> = delivered.iter().map(|delivery| &*delivery.token).collect();
    assert_eq!((delivered.len(), tokens.len()), (10_001, 10_001));
}

async fn batch_of_500(world: &World, instance: &Instance) {
    let answer = world
        .relay
        .batch(instance, &pushes(world, Platform::Ios, 500))
        .await;
    let results = answer.body["results"].as_array().unwrap();
    let sent = |result: &&Value| result["result"] == "sent";
    assert_eq!(results.iter().filter(sent).count(), 500, "{answer:?}");
}

// GOAWAY again and again under load: every push is sent. What GOAWAY lets finish is not sent again; what it leaves
// out is, under the same apns-id, so that even a peer that breaks its promise is not shown two pushes.
#[tokio::test(flavor = "multi_thread")]
async fn goaway_again_and_again_under_load_loses_nothing_and_repeats_only_what_it_leaves_out() {
    let world = world("17s").await;
    let instances = grown_instances(4);
    let apns = &world.simulators.apns;
    assert_all_sent(&send_all(&world, &instances, &pushes(&world, Platform::Ios, 1), 1).await);
    apns.script()
        .always(Behaviour::accept().after(Duration::from_millis(100)));
    under_load(&world, &instances, || apns.goaway("Shutdown")).await;
    assert_eq!(apns.inbox().total(), 1001, "nothing is sent twice");

    under_load(&world, &instances, || apns.goaway_at("Shutdown", 1)).await;
    let delivered = apns.inbox().all();
    let tokens: HashSet<&str> = delivered.iter().map(|delivery| &*delivery.token).collect();
    let ids: HashSet<&str> = delivered.iter().map(|delivery| &*delivery.apns_id).collect();
    assert_eq!((tokens.len(), ids.len()), (2001, 2001));
    assert!(apns.connections_accepted() > 6, "each was replaced");
}

/// 1,000 pushes, and `disturb` after the first 200 that were delivered and, twice, once the connection was replaced.
async fn under_load(world: &World, instances: &[Instance], disturb: impl Fn()) {
    let inbox = world.simulators.apns.inbox();
    let before = inbox.all().len();
    let disturbing = async {
        inbox.wait_for(before + 200, DEADLINE).await.unwrap();
        for _ in 0..2 {
            let disturbed = newest_connection(world);
            disturb();
            until("another connection is in use", async || {
                newest_connection(world) > disturbed
            })
            .await;
        }
        disturb();
    };
    let load = pushes(world, Platform::Ios, 1000);
    let (answers, ()) = join(send_all(world, instances, &load, 200), disturbing).await;
    assert_all_sent(&answers);
}

/// The newest one that a push came over.
fn newest_connection(world: &World) -> u64 {
    let delivered = world.simulators.apns.inbox().all();
    delivered
        .iter()
        .map(|delivery| delivery.connection)
        .max()
        .unwrap()
}
