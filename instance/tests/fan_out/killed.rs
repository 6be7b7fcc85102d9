//! `kill -9` between the outbox and the outcome: nothing is lost, and nothing comes twice.
//!
//! The test starts itself as a child ([`CHILD`] in the environment says so), which sends; the child is killed while the
//! simulators hold its pushes, and another process goes on with the same database.

use std::{
    env,
    process::{Command, Stdio},
};

use sovereign_instance::config::Limits;
use sovereign_relay_client::protocol::platform::Platform;

use crate::kit::{Ahead, Instance, World, notification, until, user};

const TEST: &str = "killed::what_a_killed_process_was_sending_arrives_once";
const CHILD: &str = "SOVEREIGN_INSTANCE_FAN_OUT_CHILD";
const DEVICES: usize = 8;

#[tokio::test]
async fn what_a_killed_process_was_sending_arrives_once() {
    if let Ok(place) = env::var(CHILD) {
        return send_and_be_killed(&place).await;
    }
    let world = World::start().await;
    let mut devices = Vec::new();
    for number in 0..DEVICES {
        devices.push(world.device(Platform::ALL[number % 4]).await);
    }
    let hold = |held| {
        world.simulators.apns.script().hold(held);
        world.simulators.fcm.script().hold(held);
        world.simulators.wns.script().hold(held);
    };
    hold(true);
    let place = format!("{} {}", world.database(), world.relay_url);
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
        .env(CHILD, place)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the child's pushes are at the providers", || {
        let simulators = &world.simulators;
        let under_way = simulators.apns.requests_under_way()
            + simulators.fcm.requests_under_way()
            + simulators.wns.requests_under_way();
        // APNs lets one through until it has answered.
        under_way >= 3
    })
    .await;
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    assert_eq!(world.instance.waiting().await, DEVICES as u64);
    assert_eq!(
        world.instance.fan_out.turn().await.unwrap().targets(),
        0,
        "the dead process's lease holds"
    );
    hold(false);
    world.ahead.by(301);
    let mut sent = 0;
    while sent < DEVICES {
        let turn = world.instance.fan_out.turn().await.unwrap();
        assert_eq!(turn.failed, 0);
        sent += turn.sent;
        world.ahead.by(20);
    }
    for device in &devices {
        assert_eq!(world.opened_by(device)["body"], "Body");
    }
    assert_eq!(world.arrived().len(), DEVICES);
    assert_eq!(world.instance.waiting().await, 0);
}

async fn send_and_be_killed(place: &str) {
    let (database, relay_url) = place.split_once(' ').unwrap();
    let clock = Ahead::default().clock();
    let choice = relay_url.parse().unwrap();
    let instance = Instance::open(database, choice, &clock, Limits::default()).await;
    instance
        .fan_out
        .send(&user(), &notification("Body"))
        .await
        .unwrap();
}
