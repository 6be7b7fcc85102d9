//! Leases, retries, expiry, bounds.

use std::collections::HashSet;

use sovereign_relay_protocol::{
    platform::{Environment, Priority},
    redacted::Redacted,
};
use uuid::Uuid;

use crate::{
    store::{
        Channel, Device, LogEntry, OutboxCounts, OutboxRow, Outcome, Settled, Store, StoreError,
        testing::{Place, new_device, registered, waiting},
    },
    user::User,
};

pub(super) mod contract {
    contract!(
        a_row_is_read_as_it_was_written,
        a_row_is_taken_by_one_until_its_lease_is_over,
        a_row_that_was_written_with_a_lease_is_its_writers,
        a_row_that_is_done_is_gone_and_logged,
        a_row_that_is_retried_waits_until_then,
        who_has_lost_the_lease_cannot_postpone_the_row,
        what_is_older_than_it_may_get_is_dropped_and_logged,
        what_is_being_sent_is_not_dropped,
        a_full_outbox_takes_nothing_of_a_fan_out,
        a_fan_out_is_written_as_a_whole_or_not_at_all,
        an_error_shows_nothing_of_a_row,
        ten_thousand_rows_are_written_claimed_and_settled,
    );
}

async fn device(store: &Store) -> Device {
    registered(store, &new_device(&User::new("ann"), "token"), 50).await
}

async fn a_row_is_read_as_it_was_written(Place { store, .. }: Place) {
    let bare = waiting(&device(&store).await, 100);
    let full = OutboxRow {
        id: Uuid::from_u128(7),
        channel: Channel::Web,
        platform: None,
        relay_url: None,
        priority: Priority::Normal,
        collapse_id: Some(Redacted::new("mail")),
        environment: Some(Environment::Sandbox),
        ..bare.clone()
    };
    store.enqueue(&[bare.clone(), full.clone()]).await.unwrap();
    let taken = |row: OutboxRow| OutboxRow {
        attempts: 1,
        first_attempt_at: Some(120),
        next_attempt_at: 150,
        leased_until: 150,
        ..row
    };
    let claimed = store.claim(120, 30, 10).await.unwrap();
    assert_eq!(claimed.len(), 2);
    for row in [taken(bare), taken(full)] {
        assert!(claimed.contains(&row), "{row:?}");
    }
}

async fn a_row_is_taken_by_one_until_its_lease_is_over(Place { store, .. }: Place) {
    store
        .enqueue(&[waiting(&device(&store).await, 100)])
        .await
        .unwrap();
    assert_eq!(store.claim(99, 30, 10).await.unwrap(), []);
    assert_eq!(store.claim(100, 30, 10).await.unwrap().len(), 1);
    assert_eq!(store.claim(129, 30, 10).await.unwrap(), []);
    let again = store.claim(130, 30, 10).await.unwrap();
    assert_eq!((again[0].attempts, again[0].first_attempt_at), (2, Some(100)));
}

async fn a_row_that_was_written_with_a_lease_is_its_writers(Place { store, .. }: Place) {
    let row = OutboxRow {
        leased_until: 130,
        ..waiting(&device(&store).await, 100)
    };
    store.enqueue(&[row]).await.unwrap();
    assert_eq!(store.claim(129, 30, 10).await.unwrap(), []);
    assert_eq!(store.claim(130, 30, 10).await.unwrap().len(), 1);
}

async fn a_row_that_is_done_is_gone_and_logged(Place { store, .. }: Place) {
    let rows = [
        waiting(&device(&store).await, 100),
        waiting(&device(&store).await, 100),
    ];
    store.enqueue(&rows).await.unwrap();
    let claimed = store.claim(100, 30, 1).await.unwrap();
    let entry = LogEntry::of(&claimed[0], Outcome::Sent, "delivered".into(), 101);
    store
        .settle(
            &[(claimed[0].claim(), Settled::Done)],
            std::slice::from_ref(&entry),
        )
        .await
        .unwrap();
    let left = store.claim(200, 30, 10).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_ne!(left[0].id, claimed[0].id);
    assert_eq!(store.log_of(&User::new("ann"), 9).await.unwrap(), [entry]);
}

async fn a_row_that_is_retried_waits_until_then(Place { store, .. }: Place) {
    store
        .enqueue(&[waiting(&device(&store).await, 100)])
        .await
        .unwrap();
    let claimed = store.claim(100, 30, 10).await.unwrap();
    let retry = (
        claimed[0].claim(),
        Settled::Retry {
            at: 110,
            forgotten: false,
        },
    );
    store.settle(&[retry], &[]).await.unwrap();
    let counts = OutboxCounts {
        rows: 1,
        leased: 0,
        next_at: Some(110),
    };
    assert_eq!(store.outbox_counts(109).await.unwrap(), counts);
    assert_eq!(store.claim(109, 30, 10).await.unwrap(), []);
    assert_eq!(store.claim(110, 30, 10).await.unwrap()[0].attempts, 2);
    assert_eq!(store.outbox_counts(111).await.unwrap().leased, 1);
}

