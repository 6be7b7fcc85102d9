//! What is delivered, to whom, and which registrations go.

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::{Value, json};
use sovereign_instance::{
    config::Limits,
    fan_out::{Browsers, FanOut, FanOutError, Posted},
    notification::Notification,
    store::{NewDevice, OutboxRow, Outcome, Store, Subscription},
};
use sovereign_relay_client::protocol::{
    platform::{Environment, Platform},
    redacted::Redacted,
    time::UnixMillis,
};
use sovereign_relay_simulator::apns;

use crate::kit::{Device, World, notification, seconds, until, user};

#[tokio::test]
async fn four_platforms_and_a_browser_get_it_and_open_it() {
    let world = World::start().await;
    let mut devices = Vec::new();
    for platform in Platform::ALL {
        devices.push(world.device(platform).await);
    }
    let browser = world.browser().await;
    let notification = Notification {
        url: Some("/inbox".to_owned()),
        tag: Some("inbox".to_owned()),
        ..notification("Body")
    };
    let report = world.instance.fan_out.send(&user(), &notification).await.unwrap();
    assert_eq!(
        (report.sent, report.targets()),
        (5, 5),
        "{:?}",
        world.instance.log().await
    );
    let expected = json!({"title": "Title", "body": "Body", "url": "/inbox", "tag": "inbox"});
    for device in &devices {
        assert_eq!(world.opened_by(device), expected, "{:?}", device.platform);
    }
    let stored = world.push_service.messages(&browser);
    let opened: Value = serde_json::from_str(&browser.open(&stored[0]).unwrap()).unwrap();
    assert_eq!((stored.len(), opened), (1, expected));
    assert_eq!(world.instance.waiting().await, 0);
    let log = world.instance.log().await;
    assert!(log.iter().all(|(outcome, _)| *outcome == Outcome::Sent) && log.len() == 5);
    for device in world.instance.store.devices_of(&user()).await.unwrap() {
        assert!(device.last_used_at.is_some());
    }
    let browsers = world.instance.store.subscriptions_of(&user()).await.unwrap();
    assert!(browsers[0].last_used_at.is_some());
}

#[tokio::test]
async fn dead_ones_are_pruned_and_the_others_delivered() {
    let world = World::start().await;
    let (dead, alive) = (
        world.device(Platform::Ios).await,
        world.device(Platform::Android).await,
    );
    let (dead_browser, browser) = (world.browser().await, world.browser().await);
    let gone = apns::verdict::unregistered(i64::try_from(seconds() * 1000).unwrap());
    world.simulators.apns.script().device(&dead.token).always(gone);
    world.push_service.unsubscribe(&dead_browser);
    let report = world
        .instance
        .fan_out
        .send(&user(), &notification("Body"))
        .await
        .unwrap();
    assert_eq!(
        (report.sent, report.pruned),
        (2, 2),
        "{:?}",
        world.instance.log().await
    );
    let devices = world.instance.store.devices_of(&user()).await.unwrap();
    assert_eq!(
        devices.iter().map(|device| device.id).collect::<Vec<_>>(),
        [alive.id]
    );
    let browsers = world.instance.store.subscriptions_of(&user()).await.unwrap();
    assert_eq!(browsers.len(), 1);
    assert_eq!(browsers[0].endpoint.expose(), browser.endpoint());
    assert_eq!(world.opened_by(&alive)["body"], "Body");
}

/// Push services that call everything gone, just after its user has signed out.
struct SignedOutMeanwhile(Store);

impl Browsers for SignedOutMeanwhile {
    fn seal(&self, _: &Subscription, json: &str) -> Result<Vec<u8>, &'static str> {
        Ok(json.into())
    }

    fn post<'a>(&'a self, row: &'a OutboxRow, _: Vec<u8>, _: u32, _: UnixMillis) -> BoxFuture<'a, Posted> {
        async {
            self.0.unsubscribe_all(&row.user).await.unwrap();
            Posted::Gone { reason: "gone" }
        }
        .boxed()
    }
}

