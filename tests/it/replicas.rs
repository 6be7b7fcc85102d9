//! Several relays with one enrollment secret and one APNs key, without a store between them.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use serde_json::json;
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::SimulatorOptions;

use crate::support::{
    device::Device,
    relay::{Instance, Relay, RelayOptions},
    world::World,
};

const SECRET: &str = "one secret for all replicas, 40 bytes ..";
const REPLICAS: usize = 3;

fn options() -> RelayOptions {
    RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", SECRET)
}

async fn replicas() -> (World, Vec<Relay>) {
    let world = World::start_with(SimulatorOptions::default(), options()).await;
    let others = join_all((0..REPLICAS).map(|_| world.another_relay(options()))).await;
    (world, others)
}

async fn push_to_both_environments(world: &World, relay: &Relay, owner: &Instance) {
    for (environment, simulator) in [
        ("production", &world.simulators.apns),
        ("sandbox", &world.simulators.apns_sandbox),
    ] {
        let pushes = (0..20).map(|_| {
            let mut push = Device::new(Platform::Ios, simulator.new_token()).push(&json!({}));
            push["environment"] = json!(environment);
            async move { assert_eq!(relay.push(owner, &push).await.word(), "sent") }
        });
        join_all(pushes).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apns_sees_one_jwt_per_slot_from_all_replicas_byte_for_byte_and_after_a_restart_too() {
    let (world, mut others) = replicas().await;
    let owner = world.relay.enroll().await;
    let killed = others.pop().unwrap();
    push_to_both_environments(&world, &killed, &owner).await;
    killed.kill().await;
    others.push(world.another_relay(options()).await);
    let pushes = others.iter().chain([&world.relay]);
    join_all(pushes.map(|relay| push_to_both_environments(&world, relay, &owner))).await;
    for simulator in [&world.simulators.apns, &world.simulators.apns_sandbox] {
        let shown = simulator.jwts();
        let connections: HashSet<u64> = shown.iter().map(|used| used.connection).collect();
        assert!(
            connections.len() > REPLICAS,
            "each replica dials for itself: {connections:?}"
        );
        let mut of_slot: HashMap<i64, HashSet<&str>> = HashMap::new();
        for used in &shown {
            of_slot.entry(used.issued_at).or_default().insert(&used.jwt);
        }
        assert!(of_slot.len() <= 2, "the test began at most one slot");
        assert!(of_slot.values().all(|texts| texts.len() == 1), "{of_slot:?}");
    }
}

#[tokio::test]
async fn an_instance_of_one_replica_is_the_same_instance_at_the_others() {
    let (world, others) = replicas().await;
    let owner = world.relay.enroll().await;
    let mut push = world.device(Platform::Ios).push(&json!({}));
    push["collapseId"] = json!("conversation-7");
    for relay in others.iter().chain([&world.relay]) {
        assert_eq!(relay.push(&owner, &push).await.word(), "sent");
    }
    let delivered = world.simulators.apns.inbox().all();
    let tags: HashSet<_> = delivered.iter().map(|delivery| &delivery.collapse_id).collect();
    assert_eq!(
        (delivered.len(), tags.len()),
        (REPLICAS + 1, 1),
        "a later notification replaces an earlier one, whichever replica sent it"
    );
}
