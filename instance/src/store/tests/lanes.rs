//! Fan-outs that are written bit by bit, and relays that don't wait for each other.

use uuid::Uuid;

use crate::{
    store::{
        Channel, Device, Lane, OutboxRow, Settled,
        testing::{Place, RELAY, new_device, registered, waiting},
    },
    user::User,
};

pub(super) mod contract {
    contract!(
        what_is_staged_is_taken_when_it_is_published,
        what_was_staged_and_never_published_goes,
        a_lane_gives_its_own_rows_and_those_of_one_notification_if_asked,
        an_attempt_that_nobody_remembers_does_not_count_as_the_first,
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
    assert_eq!(store.drop_staged(100).await.unwrap(), 0);
    assert_eq!(store.drop_staged(101).await.unwrap(), 1);
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
        let taken = store.claim_lane(lane, notification, 100, 30, 9).await.unwrap();
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