#[tokio::test]
async fn one_that_is_gone_and_was_removed_meanwhile_is_not_called_registered_again() {
    let world = World::start().await;
    world.browser().await;
    let store = world.instance.store.clone();
    let browsers = Arc::new(SignedOutMeanwhile(store.clone()));
    let fan_out = FanOut::new(store, world.instance.relays.clone(), browsers, Limits::default());
    let report = fan_out.send(&user(), &notification("Body")).await.unwrap();
    assert_eq!((report.pruned, report.targets()), (1, 1));
    let gone = (Outcome::Gone, "gone".to_owned());
    assert_eq!(world.instance.log().await, [gone]);
}

#[tokio::test]
async fn an_apple_device_gets_it_in_the_environment_that_its_app_has_named() {
    let world = World::start().await;
    let mut device = Device::new(Platform::Ios, &world.simulators);
    device.token = world.simulators.apns_sandbox.new_token();
    let new = NewDevice {
        user: user(),
        platform: device.platform,
        token: Redacted::new(device.token.clone()),
        public_key: device.public_key(),
        relay_url: world.relay_url.clone(),
        environment: Some(Environment::Sandbox),
    };
    let store = &world.instance.store;
    store.register_device(&new, 1, seconds() - 1000).await.unwrap();
    let sent = world.instance.fan_out.send(&user(), &notification("Body")).await;
    assert_eq!(sent.unwrap().sent, 1, "{:?}", world.instance.log().await);
    assert_eq!(world.simulators.apns.inbox().total(), 0);
    assert_eq!(world.simulators.apns_sandbox.inbox().total(), 1);
}

#[tokio::test]
async fn a_device_registered_in_the_very_second_that_its_token_went_is_kept() {
    let world = World::start().await;
    let device = world.device(Platform::Ios).await;
    let registered = world.instance.store.devices_of(&user()).await.unwrap()[0].created_at;
    let at = |millis: u64| apns::verdict::unregistered(i64::try_from(millis).unwrap());
    let script = world.simulators.apns.script().device(&device.token);
    script.always(at(registered * 1000 + 999));
    let send = async || {
        let sent = world.instance.fan_out.send(&user(), &notification("Body")).await;
        sent.unwrap()
    };
    assert_eq!(send().await.kept, 1);
    assert_eq!(world.instance.store.devices_of(&user()).await.unwrap().len(), 1);
    let log = world.instance.log().await;
    assert_eq!(log, [(Outcome::Kept, "registered_again".to_owned())]);
}

#[tokio::test]
async fn a_device_that_registers_again_while_a_push_is_in_flight_is_kept() {
    let world = World::start().await;
    let device = world.device(Platform::Ios).await;
    let script = world.simulators.apns.script();
    let gone = apns::verdict::unregistered(i64::try_from(seconds() * 1000).unwrap());
    script.device(&device.token).always(gone);
    script.hold(true);
    let fan_out = Arc::clone(&world.instance.fan_out);
    let sending = tokio::spawn(async move { fan_out.send(&user(), &notification("Body")).await });
    until("the push is in flight", || {
        world.simulators.apns.requests_under_way() == 1
    })
    .await;
    let renewed = device.with_another_key();
    world
        .instance
        .register(&renewed, &world.relay_url, seconds() - 500)
        .await;
    script.hold(false);
    let report = sending.await.unwrap().unwrap();
    assert_eq!((report.kept, report.pruned), (1, 0));
    let devices = world.instance.store.devices_of(&user()).await.unwrap();
    assert_eq!(devices[0].public_key, renewed.public_key());
    assert_eq!(world.instance.waiting().await, 0);
}

#[tokio::test]
async fn a_notification_that_nobody_could_carry_is_refused_before_anything_is_sent() {
    let world = World::start().await;
    world.device(Platform::Ios).await;
    let refused = world
        .instance
        .fan_out
        .send(&user(), &notification(&"x".repeat(3000)))
        .await;
    assert!(matches!(refused, Err(FanOutError::Invalid(_))));
    assert!(world.arrived().is_empty() && world.instance.log().await.is_empty());
}

#[tokio::test]
async fn who_has_no_device_is_told_nothing_and_no_relay_is_asked() {
    let world = World::start().await;
    let report = world
        .instance
        .fan_out
        .send(&user(), &notification("Body"))
        .await
        .unwrap();
    assert_eq!(report.targets(), 0);
    assert!(world.instance.relays.status().await.unwrap().is_empty());
}