async fn who_has_lost_the_lease_cannot_postpone_the_row(Place { store, .. }: Place) {
    store
        .enqueue(&[waiting(&device(&store).await, 100)])
        .await
        .unwrap();
    let slow = store.claim(100, 30, 10).await.unwrap();
    let next = store.claim(130, 30, 10).await.unwrap();
    let retry = (
        slow[0].claim(),
        Settled::Retry {
            at: 131,
            forgotten: false,
        },
    );
    store.settle(&[retry], &[]).await.unwrap();
    assert_eq!(
        store.claim(159, 30, 10).await.unwrap(),
        [],
        "the second has it still"
    );
    // But what the first one has sent is sent.
    store
        .settle(&[(slow[0].claim(), Settled::Done)], &[])
        .await
        .unwrap();
    let done = (next[0].claim(), Settled::Done);
    store.settle(&[done], &[]).await.unwrap();
    assert_eq!(store.outbox_counts(0).await.unwrap(), OutboxCounts::default());
}

async fn what_is_older_than_it_may_get_is_dropped_and_logged(Place { store, .. }: Place) {
    let row = waiting(&device(&store).await, 100);
    let old = OutboxRow {
        id: Uuid::from_u128(1),
        ttl_until: 200,
        ..row.clone()
    };
    store.enqueue(&[row.clone(), old.clone()]).await.unwrap();
    assert_eq!(store.drop_expired(199, 10).await.unwrap(), []);
    assert_eq!(
        store.claim(200, 10, 10).await.unwrap().len(),
        1,
        "what has expired is not sent"
    );
    assert_eq!(store.drop_expired(200, 0).await.unwrap(), []);
    assert_eq!(
        store.drop_expired(200, 10).await.unwrap(),
        std::slice::from_ref(&old)
    );
    let entry = LogEntry::of(&old, Outcome::Expired, "ttl".into(), 200);
    assert_eq!(entry.relay_host.as_deref(), Some("relay.example"));
    assert_eq!(store.log_of(&row.user, 9).await.unwrap(), [entry]);
}

async fn what_is_being_sent_is_not_dropped(Place { store, .. }: Place) {
    let row = OutboxRow {
        ttl_until: 110,
        ..waiting(&device(&store).await, 100)
    };
    store.enqueue(&[row]).await.unwrap();
    store.claim(109, 30, 10).await.unwrap();
    assert_eq!(store.drop_expired(138, 10).await.unwrap(), []);
    assert_eq!(store.drop_expired(139, 10).await.unwrap().len(), 1);
}

async fn a_full_outbox_takes_nothing_of_a_fan_out(Place { store, .. }: Place) {
    let device = device(&store).await;
    let rows: Vec<_> = (0..3).map(|_| waiting(&device, 100)).collect();
    store.enqueue_up_to(4, &rows).await.unwrap();
    let more = [waiting(&device, 100), waiting(&device, 100)];
    let refused = store.enqueue_up_to(4, &more).await;
    assert!(matches!(refused, Err(StoreError::OutboxFull)));
    assert_eq!(store.outbox_counts(0).await.unwrap().rows, 3);
    store.enqueue_up_to(4, &more[..1]).await.unwrap();
}

async fn a_fan_out_is_written_as_a_whole_or_not_at_all(Place { store, .. }: Place) {
    let device = device(&store).await;
    let mut rows: Vec<_> = (0..1500).map(|_| waiting(&device, 100)).collect();
    rows.push(rows[0].clone());
    let twice = store.enqueue(&rows).await;
    assert!(matches!(twice, Err(StoreError::Database(_))));
    assert_eq!(store.outbox_counts(0).await.unwrap().rows, 0);
}

async fn an_error_shows_nothing_of_a_row(Place { store, .. }: Place) {
    let row = waiting(&device(&store).await, 100);
    store.enqueue(std::slice::from_ref(&row)).await.unwrap();
    let error = store.enqueue(std::slice::from_ref(&row)).await.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(shown.contains("the database failed"));
    for hidden in [row.id.to_string().as_str(), row.address.expose()] {
        assert!(!shown.contains(hidden), "{shown}");
    }
}

async fn ten_thousand_rows_are_written_claimed_and_settled(Place { store, .. }: Place) {
    let device = device(&store).await;
    let rows: Vec<_> = (0..10_000).map(|_| waiting(&device, 100)).collect();
    store.enqueue(&rows).await.unwrap();
    let mut seen = HashSet::new();
    while let Some(batch) = Some(store.claim(100, 60, 2500).await.unwrap()).filter(|batch| !batch.is_empty())
    {
        seen.extend(batch.iter().map(|row| row.id));
        let entry = |row| LogEntry::of(row, Outcome::Sent, "delivered".into(), 101);
        let log: Vec<_> = batch.iter().map(entry).collect();
        let settle = |(number, row): (usize, &OutboxRow)| match number % 2 {
            0 => (row.claim(), Settled::Done),
            _ => (
                row.claim(),
                Settled::Retry {
                    at: 500,
                    forgotten: false,
                },
            ),
        };
        let settled: Vec<_> = batch.iter().enumerate().map(settle).collect();
        store.settle(&settled, &log).await.unwrap();
    }
    assert_eq!(seen.len(), 10_000);
    assert_eq!(store.outbox_counts(400).await.unwrap().rows, 5000);
    assert_eq!(store.log_of(&device.user, 20_000).await.unwrap().len(), 10_000);
}
