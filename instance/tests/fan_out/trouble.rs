//! Relays that are away, black-holed, suspended or have forgotten this instance.

use std::sync::Arc;

use serde_json::json;
use sovereign_instance::{
    config::{Limits, RelayChoice},
    notification::Notification,
    store::{NewDevice, Outcome, RelayState},
    user::User,
    web_push::service::Behaviour,
};
use sovereign_relay_client::protocol::{platform::Platform, redacted::Redacted};
use sovereign_relay_simulator::fcm;
use tokio::{net::TcpListener, sync::oneshot};

use crate::kit::{DEADLINE, Device, Instance, World, notification, seconds, user};

async fn send(world: &World, notification: &Notification) -> sovereign_instance::fan_out::Report {
    let sent = world.instance.fan_out.send(&user(), notification).await;
    sent.unwrap()
}

#[tokio::test]
async fn what_a_relay_that_is_away_could_not_take_arrives_when_it_is_back() {
    let mut world = World::start().await;
    let device = world.device(Platform::Android).await;
    let browser = world.browser().await;
    send(&world, &notification("first")).await;
    world.simulators.fcm.inbox().clear();
    world.stop_relay().await;
    let report = send(&world, &notification("second")).await;
    assert_eq!(
        (report.sent, report.waiting),
        (1, 1),
        "the browser has its own way"
    );
    assert_eq!(world.push_service.messages(&browser).len(), 2);
    world.ahead.by(60);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().waiting, 1);
    world.start_relay(&[]).await;
    world.ahead.by(60);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().sent, 1);
    assert_eq!(world.opened_by(&device)["body"], "second");
    assert_eq!(world.instance.waiting().await, 0);
    let retries = world.instance.log().await;
    let retries = retries
        .iter()
        .filter(|(outcome, _)| *outcome == Outcome::Retrying);
    assert_eq!(retries.count(), 1, "said once");
}

#[tokio::test]
async fn the_worker_sends_by_itself_and_stops_when_told() {
    let mut world = World::start().await;
    let device = world.device(Platform::Android).await;
    world.stop_relay().await;
    assert_eq!(send(&world, &notification("late")).await.waiting, 1);
    world.start_relay(&[]).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Arc::clone(&world.instance.fan_out).run(async {
        let _ = stopped.await;
    });
    let worker = tokio::spawn(worker);
    let arrived = world.simulators.fcm.inbox().wait_for(1, DEADLINE).await;
    assert_eq!(arrived.unwrap().len(), 1);
    stop.send(()).unwrap();
    worker.await.unwrap();
    assert_eq!(world.opened_by(&device)["body"], "late");
    assert_eq!(world.instance.waiting().await, 0, "what was in flight is settled");
}

#[tokio::test]
async fn what_is_older_than_its_ttl_is_dropped_and_logged() {
    let mut world = World::start().await;
    world.device(Platform::Android).await;
    world.stop_relay().await;
    let short = Notification {
        ttl_seconds: 120,
        ..notification("too late")
    };
    assert_eq!(send(&world, &short).await.waiting, 1);
    let never = Notification {
        ttl_seconds: 0,
        ..notification("now or never")
    };
    assert_eq!(send(&world, &never).await.expired, 1);
    world.start_relay(&[]).await;
    world.ahead.by(121);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().targets(), 0);
    assert!(world.arrived().is_empty());
    let log = world.instance.log().await;
    assert!(log.contains(&(Outcome::Expired, "ttl".to_owned())), "{log:?}");
    assert_eq!(world.instance.waiting().await, 0);
}

#[tokio::test]
async fn a_relay_with_another_secret_is_enrolled_at_anew_and_delivers() {
    let mut world = World::start().await;
    let device = world.device(Platform::Ios).await;
    send(&world, &notification("first")).await;
    let before = world.instance.enrolled_as(&world.relay_url).await;
    world.stop_relay().await;
    let secret = "another secret of at least 32 bytes!";
    world.start_relay(&[("RELAY_ENROLLMENT_SECRET", secret)]).await;
    world.simulators.apns.inbox().clear();
    let report = send(&world, &notification("second")).await;
    assert_eq!(report.sent, 1, "{:?}", world.instance.log().await);
    assert_eq!(world.opened_by(&device)["body"], "second");
    assert_ne!(world.instance.enrolled_as(&world.relay_url).await, before);
}

