//! A user with very many devices: more rows than are held in memory at once.

use sovereign_relay_client::protocol::platform::Platform;

use crate::kit::{World, notification, user};

const DEVICES: usize = 1300;

#[tokio::test]
async fn very_many_devices_are_told_each_once_and_what_the_relay_puts_off_comes_later() {
    let world = World::start().await;
    for _ in 0..DEVICES {
        world.device(Platform::Android).await;
    }
    let report = world
        .instance
        .fan_out
        .send(&user(), &notification("Body"))
        .await
        .unwrap();
    assert_eq!(report.targets(), DEVICES);
    assert!(report.sent >= 500, "{report:?}");
    let instance = world.instance.enrolled_as(&world.relay_url).await;
    let limit = serde_json::json!({"perMinute": 1_000_000});
    world.relay().operator(&instance, "limit", limit).await;
    let mut sent = report.sent;
    while sent < DEVICES {
        world.ahead.by(400);
        let turn = world.instance.fan_out.turn().await.unwrap();
        assert!(turn.targets() > 0);
        sent += turn.sent;
    }
    assert_eq!(world.instance.waiting().await, 0);
    let mut tokens: Vec<String> = world.arrived().into_iter().map(|(token, _)| token).collect();
    assert_eq!(tokens.len(), DEVICES);
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), DEVICES, "each once");
}
