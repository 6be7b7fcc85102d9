//! Fan-outs that are written bit by bit, and relays that don't wait for each other.

use uuid::Uuid;

use crate::{
    store::{
        Channel, Device, Lane, NewDevice, OutboxRow, Outcome, Settled,
        testing::{Place, RELAY, new_device, new_subscription, registered, waiting},
    },
    user::User,
};

pub(super) mod contract {
    contract!(
        what_is_staged_is_taken_when_it_is_published,
        what_was_staged_and_never_published_goes,
        a_lane_gives_its_own_rows_and_those_of_one_notification_if_asked,
        an_attempt_that_nobody_remembers_does_not_count_as_the_first,
        what_was_read_before_a_device_had_another_user_is_dropped_when_it_is_taken,
        what_was_read_before_a_device_had_another_user_is_dropped_when_it_is_written,
    );
}

const NOTIFICATION: Uuid = Uuid::from_u128(7);

async fn device(place: &Place) -> Device {
    registered(&place.store, &new_device(&User::new("ann"), "token"), 50).await
}

fn of_notification(device: &Device, notification_id: Uuid) -> OutboxRow {
    OutboxRow {
        notification_id,
        ..waiting(device, 100)
    }
}

async fn what_is_staged_is_taken_when_it_is_published(place: Place) {
    let (device, store) = (device(&place).await, &place.store);
    for _ in 0..2 {
        let mut rows = [of_notification(&device, NOTIFICATION)];
        store.stage(9, &mut rows, 100).await.unwrap();
    }
    assert_eq!(store.claim(200, 30, 9).await.unwrap(), []);
    assert_eq!(store.due_lanes(200).await.unwrap(), []);
    assert_eq!(store.next_due().await.unwrap(), None);
    assert_eq!(store.publish(Uuid::nil(), 150).await.unwrap(), 0);
    assert_eq!(store.publish(NOTIFICATION, 150).await.unwrap(), 2);
    assert_eq!(store.next_due().await.unwrap(), Some(150));
    assert_eq!(
        store.due_lanes(150).await.unwrap(),
        [Lane::Relay(RELAY.to_owned())]
    );
    assert_eq!(store.claim(150, 30, 9).await.unwrap().len(), 2);
    assert_eq!(store.next_due().await.unwrap(), Some(180), "the end of the lease");
}

async fn what_was_staged_and_never_published_goes(place: Place) {
    let (device, store) = (device(&place).await, &place.store);
    store.enqueue(&[waiting(&device, 100)]).await.unwrap();
    let mut rows = [of_notification(&device, NOTIFICATION)];
    store.stage(9, &mut rows, 100).await.unwrap();
    assert_eq!(store.drop_staged(100, 150, 9).await.unwrap(), 0);
    assert_eq!(store.drop_staged(101, 150, 9).await.unwrap(), 1);
    let log = store.log_of(&device.user, 9).await.unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!(
        (log[0].outcome, log[0].reason.as_str()),
        (Outcome::Dropped, "not_finished")
    );
    assert_eq!(store.publish(NOTIFICATION, 150).await.unwrap(), 0);
    assert_eq!(store.outbox_counts(150).await.unwrap().rows, 1);
}

async fn a_lane_gives_its_own_rows_and_those_of_one_notification_if_asked(place: Place) {
    let (device, store) = (device(&place).await, &place.store);
    let elsewhere = OutboxRow {
        relay_url: Some("https://another.example".to_owned()),
        ..waiting(&device, 100)
    };
    let web = OutboxRow {
        channel: Channel::Web,
        platform: None,
        relay_url: None,
        ..waiting(&device, 100)
    };
    let rows = [
        elsewhere,
        web,
        waiting(&device, 100),
        of_notification(&device, NOTIFICATION),
    ];
    store.enqueue(&rows).await.unwrap();
    let here = Lane::Relay(RELAY.to_owned());
    let mut lanes = store.due_lanes(100).await.unwrap();
    lanes.sort();
    assert_eq!(
        lanes,
        [
            Lane::Relay("https://another.example".to_owned()),
            here.clone(),
            Lane::Web
        ]
    );
    for (lane, notification, row) in [
        (&here, Some(NOTIFICATION), &rows[3]),
        (&here, None, &rows[2]),
        (&Lane::Web, None, &rows[1]),
        (&lanes[0], None, &rows[0]),
    ] {
        let taken = store
            .claim_lane(lane, notification, 100, 30, 9)
            .await
            .unwrap()
            .rows;
        assert_eq!(taken.iter().map(|row| row.id).collect::<Vec<_>>(), [row.id]);
        assert_eq!(taken[0].lane(), *lane);
    }
    assert_eq!(store.due_lanes(100).await.unwrap(), []);
}

