//! The delivery log: what it says, what it never holds, how it is bounded.

use sqlx::Row as _;
use uuid::Uuid;

use crate::{
    store::{
        LogEntry, OutboxRow, Outcome, RETENTION_SECONDS, Reason, Settled,
        testing::{Place, new_device, registered, waiting},
    },
    user::User,
};

pub(super) mod contract {
    contract!(
        each_outcome_is_read_as_it_was_written,
        the_newest_come_first_and_only_the_users_own,
        nothing_of_a_token_a_key_or_content_gets_into_the_log,
        what_is_older_than_thirty_days_goes,
        what_is_more_than_a_user_may_have_goes_the_oldest_first,
    );
}

fn entry(user: &User, at: u64) -> LogEntry {
    LogEntry {
        notification_id: Uuid::from_u128(u128::from(at)),
        user: user.clone(),
        channel: crate::store::Channel::Web,
        target_id: Uuid::nil(),
        platform: None,
        relay_host: None,
        outcome: Outcome::Sent,
        reason: Reason::status(201),
        at,
        attempt: 1,
    }
}

async fn each_outcome_is_read_as_it_was_written(Place { store, .. }: Place) {
    let ann = User::new("ann");
    for (at, outcome) in (1..).zip(Outcome::ALL) {
        let written = LogEntry {
            outcome,
            ..entry(&ann, at)
        };
        store.record(std::slice::from_ref(&written)).await.unwrap();
        assert_eq!(store.log_of(&ann, 1).await.unwrap(), [written]);
    }
}

async fn the_newest_come_first_and_only_the_users_own(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let entries = [entry(&ann, 1), entry(&ben, 2), entry(&ann, 3)];
    store.record(&entries).await.unwrap();
    store.record(&[]).await.unwrap();
    let read: Vec<_> = store
        .log_of(&ann, 9)
        .await
        .unwrap()
        .iter()
        .map(|entry| entry.at)
        .collect();
    assert_eq!(read, [3, 1]);
}

async fn nothing_of_a_token_a_key_or_content_gets_into_the_log(Place { store, .. }: Place) {
    let mut new = new_device(&User::new("ann"), "canary-token");
    new.public_key = "canary-key".to_owned();
    new.relay_url = "https://canary-user:canary-password@relay.example/canary-path?canary-query".to_owned();
    let device = registered(&store, &new, 50).await;
    let row = OutboxRow {
        sealed: sovereign_relay_protocol::redacted::Redacted::new("canary-sealed"),
        collapse_id: Some(sovereign_relay_protocol::redacted::Redacted::new(
            "canary-collapse",
        )),
        ..waiting(&device, 100)
    };
    let expiring = OutboxRow {
        id: Uuid::nil(),
        ttl_until: 100,
        ..row.clone()
    };
    store.enqueue(&[row, expiring]).await.unwrap();
    let claimed = store.claim(100, 10, 10).await.unwrap();
    for outcome in Outcome::ALL {
        let log = [LogEntry::of(&claimed[0], outcome, "unavailable".into(), 101)];
        store
            .settle(&[(claimed[0].claim(), Settled::Done)], &log)
            .await
            .unwrap();
    }
    store.drop_expired(101, 10).await.unwrap();
    let rows = sqlx::query("SELECT * FROM push_delivery_log")
        .fetch_all(&store.pool)
        .await
        .unwrap();
    assert_eq!(rows.len(), Outcome::ALL.len() + 1);
    let texts = rows
        .iter()
        .flat_map(|row| (0..row.len()).filter_map(|column| row.try_get::<String, _>(column).ok()));
    let text = texts.collect::<Vec<_>>().join(" ");
    assert!(text.contains("relay.example") && text.contains("unavailable"));
    assert!(!text.contains("canary"), "{text}");
}

async fn what_is_older_than_thirty_days_goes(Place { store, .. }: Place) {
    let ann = User::new("ann");
    store
        .record(&[entry(&ann, 1000), entry(&ann, 1001)])
        .await
        .unwrap();
    assert_eq!(store.trim_log(1000 + RETENTION_SECONDS).await.unwrap(), 0);
    assert_eq!(store.trim_log(1001 + RETENTION_SECONDS).await.unwrap(), 1);
    assert_eq!(store.log_of(&ann, 9).await.unwrap(), [entry(&ann, 1001)]);
}

async fn what_is_more_than_a_user_may_have_goes_the_oldest_first(Place { store, .. }: Place) {
    let (ann, ben) = (User::new("ann"), User::new("ben"));
    let mut entries: Vec<_> = (1..=5).map(|at| entry(&ann, at)).collect();
    entries.extend((1..=2).map(|at| entry(&ben, at)));
    store.record(&entries).await.unwrap();
    assert_eq!(store.trim_log_to(10, 3).await.unwrap(), 2);
    let left: Vec<_> = store
        .log_of(&ann, 9)
        .await
        .unwrap()
        .iter()
        .map(|entry| entry.at)
        .collect();
    assert_eq!(left, [5, 4, 3]);
    assert_eq!(store.log_of(&ben, 9).await.unwrap().len(), 2);
}