#[tokio::test]
async fn a_revoked_instance_stops_says_so_and_keeps_what_waits_until_the_admin_decides() {
    let world = World::start().await;
    let device = world.device(Platform::Ios).await;
    send(&world, &notification("first")).await;
    let before = world.instance.enrolled_as(&world.relay_url).await;
    world.relay().operator(&before, "revoke", json!({})).await;
    world.simulators.apns.inbox().clear();
    assert_eq!(send(&world, &notification("second")).await.waiting, 1);
    let status = world.instance.relays.status().await.unwrap().remove(0);
    assert_eq!(status.state, RelayState::Revoked);
    assert!(status.current && status.note.contains("revoked"));
    world.ahead.by(3600);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().waiting, 1);
    assert_eq!(world.instance.waiting().await, 1);
    let still = world.instance.enrolled_as(&world.relay_url).await;
    assert_eq!(still, before, "it did not enroll by itself");
    world.instance.relays.resume(&world.relay_url).await.unwrap();
    world.ahead.by(3600);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().sent, 1);
    assert_eq!(world.opened_by(&device)["body"], "second");
}

#[tokio::test]
async fn a_suspended_instance_asks_nothing_before_the_time_it_was_told() {
    let world = World::start().await;
    let device = world.device(Platform::Ios).await;
    send(&world, &notification("first")).await;
    let instance = world.instance.enrolled_as(&world.relay_url).await;
    let suspension = json!({"reason": "a test", "seconds": 300});
    world.relay().operator(&instance, "suspend", suspension).await;
    world.simulators.apns.inbox().clear();
    assert_eq!(send(&world, &notification("second")).await.waiting, 1);
    // From now on a call would be answered.
    world.relay().operator(&instance, "resume", json!({})).await;
    world.ahead.by(200);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().targets(), 0);
    assert_eq!(send(&world, &notification("third")).await.waiting, 1);
    assert!(world.arrived().is_empty());
    world.ahead.by(200);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().sent, 2);
    assert_eq!(world.simulators.apns.inbox().all().len(), 2);
    drop(device);
}

#[tokio::test]
async fn a_device_s_own_limit_holds_that_device_only() {
    let world = World::start().await;
    let (limited, other) = (
        world.device(Platform::Android).await,
        world.device(Platform::Android).await,
    );
    let wait = sovereign_relay_simulator::RetryAfter::Seconds(100);
    let script = world.simulators.fcm.script();
    script
        .device(&limited.token)
        .next(1, fcm::verdict::device_quota(wait));
    let report = send(&world, &notification("Body")).await;
    assert_eq!((report.sent, report.waiting), (1, 1));
    assert_eq!(world.opened_by(&other)["body"], "Body");
    world.ahead.by(50);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().targets(), 0);
}

#[tokio::test]
async fn a_push_service_that_names_a_time_is_not_asked_before_it() {
    let world = World::start().await;
    let (throttled, other) = (world.browser().await, world.browser().await);
    let busy = Behaviour::RetryAfter(429, "1000".to_owned());
    world.push_service.behave(&throttled, busy);
    let report = send(&world, &notification("Body")).await;
    assert_eq!((report.sent, report.waiting), (1, 1));
    assert_eq!(world.push_service.messages(&other).len(), 1);
    world.push_service.behave(&throttled, Behaviour::Judge);
    world.ahead.by(900);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().targets(), 0);
    assert_eq!(world.push_service.requests(&throttled), 1);
    world.ahead.by(200);
    assert_eq!(world.instance.fan_out.turn().await.unwrap().sent, 1);
    assert_eq!(world.push_service.messages(&throttled).len(), 1);
}

#[tokio::test]
async fn a_message_that_the_relay_refuses_is_final_and_spoils_no_other() {
    let world = World::start().await;
    let other = world.device(Platform::Android).await;
    let mut wrong = Device::new(Platform::Ios, &world.simulators);
    // Longer than anything a relay takes for a message.
    wrong.token = "ab".repeat(10_000);
    let registered = seconds() - 1000;
    world
        .instance
        .register(&wrong, &world.relay_url, registered)
        .await;
    let report = send(&world, &notification("Body")).await;
    assert_eq!((report.sent, report.failed), (1, 1));
    let log = world.instance.log().await;
    assert!(
        log.iter().any(|(outcome, _)| *outcome == Outcome::Failed),
        "{log:?}"
    );
    assert_eq!(world.opened_by(&other)["body"], "Body");
    assert_eq!(world.instance.waiting().await, 0);
}

