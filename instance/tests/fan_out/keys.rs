//! Keys at relays: one for all processes, rotated without a gap.

use futures_util::future::join_all;
use sovereign_instance::{config::Limits, store::RelayState};
use sovereign_relay_client::protocol::platform::Platform;

use crate::kit::{Device, Instance, World, notification, seconds, user};
use crate::lossy::Lossy;

#[tokio::test]
async fn processes_that_enroll_at_once_keep_one_key() {
    let world = World::start().await;
    let choice = || world.relay_url.parse().unwrap();
    let clock = world.ahead.clock();
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(Instance::open(&world.database(), choice(), &clock, Limits::default()).await);
    }
    world.device(Platform::Android).await;
    let (to, what) = (user(), notification("Body"));
    let sends = processes.iter().map(|process| process.fan_out.send(&to, &what));
    let reports = join_all(sends).await;
    let first: Vec<_> = reports.into_iter().map(Result::unwrap).collect();
    assert!(first.iter().any(|report| report.sent == 1));
    assert!(
        first.iter().all(|report| report.sent + report.waiting == 1),
        "{first:?}"
    );
    let enrolled = world.instance.enrolled_as(&world.relay_url).await;
    world.ahead.by(60);
    world.instance.fan_out.turn().await.unwrap();
    assert_eq!(world.simulators.fcm.inbox().total(), 4);
    assert_eq!(world.instance.enrolled_as(&world.relay_url).await, enrolled);
}

#[tokio::test]
async fn a_rotated_key_is_used_at_once_and_the_old_one_forgotten_when_it_worked() {
    let world = World::start().await;
    world.device(Platform::Android).await;
    let send = async || {
        let sent = world.instance.fan_out.send(&user(), &notification("Body")).await;
        sent.unwrap().sent
    };
    assert_eq!(send().await, 1);
    let row = async || {
        world
            .instance
            .store
            .relay(&world.relay_url)
            .await
            .unwrap()
            .unwrap()
    };
    let before = row().await;
    world.instance.relays.rotate(&world.relay_url).await.unwrap();
    let rotated = row().await;
    assert_ne!(rotated.instance_key, before.instance_key);
    assert_eq!(rotated.previous_key, before.instance_key);
    assert_eq!(rotated.instance_id, before.instance_id);
    assert_eq!(send().await, 1);
    let after = row().await;
    assert_eq!(
        (after.instance_key, after.previous_key),
        (rotated.instance_key, None)
    );
}

#[tokio::test]
async fn a_rotation_whose_answer_is_lost_is_asked_for_again() {
    let world = World::start().await;
    let way = Lossy::start(world.relay().address, "POST /v1/keys/rotate").await;
    let device = Device::new(Platform::Android, &world.simulators);
    world.instance.register(&device, &way.url, seconds() - 1000).await;
    let send = async || {
        let sent = world.instance.fan_out.send(&user(), &notification("Body")).await;
        sent.unwrap().sent
    };
    assert_eq!(send().await, 1);
    let row = async || world.instance.store.relay(&way.url).await.unwrap().unwrap();
    let before = row().await;
    world.instance.relays.rotate(&way.url).await.unwrap();
    assert_eq!(way.asked(), 2);
    assert_eq!(row().await.previous_key, before.instance_key);
    assert_eq!(send().await, 1);
}

#[tokio::test]
async fn a_new_key_that_does_not_work_gives_way_to_the_old_one() {
    let world = World::start().await;
    world.device(Platform::Android).await;
    let to = user();
    let send = async || {
        let sent = world.instance.fan_out.send(&to, &notification("Body")).await;
        sent.unwrap().sent
    };
    assert_eq!(send().await, 1);
    let mut row = world
        .instance
        .store
        .relay(&world.relay_url)
        .await
        .unwrap()
        .unwrap();
    let good = row.instance_key.clone();
    row.previous_key = good.clone();
    row.instance_key = Some(sovereign_relay_client::protocol::redacted::Redacted::new(
        "spoilt",
    ));
    world.instance.store.put_relay(&row).await.unwrap();
    assert_eq!(send().await, 1);
    let after = world
        .instance
        .store
        .relay(&world.relay_url)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((after.instance_key, after.previous_key), (good, None));
}

#[tokio::test]
async fn a_relay_that_takes_no_new_instances_is_asked_once_and_then_later() {
    let world = World::start_with(Limits::default(), &[("RELAY_ENROLLMENT", "closed")]).await;
    world.device(Platform::Android).await;
    let send = async || {
        let sent = world.instance.fan_out.send(&user(), &notification("Body")).await;
        sent.unwrap()
    };
    assert_eq!(send().await.waiting, 1);
    let status = world.instance.relays.status().await.unwrap().remove(0);
    assert_eq!(status.state, RelayState::Unenrolled);
    assert_eq!(status.note, "the relay takes no new instances");
    let row = world
        .instance
        .store
        .relay(&world.relay_url)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(row.attempts, 1);
    for _ in 0..10 {
        world.ahead.by(3600);
        world.instance.fan_out.turn().await.unwrap();
    }
    let row = world
        .instance
        .store
        .relay(&world.relay_url)
        .await
        .unwrap()
        .unwrap();
    assert!((2..=11).contains(&row.attempts), "{}", row.attempts);
    assert_eq!(world.instance.waiting().await, 1);
}
