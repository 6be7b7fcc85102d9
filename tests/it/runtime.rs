//! The deployed runtime works against this relay unchanged: a Node program does exactly its calls.

use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::SimulatorOptions;

use crate::support::{device::Device, relay::RelayOptions, world::World};

const SECRET: &str = "a secret of the earlier relay, 40 bytes.";

async fn report(world: &World, device: &Device) -> serde_json::Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/runtime.mjs");
    let output = tokio::process::Command::new("node")
        .arg(script)
        .env("RELAY_URL", &world.relay.url)
        .env("DEVICE_TOKEN", &device.token)
        .env("DEVICE_PUBLIC_KEY", device.public_key())
        .env("ENROLLMENT_SECRET", SECRET)
        .output()
        .await
        .expect("Node 18 or newer is needed for this test: install it so that `node` is on the PATH");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn the_deployed_runtime_enrolls_seals_and_pushes_and_the_device_opens_it() {
    let options = RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", SECRET);
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let device = world.device(Platform::Ios);
    let report = report(&world, &device).await;
    assert_eq!(report["enrollStatus"], 200);
    assert_eq!(report["push"]["status"], 200, "{report}");
    assert_eq!(report["push"]["body"]["result"], "sent");
    let delivered = world.simulators.apns.inbox().all();
    let payload: serde_json::Value = serde_json::from_str(&delivered[0].payload).unwrap();
    let opened = device.open(payload["encryptedPayload"].as_str().unwrap());
    assert_eq!(
        opened,
        serde_json::json!({ "title": "Hello", "body": "from the runtime" })
    );
}

#[tokio::test]
async fn a_key_made_by_hand_in_the_documented_format_is_accepted_and_every_forgery_is_401() {
    let options = RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", SECRET);
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let report = report(&world, &world.device(Platform::Ios)).await;
    let keys = report["handMade"].as_object().unwrap();
    assert_eq!(keys.len(), 9);
    for (name, answer) in keys {
        if name == "good" {
            assert_eq!(
                (&answer["status"], &answer["body"]["result"]),
                (&200.into(), &"sent".into())
            );
        } else {
            assert_eq!(
                (&answer["status"], &answer["body"]["error"]),
                (&401.into(), &"unauthorized".into()),
                "{name}"
            );
        }
    }
}
