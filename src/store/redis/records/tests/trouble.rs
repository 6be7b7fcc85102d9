//! A Redis that is full, and one that a newer relay has written into.

use super::{super::revocations::encode, *};

#[tokio::test]
async fn a_server_whose_memory_is_full_is_a_fault_and_still_takes_revocations() {
    let (store, (server, _wired)) = open().await;
    let position = store.position().await.unwrap();
    store.beat("one").await.unwrap();
    assert!(store.fault().is_none());
    server.answer(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(store.beat("one").await.is_err());
    assert!(store.fault().unwrap().0.contains("OOM"));
    assert!(store.enroll(enrollment(1)).await.is_err());
    let entry = (instance(1), gone(1));
    store.join_revocations(vec![entry.clone()], true).await.unwrap();
    let (_, changes) = seen(store.changes_since(&position).await.unwrap());
    assert_eq!(changes.first(), Some(&Change::Revoked(entry.0, entry.1)));
    server.answer(&["CONFIG", "SET", "maxmemory", "0"]);
    store.beat("one").await.unwrap();
    assert!(store.fault().is_none());
}

#[tokio::test]
async fn a_server_whose_memory_is_full_enrolls_nobody_and_leaves_the_invite_as_it_was() {
    let (store, (server, _wired)) = open().await;
    let invite = Invite {
        hash: crate::store::InviteHash([1; 32]),
        created_at: NOW,
        expires_at: UnixMillis(NOW.0 + 60_000),
    };
    assert!(store.add_invite(invite).await.unwrap());
    let invited = || NewEnrollment {
        invite: Some(invite.hash),
        ..enrollment(1)
    };
    server.answer(&["CONFIG", "SET", "maxmemory", "1"]);
    assert!(store.enroll(invited()).await.is_err());
    assert_eq!(store.invites(NOW).await.unwrap(), [invite]);
    assert!(store.record(instance(1)).await.unwrap().is_none());
    server.answer(&["CONFIG", "SET", "maxmemory", "0"]);
    let enrolled = store.enroll(invited()).await.unwrap();
    assert!(matches!(enrolled, Enrolled::Made { .. }));
    assert_eq!(store.enroll(invited()).await.unwrap(), Enrolled::InviteRefused);
}

#[tokio::test]
async fn an_entry_that_only_a_newer_relay_can_read_stops_nothing_but_the_keys_of_its_instance() {
    let (store, (server, _wired)) = open().await;
    let position = store.position().await.unwrap();
    let newer = r#"{"kids":[],"asleep":{"since":1}}"#;
    let (list, log) = (store.keys.revocations(), store.keys.changes());
    let id = instance(1).to_string();
    server.answer(&["HSET", &list, &id, newer]);
    server.answer(&["XADD", &log, "*", "r", &id, "e", newer]);
    let known = (instance(2), gone(1));
    store.join_revocations(vec![known.clone()], false).await.unwrap();
    let (_, changes) = seen(store.changes_since(&position).await.unwrap());
    assert_eq!(changes, [Change::Revoked(known.0, known.1.clone())]);
    assert!(store.is_unreadable(instance(1)) && !store.is_unreadable(instance(2)));

    let fresh = RedisRecords::new(store.redis.clone());
    assert_eq!(fresh.revocations().await.unwrap(), [known], "a start");
    assert!(fresh.is_unreadable(instance(1)));
    fresh.purge(NOW, vec![]).await.unwrap();

    let readable = encode(&gone(2)).unwrap();
    server.answer(&["XADD", &log, "*", "r", &id, "e", &readable]);
    store.changes_since(&position).await.unwrap();
    assert!(!store.is_unreadable(instance(1)), "it was written anew");
}
