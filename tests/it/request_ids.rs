//! A caller's `x-request-id` in the log: beside what its pushes met, wherever in the relay that is written, and beside
//! nothing that is everybody's.

use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{Behaviour, Pace, Script, SimulatorOptions, apns::verdict as apns};

use crate::support::{
    relay::{Answer, Instance, Relay, RelayOptions},
    world::World,
};

const PLATFORMS: [Platform; 3] = [Platform::Ios, Platform::Android, Platform::Windows];
/// More failures than a breaker bears.
const MANY: usize = 40;

/// Pushes to a fresh device; the request's id is the caller's.
async fn push(world: &World, instance: &Instance, platform: Platform, id: &str) -> Answer {
    let body = json!({
        "platform": platform, "deviceToken": world.address(platform), "encryptedPayload": "sealed"
    });
    let request = world.relay.push_request(instance, &body);
    Answer::from(request.header("x-request-id", id)).await
}

fn script(world: &World, platform: Platform) -> &Script {
    match platform {
        Platform::Ios | Platform::Macos => world.simulators.apns.script(),
        Platform::Android => world.simulators.fcm.script(),
        Platform::Windows => world.simulators.wns.script(),
    }
}

async fn line(relay: &mut Relay, message: &str) -> Value {
    serde_json::from_str(&relay.logged(message).await).unwrap()
}

#[tokio::test]
async fn an_answer_that_can_not_be_read_is_told_with_the_id_of_the_request_it_was_for() {
    let mut world = World::start().await;
    let instance = world.relay.enroll().await;
    for platform in PLATFORMS {
        let cut = Behaviour::status(403)
            .body("x".repeat(100))
            .paced(Pace::CutAfter { bytes: 5 });
        script(&world, platform).next(1, cut);
        let id = format!("unreadable-{platform:?}");
        let answer = push(&world, &instance, platform, &id).await;
        assert_eq!(answer.reason(), "provider_unavailable", "{answer:?}");
        let line = line(
            &mut world.relay,
            "the body of the provider's answer could not be read",
        )
        .await;
        assert_eq!(line["span"]["request_id"], *id, "{line}");
    }
}

#[tokio::test]
async fn a_message_of_a_batch_is_told_of_with_the_id_of_the_batch() {
    let mut world = World::start().await;
    let instance = world.relay.enroll().await;
    script(&world, Platform::Ios).next(1, apns::refused(403, "InvalidProviderToken"));
    let message = json!({
        "platform": "ios", "deviceToken": world.address(Platform::Ios), "encryptedPayload": "sealed",
        "idempotencyKey": "once"
    });
    let request = world.relay.batch_request(&instance, &[message]);
    let answer = Answer::from(request.header("x-request-id", "batch-1")).await;
    assert_eq!(
        answer.body["results"][0]["reason"], "relay_misconfigured",
        "{answer:?}"
    );
    let line = line(&mut world.relay, "the provider refuses the relay").await;
    assert_eq!(line["span"]["request_id"], "batch-1", "{line}");
}

#[tokio::test]
async fn a_log_of_errors_alone_has_the_id_too() {
    let options = RelayOptions::new().set("RELAY_LOG", "sovereign_relay::app=info,error");
    let mut world = World::start_with(SimulatorOptions::default(), options).await;
    let instance = world.relay.enroll().await;
    script(&world, Platform::Ios).next(1, apns::refused(403, "InvalidProviderToken"));
    push(&world, &instance, Platform::Ios, "quiet-1").await;
    let line = line(&mut world.relay, "the provider refuses the relay").await;
    assert_eq!(line["span"]["request_id"], "quiet-1", "{line}");
    assert!(!world.relay.log().contains("request answered"));
}

/// Whoever's push brings it about: the breaker opens, a token is fetched or refused, a connection is opened or lost.
#[tokio::test]
async fn what_is_everybodys_is_told_with_nobodys_id() {
    let options = RelayOptions::new().set("RELAY_PUSH_DEADLINE", "2s");
    let mut world = World::start_with(SimulatorOptions::default(), options).await;
    let instance = world.relay.enroll().await;
    world
        .simulators
        .fcm
        .oauth_script()
        .next(1, Behaviour::status(503));
    push(&world, &instance, Platform::Android, "caller-1").await;
    is_nobodys(&mut world.relay, "token endpoint gives no token").await;
    script(&world, Platform::Windows).next(1, Behaviour::status(401));
    push(&world, &instance, Platform::Windows, "caller-2").await;
    is_nobodys(&mut world.relay, "access token refused before its time").await;
    push(&world, &instance, Platform::Ios, "caller-3").await;
    world.simulators.apns.kill_connections();
    is_nobodys(&mut world.relay, "provider connection ended").await;
    world.simulators.apns.refuse_connections(true).await.unwrap();
    push(&world, &instance, Platform::Ios, "caller-4").await;
    is_nobodys(&mut world.relay, "connecting to the provider failed").await;
    script(&world, Platform::Windows).always(Behaviour::status(500));
    for number in 0..MANY {
        push(&world, &instance, Platform::Windows, &format!("breaks-{number}")).await;
    }
    is_nobodys(&mut world.relay, "provider is failing").await;
}

async fn is_nobodys(relay: &mut Relay, message: &str) {
    let line = line(relay, message).await;
    assert!(!line.to_string().contains("request_id"), "{line}");
}