async fn an_attempt_that_nobody_remembers_does_not_count_as_the_first(place: Place) {
    let (device, store) = (device(&place).await, &place.store);
    store.enqueue(&[waiting(&device, 100)]).await.unwrap();
    for (at, forgotten, first) in [(100, true, 100), (110, false, 110), (120, false, 110)] {
        let row = store.claim(at, 5, 9).await.unwrap().remove(0);
        assert_eq!(row.first_attempt_at, Some(first));
        let retry = Settled::Retry {
            at: at + 10,
            forgotten,
        };
        store.settle(&[(row.claim(), retry)], &[]).await.unwrap();
    }
}

/// Rows of a fan-out that read `before` and is late to write them: one for each way in which a device may be registered
/// anew meanwhile, and one for each that is still to be told.
async fn late_rows(place: &Place) -> (Vec<OutboxRow>, [Uuid; 2]) {
    let store = &place.store;
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let mut rows = Vec::new();
    for token in [
        "moved",
        "with another key",
        "signed out",
        "registered again",
        "left alone",
    ] {
        let device = registered(store, &new_device(&ann, token), 50).await;
        rows.push(of_notification(&device, NOTIFICATION));
    }
    let subscription = new_subscription(&ann, "https://push.example/1");
    store.subscribe(&subscription, 9, 50).await.unwrap();
    let browser = store.subscriptions_of(&ann).await.unwrap().remove(0);
    rows.push(OutboxRow {
        channel: Channel::Web,
        platform: None,
        relay_url: None,
        target_id: browser.id,
        target_public_key: browser.p256dh,
        ..rows[0].clone()
    });
    rows[5].id = Uuid::from_u128(5);
    let other_key = NewDevice {
        public_key: "another key".to_owned(),
        ..new_device(&ann, "with another key")
    };
    let moved = new_device(&ben, "moved");
    for device in [&moved, &other_key, &new_device(&ann, "registered again")] {
        registered(store, device, 90).await;
    }
    assert!(store.remove_device(&ann, rows[2].target_id).await.unwrap());
    let other = new_subscription(&ben, "https://push.example/1");
    store.subscribe(&other, 9, 90).await.unwrap();
    let meant = [rows[3].id, rows[4].id];
    (rows, meant)
}

async fn only_those_who_are_meant_are_told(place: &Place, told: Vec<Uuid>, meant: [Uuid; 2]) {
    let sorted = |mut ids: Vec<Uuid>| {
        ids.sort_unstable();
        ids
    };
    assert_eq!(sorted(told), sorted(meant.to_vec()));
    assert_eq!(place.store.outbox_counts(100).await.unwrap().rows, 2);
    let log = place.store.log_of(&User::new("ann"), 9).await.unwrap();
    assert_eq!(log.len(), 4);
    assert!(log.iter().all(|entry| entry.outcome == Outcome::Dropped));
    assert!(place.store.log_of(&User::new("ben"), 9).await.unwrap().is_empty());
}

async fn what_was_read_before_a_device_had_another_user_is_dropped_when_it_is_taken(place: Place) {
    let (mut rows, meant) = late_rows(&place).await;
    place.store.stage(9, &mut rows, 100).await.unwrap();
    assert_eq!(place.store.publish(NOTIFICATION, 100).await.unwrap(), 6);
    let (mut told, mut moved) = (Vec::new(), 0);
    for lane in [Lane::Relay(RELAY.to_owned()), Lane::Web] {
        let taken = place
            .store
            .claim_lane(&lane, Some(NOTIFICATION), 100, 30, 9)
            .await
            .unwrap();
        told.extend(taken.rows.iter().map(|row| row.id));
        moved += taken.moved;
    }
    assert_eq!(moved, 4);
    only_those_who_are_meant_are_told(&place, told, meant).await;
}

async fn what_was_read_before_a_device_had_another_user_is_dropped_when_it_is_written(place: Place) {
    let (rows, meant) = late_rows(&place).await;
    let moved = place.store.enqueue_held(9, &rows, 100).await.unwrap();
    assert_eq!(moved.len(), 4);
    let told = rows.iter().map(|row| row.id).filter(|id| !moved.contains(id));
    only_those_who_are_meant_are_told(&place, told.collect(), meant).await;
}
