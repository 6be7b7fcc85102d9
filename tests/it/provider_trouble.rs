//! Providers that refuse, hang, vanish, change their mind and lie: no push is lost, none is doubled, no device is
//! called gone for it, and one provider's trouble is not another's.

use std::{collections::HashSet, sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{Behaviour, SimulatorOptions, apns::verdict as apns, wns::verdict as wns};
use tokio::task::JoinHandle;

use crate::support::{
    DEADLINE,
    relay::{Answer, Instance, RelayOptions},
    until,
    world::World,
};

/// The longest step of a breaker, in seconds.
const LONGEST_STEP: u64 = 10;
/// The relay signs one JWT for each stretch of so many seconds.
const JWT_SLOT_SECONDS: i64 = 45 * 60;

async fn world(deadline: &str) -> World {
    World::start_with(SimulatorOptions::default(), options(deadline)).await
}

fn options(deadline: &str) -> RelayOptions {
    RelayOptions::new()
        .set("RELAY_PUSH_DEADLINE", deadline)
        .set("RELAY_DRAIN_GRACE", "0s")
}

async fn push(world: &World, instance: &Instance, platform: Platform) -> Answer {
    let device = world.device(platform);
    world
        .relay
        .push(instance, &device.push(&json!({ "title": "Hello" })))
        .await
}

async fn pushes(world: &World, instance: &Instance, platform: Platform, count: usize) -> Vec<Answer> {
    join_all((0..count).map(|_| push(world, instance, platform))).await
}

/// Enough instances that none meets its own limit.
async fn instances(world: &World, count: usize) -> Vec<Instance> {
    let mut instances = Vec::new();
    for number in 0..count {
        instances.push(world.relay.enroll_from(&format!("203.0.113.{number}")).await);
    }
    instances
}

fn all_sent(answers: &[Answer]) {
    for answer in answers {
        assert_eq!(answer.word(), "sent", "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_unreachable_and_back_is_used_within_one_back_off_step_and_nothing_is_restarted() {
    let world = world("3s").await;
    let instance = world.relay.enroll().await;
    all_sent(&pushes(&world, &instance, Platform::Ios, 1).await);
    world.simulators.apns.refuse_connections(true).await.unwrap();
    world.simulators.apns.kill_connections();
    until("callers of a dead provider are answered at once", async || {
        let answers = pushes(&world, &instance, Platform::Ios, 25).await;
        assert!(answers.iter().all(|answer| answer.word() != "invalid_token"));
        answers.iter().any(|answer| answer.word() == "overloaded")
    })
    .await;
    all_sent(&pushes(&world, &instance, Platform::Android, 5).await);
    world.simulators.apns.refuse_connections(false).await.unwrap();
    // Refusals come at once now; whoever asks again and again spends its own limit, so somebody else does.
    let prober = world.relay.enroll().await;
    until("it is used again", async || {
        let answer = push(&world, &prober, Platform::Ios).await;
        let is_refused = answer.word() == "overloaded";
        assert!(!is_refused || answer.retry_after() <= LONGEST_STEP, "{answer:?}");
        answer.word() == "sent"
    })
    .await;
    all_sent(&pushes(&world, &instance, Platform::Ios, 20).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_black_holed_provider_holds_up_no_other_and_its_own_callers_are_answered_by_the_deadline() {
    let world = Arc::new(world("17s").await);
    let instances = instances(&world, 4).await;
    for instance in &instances {
        all_sent(&pushes(&world, instance, Platform::Android, 1).await);
    }
    // By a shorter deadline, so that nobody has to wait for the long one; connected, so that all pushes are written by it.
    let impatient = world.another_relay(options("2s")).await;
    let other = impatient.enroll().await;
    let first = world.device(Platform::Android).push(&json!({ "title": "Hello" }));
    all_sent(&[impatient.push(&other, &first).await]);
    world.simulators.fcm.script().always(Behaviour::never_answer());
    let stuck: Vec<_> = instances
        .iter()
        .map(|instance| {
            let (world, instance) = (Arc::clone(&world), instance.clone());
            tokio::spawn(async move { pushes(&world, &instance, Platform::Android, 100).await })
        })
        .collect();
    until("they reach the provider", async || {
        world.simulators.fcm.requests_under_way() >= 300
    })
    .await;
    for platform in [Platform::Ios, Platform::Macos, Platform::Windows] {
        all_sent(&pushes(&world, &instances[0], platform, 20).await);
    }
    assert!(
        stuck.iter().all(|task| !task.is_finished()),
        "the others did not wait for them"
    );
    stuck.iter().for_each(JoinHandle::abort);
    let bodies: Vec<Value> = (0..100)
        .map(|_| world.device(Platform::Android).push(&json!({ "title": "Hello" })))
        .collect();
    for answer in join_all(bodies.iter().map(|body| impatient.push(&other, body))).await {
        let timed_out =
            answer.word() == "failed" && ["provider_timeout", "unknown_outcome"].contains(&answer.reason());
        assert!(timed_out || answer.word() == "overloaded", "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_that_vanish_both_ways_cost_the_pushes_in_flight_and_no_later_one() {
    let world = world("12s").await;
    let instance = world.relay.enroll().await;
    all_sent(&pushes(&world, &instance, Platform::Ios, 1).await);
    world.simulators.apns.blackhole(true);
    let in_flight = pushes(&world, &instance, Platform::Ios, 5).await;
    for answer in &in_flight {
        let unsure = answer.word() == "failed" && answer.body["retryable"] == true;
        assert!(unsure || answer.word() == "sent", "{answer:?}");
    }
    all_sent(&pushes(&world, &instance, Platform::Ios, 20).await);
    assert!(
        world.simulators.apns.connections_accepted() >= 2,
        "the half-open connection was replaced"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_peers_stream_limit_holds_while_it_changes_in_flight() {
    let world = Arc::new(world("17s").await);
    let instances = instances(&world, 5).await;
    let slow = || Behaviour::accept().after(Duration::from_millis(5));
    world.simulators.apns.script().always(slow());
    for (number, limit) in [1, 10, 1000, 1, 1000].into_iter().enumerate() {
        let (running, instance) = (Arc::clone(&world), instances[number].clone());
        let load = tokio::spawn(async move { pushes(&running, &instance, Platform::Ios, 200).await });
        world.simulators.apns.set_stream_limit(limit);
        all_sent(&load.await.unwrap());
    }
    assert_eq!(world.simulators.apns.limit_violations(), 0);
    assert_eq!(world.simulators.apns.resets_received(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn goaway_under_load_loses_and_doubles_nothing() {
    let world = Arc::new(world("17s").await);
    let instance = world.relay.enroll().await;
    all_sent(&pushes(&world, &instance, Platform::Ios, 1).await);
    world
        .simulators
        .apns
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(5)));
    let (running, caller) = (Arc::clone(&world), instance.clone());
    let load = tokio::spawn(async move { pushes(&running, &caller, Platform::Ios, 250).await });
    for delivered in [50, 100, 150] {
        world
            .simulators
            .apns
            .inbox()
            .wait_for(delivered, DEADLINE)
            .await
            .unwrap();
        world.simulators.apns.goaway("Shutdown");
    }
    all_sent(&load.await.unwrap());
    all_sent(&pushes(&world, &instance, Platform::Ios, 1).await);
    let delivered = world.simulators.apns.inbox().all();
    let distinct: HashSet<_> = delivered.iter().map(|delivery| &delivery.token).collect();
    assert_eq!((delivered.len(), distinct.len()), (252, 252));
    assert!(
        world.simulators.apns.connections_accepted() >= 2,
        "retired and replaced"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_pushes_across_an_expiry_cost_one_token_request_and_one_jwt() {
    let world = world("17s").await;
    let slot = || world.simulators.clock().unix_seconds() / JWT_SLOT_SECONDS;
    let first_slot = slot();
    let instances = instances(&world, 4).await;
    for platform in [Platform::Ios, Platform::Android, Platform::Windows] {
        all_sent(&pushes(&world, &instances[0], platform, 1).await);
    }
    world.simulators.fcm.expire_tokens();
    world.simulators.wns.expire_tokens();
    for platform in [Platform::Ios, Platform::Android, Platform::Windows] {
        let load = instances
            .iter()
            .map(|instance| pushes(&world, instance, platform, 150));
        all_sent(&join_all(load).await.concat());
    }
    assert_eq!(world.simulators.fcm.oauth_requests(), 2);
    assert_eq!(world.simulators.wns.oauth_requests(), 2);
    let jwts: HashSet<String> = world
        .simulators
        .apns
        .jwts()
        .into_iter()
        .map(|used| used.jwt)
        .collect();
    assert!(jwts.len() as i64 <= 1 + slot() - first_slot);
}

#[tokio::test]
async fn a_push_that_was_delivered_and_then_failed_is_repeated_under_the_same_id() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    world
        .simulators
        .apns
        .script()
        .next(1, apns::service_unavailable().delivered());
    assert_eq!(push(&world, &instance, Platform::Ios).await.word(), "sent");
    let delivered = world.simulators.apns.inbox().all();
    assert_eq!(delivered.len(), 2);
    assert_eq!(
        delivered[0].apns_id, delivered[1].apns_id,
        "so that APNs and the device can tell"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_under_one_idempotency_key_gets_the_first_final_answer_also_in_flight_and_nobody_else_does()
{
    let world = World::start().await;
    let (owner, other) = (world.relay.enroll().await, world.relay.enroll().await);
    let mut body: Value = world.device(Platform::Ios).push(&json!({ "title": "once" }));
    body["idempotencyKey"] = json!("order-1");
    world
        .simulators
        .apns
        .script()
        .next(1, Behaviour::accept().after(Duration::from_millis(100)));
    let answers = join_all((0..5).map(|_| world.relay.push(&owner, &body))).await;
    all_sent(&answers);
    let replayed = answers
        .iter()
        .filter(|answer| answer.headers.contains_key("idempotent-replayed"))
        .count();
    assert_eq!(replayed, 4);
    let ids: HashSet<_> = answers
        .iter()
        .map(|answer| answer.body["messageId"].to_string())
        .collect();
    assert_eq!((ids.len(), world.simulators.apns.inbox().total()), (1, 1));
    all_sent(&[world.relay.push(&other, &body).await]);
    assert_eq!(
        world.simulators.apns.inbox().total(),
        2,
        "another instance's key is another key"
    );
    body["ttlSeconds"] = json!(5);
    let conflict = world.relay.push(&owner, &body).await;
    assert_eq!(
        (conflict.status.as_u16(), conflict.word()),
        (409, "idempotency_conflict")
    );
    body["idempotencyKey"] = json!("order-2");
    world
        .simulators
        .apns
        .script()
        .next(2, apns::internal_server_error());
    assert_eq!(
        world.relay.push(&owner, &body).await.reason(),
        "provider_unavailable"
    );
    all_sent(&[world.relay.push(&owner, &body).await]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_instances_tokens_going_bad_at_once_open_the_fuse_and_a_real_410_still_passes() {
    let world = World::start().await;
    let instances = instances(&world, 8).await;
    for instance in &instances {
        all_sent(&pushes(&world, instance, Platform::Ios, 2).await);
    }
    world.simulators.apns.script().always(apns::bad_device_token());
    let mut answers = Vec::new();
    for instance in &instances {
        answers.extend(pushes(&world, instance, Platform::Ios, 25).await);
    }
    let gone = answers
        .iter()
        .filter(|answer| answer.word() == "invalid_token")
        .count();
    assert!(gone <= 3, "the guard lets three through, the fuse none: {gone}");
    assert_eq!(answers.last().unwrap().reason(), "relay_misconfigured");
    assert_eq!(
        world
            .relay
            .metric("relay_fuse_open", "fuse=\"conditional\"")
            .await,
        1.0
    );
    world.simulators.apns.script().clear();
    world
        .simulators
        .apns
        .script()
        .next(1, apns::unregistered(1_700_000_000_000));
    assert_eq!(
        push(&world, &instances[0], Platform::Ios).await.word(),
        "invalid_token"
    );
    all_sent(&pushes(&world, &instances[1], Platform::Ios, 1).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_instances_invented_tokens_open_no_fuse_for_the_others() {
    let world = World::start().await;
    let instances = instances(&world, 2).await;
    let devices: Vec<_> = (0..200).map(|_| world.device(Platform::Ios)).collect();
    for device in &devices {
        world
            .simulators
            .apns
            .script()
            .device(&device.token)
            .always(apns::bad_device_token());
    }
    for device in &devices {
        let answer = world.relay.push(&instances[0], &device.push(&json!({}))).await;
        assert_ne!(answer.word(), "sent");
    }
    all_sent(&pushes(&world, &instances[1], Platform::Ios, 1).await);
    world.simulators.apns.script().next(1, apns::bad_device_token());
    assert_eq!(
        push(&world, &instances[1], Platform::Ios).await.word(),
        "invalid_token"
    );
    assert_eq!(
        world
            .relay
            .metric("relay_fuse_open", "fuse=\"conditional\"")
            .await,
        0.0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invented_tokens_open_the_fuse_when_several_addresses_have_them_and_not_when_one_has() {
    for (addresses, open) in [
        (["198.51.100.1", "198.51.100.1"], 0.0),
        (["198.51.100.1", "198.51.100.2"], 1.0),
    ] {
        let world = World::start().await;
        let victim = world.relay.enroll_from("203.0.113.1").await;
        all_sent(&pushes(&world, &victim, Platform::Ios, 12).await);
        world.simulators.apns.script().always(apns::bad_device_token());
        for address in addresses {
            let instance = world.relay.enroll_from(address).await;
            pushes(&world, &instance, Platform::Ios, 5).await;
        }
        let fuse = world
            .relay
            .metric("relay_fuse_open", "fuse=\"conditional\"")
            .await;
        assert_eq!(fuse, open, "{addresses:?}");
    }
}

#[tokio::test]
async fn a_wns_token_that_is_refused_once_costs_nothing() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    world.simulators.wns.script().next(1, wns::unauthorized());
    all_sent(&pushes(&world, &instance, Platform::Windows, 1).await);
    assert_eq!(world.simulators.wns.oauth_requests(), 2);
    assert_eq!(world.simulators.wns.inbox().total(), 1);
}