#[tokio::test]
async fn a_black_holed_relay_holds_up_neither_another_relay_nor_browsers() {
    let world = World::start().await;
    let black_hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dark_url = format!("http://{}", black_hole.local_addr().unwrap());
    let device = world.device(Platform::Ios).await;
    let lost = Device::new(Platform::Ios, &world.simulators);
    world.instance.register(&lost, &dark_url, seconds() - 1000).await;
    let browser = world.browser().await;
    let fan_out = Arc::clone(&world.instance.fan_out);
    let sending = tokio::spawn(async move { fan_out.send(&user(), &notification("Body")).await });
    let _held_open = black_hole.accept().await.unwrap();
    let apns = world.simulators.apns.inbox().wait_for(1, DEADLINE).await;
    assert_eq!(apns.unwrap().len(), 1);
    assert_eq!(world.push_service.wait_for(&browser, 1).await.len(), 1);
    let settled = async {
        while world.instance.waiting().await > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, settled).await.unwrap();
    assert!(!sending.is_finished());
    sending.abort();
    assert_eq!(world.opened_by(&device)["body"], "Body");
    assert_eq!(
        world.instance.waiting().await,
        1,
        "the worker's, when the lease ends"
    );
}

#[tokio::test]
async fn with_the_relay_off_devices_are_left_out_and_browsers_go_on() {
    let world = World::start().await;
    let device = world.device(Platform::Ios).await;
    let browser = world.browser().await;
    let clock = world.ahead.clock();
    let off = Instance::open(&world.database(), RelayChoice::Off, &clock, Limits::default()).await;
    let report = off.fan_out.send(&user(), &notification("Body")).await.unwrap();
    assert_eq!(report.dropped, 1);
    assert!(
        off.log()
            .await
            .contains(&(Outcome::Dropped, "relay_off".to_owned()))
    );
    assert!(world.arrived().is_empty());
    assert_eq!(world.push_service.requests(&browser), 1);
    assert_eq!(off.store.devices_of(&user()).await.unwrap()[0].id, device.id);
}

#[tokio::test]
async fn when_too_much_waits_already_nothing_more_is_put_off() {
    let limits = Limits {
        waiting_rows: 2,
        ..Limits::default()
    };
    let mut world = World::start_with(limits, &[]).await;
    world.device(Platform::Ios).await;
    world.stop_relay().await;
    for _ in 0..2 {
        assert_eq!(send(&world, &notification("waits")).await.waiting, 1);
    }
    assert_eq!(send(&world, &notification("dropped")).await.dropped, 1);
    let log = world.instance.log().await;
    assert!(
        log.contains(&(Outcome::Dropped, "outbox_full".to_owned())),
        "{log:?}"
    );
    assert_eq!(world.instance.waiting().await, 2);
    assert!(world.arrived().is_empty());
}

#[tokio::test]
async fn a_user_whose_devices_take_nothing_leaves_room_for_others() {
    let limits = Limits {
        waiting_rows_per_user: 2,
        ..Limits::default()
    };
    let mut world = World::start_with(limits, &[]).await;
    let device = world.device(Platform::Ios).await;
    world.stop_relay().await;
    for _ in 0..2 {
        assert_eq!(send(&world, &notification("waits")).await.waiting, 1);
    }
    assert_eq!(send(&world, &notification("dropped")).await.dropped, 1);
    let other = User::new("grace");
    let theirs = NewDevice {
        user: other.clone(),
        platform: device.platform,
        token: Redacted::new("00ff"),
        public_key: device.public_key(),
        relay_url: world.relay_url.clone(),
        environment: None,
    };
    let store = &world.instance.store;
    store.register_device(&theirs, 1, seconds()).await.unwrap();
    let fan_out = &world.instance.fan_out;
    let report = fan_out.send(&other, &notification("waits")).await.unwrap();
    assert_eq!((report.waiting, report.dropped), (1, 0));
}
