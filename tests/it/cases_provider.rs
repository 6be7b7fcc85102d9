//! Providers in trouble, with many callers: each a fault that gateways of this kind have had in the field. What one
//! or a few callers show is in `provider_trouble`; here the mechanism behind it is looked at, and it is under load.
//!
//! Callers are grown instances (`support/grown.rs`) and devices get a fresh address each, so that no limit but the
//! one under test answers.

mod outages;
mod streams;
mod tokens;
mod useless;

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::SimulatorOptions;

use crate::support::{
    relay::{Answer, Instance, RelayOptions},
    world::World,
};

/// A relay that takes grown instances' keys, and gives each push this long.
async fn world(push_deadline: &str) -> World {
    World::start_with(SimulatorOptions::default(), options(push_deadline)).await
}

fn options(push_deadline: &str) -> RelayOptions {
    RelayOptions::new()
        .set("RELAY_PUSH_DEADLINE", push_deadline)
        .set("RELAY_DRAIN_GRACE", "0s")
        .with_grown_instances()
}

/// A push whose payload nobody opens, to a fresh device.
fn push(world: &World, platform: Platform) -> Value {
    json!({
        "platform": platform.as_str(),
        "deviceToken": world.address(platform),
        "encryptedPayload": "sealed",
    })
}

fn pushes(world: &World, platform: Platform, count: usize) -> Vec<Value> {
    (0..count).map(|_| push(world, platform)).collect()
}

/// Sends all pushes, in turn from each instance, so many at a time; the answers in the same order.
async fn send_all(world: &World, instances: &[Instance], bodies: &[Value], at_a_time: usize) -> Vec<Answer> {
    let senders = instances.iter().cycle();
    let sending = senders
        .zip(bodies)
        .map(|(instance, body)| world.relay.push(instance, body));
    stream::iter(sending).buffered(at_a_time).collect().await
}

fn assert_all_sent(answers: &[Answer]) {
    for answer in answers {
        assert_eq!(answer.word(), "sent", "{answer:?}");
    }
}
