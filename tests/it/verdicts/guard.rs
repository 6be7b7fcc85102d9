//! The guard around conditional verdicts: what counts as proof, and for whom.

use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{SimulatorOptions, apns::verdict as apns, fcm::verdict as fcm};

use super::{push, requests, script};
use crate::support::{answer::Instance, device::Device, relay::RelayOptions, world::World};

#[tokio::test]
async fn the_fourth_conditional_token_in_a_row_is_unconfirmed_until_the_next_sent() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    assert_eq!(push(&world, &instance, Platform::Ios).await.word(), "sent");
    script(&world, Platform::Ios, apns::bad_device_token(), 4);
    for expected in ["invalid_token", "invalid_token", "invalid_token", "failed"] {
        assert_eq!(push(&world, &instance, Platform::Ios).await.word(), expected);
    }
    assert_eq!(push(&world, &instance, Platform::Macos).await.word(), "sent");
    script(&world, Platform::Ios, apns::bad_device_token(), 1);
    assert_eq!(
        push(&world, &instance, Platform::Ios).await.reason(),
        "unconfirmed_token",
        "another topic proves nothing"
    );
    assert_eq!(push(&world, &instance, Platform::Ios).await.word(), "sent");
    script(&world, Platform::Ios, apns::bad_device_token(), 1);
    assert_eq!(
        push(&world, &instance, Platform::Ios).await.word(),
        "invalid_token"
    );
}

#[tokio::test]
async fn a_token_that_is_called_bad_again_counts_once() {
    let world = World::start().await;
    let (first, second) = (world.relay.enroll().await, world.relay.enroll().await);
    assert_eq!(push(&world, &first, Platform::Android).await.word(), "sent");
    let devices: Vec<_> = (0..4).map(|_| world.device(Platform::Android)).collect();
    world.simulators.fcm.script().always(fcm::bad_token());
    for (device, expected) in [
        (0, "invalid_token"),
        (0, "invalid_token"),
        (1, "invalid_token"),
        (2, "invalid_token"),
        (3, "failed"),
    ] {
        // Two instances, since each is reminded of a token it has just been told of.
        let device = &devices[device];
        let instance = if world.simulators.fcm.requests().total() == 2 {
            &second
        } else {
            &first
        };
        let answer = world.relay.push(instance, &device.push(&json!({}))).await;
        assert_eq!(answer.word(), expected, "{answer:?}");
    }
}

#[tokio::test]
async fn the_two_environments_of_apns_prove_nothing_for_each_other() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    let sandbox = async || {
        let device = Device::new(Platform::Ios, world.simulators.apns_sandbox.new_token());
        let mut body = device.push(&json!({}));
        body["environment"] = json!("sandbox");
        world.relay.push(&instance, &body).await
    };
    assert_eq!(push(&world, &instance, Platform::Ios).await.word(), "sent");
    let script = world.simulators.apns_sandbox.script();
    script.next(1, apns::bad_device_token());
    assert_eq!(sandbox().await.reason(), "unconfirmed_token");
    script.next(1, apns::unregistered(1_700_000_000_000));
    assert_eq!(sandbox().await.reason(), "unregistered", "this needs no proof");
    assert_eq!(sandbox().await.word(), "sent");
    script.next(1, apns::bad_device_token());
    assert_eq!(sandbox().await.reason(), "bad_token");
}

#[tokio::test]
async fn a_token_that_one_environment_of_apns_takes_is_not_gone_because_the_other_does_not_know_it() {
    let strict = SimulatorOptions {
        strict: true,
        ..SimulatorOptions::default()
    };
    let world = World::start_with(strict, RelayOptions::new()).await;
    let (first, second) = (world.relay.enroll().await, world.relay.enroll().await);
    let (production, sandbox) = (&world.simulators.apns, &world.simulators.apns_sandbox);
    let push = async |instance: &Instance, token: &str, environment: &str| {
        let mut body = Device::new(Platform::Ios, token.to_owned()).push(&json!({}));
        body["environment"] = json!(environment);
        world.relay.push(instance, &body).await
    };
    let (released, in_development) = (production.new_token(), sandbox.new_token());
    for (token, environment) in [(&released, "production"), (&in_development, "sandbox")] {
        assert_eq!(push(&first, token, environment).await.word(), "sent");
    }
    for (token, wrong, right) in [
        (&in_development, "production", "sandbox"),
        (&released, "sandbox", "production"),
    ] {
        let answer = push(&second, token, wrong).await;
        assert_eq!((answer.word(), answer.reason()), ("failed", "unconfirmed_token"));
        assert_eq!(push(&second, token, right).await.word(), "sent", "and at once");
    }
    let nobodys = "ab".repeat(32);
    assert_eq!(push(&first, &nobodys, "production").await.reason(), "bad_token");
}

#[tokio::test]
async fn a_malformed_token_reaches_no_provider() {
    let world = World::start().await;
    let instance = world.relay.enroll().await;
    let body = |platform: &str, token: &str| -> Value {
        json!({ "platform": platform, "deviceToken": token, "encryptedPayload": "sealed" })
    };
    for (platform, token) in [
        ("ios", "not hexadecimal"),
        ("macos", "abc"),
        ("android", "two words"),
    ] {
        let answer = world.relay.push(&instance, &body(platform, token)).await;
        assert_eq!(
            (answer.word(), answer.reason()),
            ("invalid_token", "malformed_token"),
            "{platform}"
        );
    }
    let elsewhere = body("windows", "https://evil.example/?token=a");
    let answer = world.relay.push(&instance, &elsewhere).await;
    assert_eq!(
        (answer.word(), answer.reason()),
        ("failed", "unconfirmed_token"),
        "the host rule may be what is wrong"
    );
    assert_eq!(push(&world, &instance, Platform::Windows).await.word(), "sent");
    let answer = world
        .relay
        .push(&instance, &body("windows", "https://evil.example/?token=b"))
        .await;
    assert_eq!(
        (answer.word(), answer.reason()),
        ("invalid_token", "malformed_token")
    );
    let asked =
        [Platform::Ios, Platform::Android, Platform::Windows].map(|platform| requests(&world, platform));
    assert_eq!(asked, [0, 0, 1]);
}
