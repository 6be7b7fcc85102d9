//! What lapses, and when.

use super::*;

pub(crate) async fn an_unused_record_lapses_after_seven_days(store: Opened) {
    store.enroll(enrollment(1)).await.unwrap();
    assert_eq!(
        store
            .purge(UnixMillis(later(7).0 - 1), vec![])
            .await
            .unwrap()
            .records,
        0
    );
    assert!(store.record(instance(1)).await.unwrap().is_some());
    assert_eq!(store.purge(later(7), vec![]).await.unwrap().records, 1);
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
}

pub(crate) async fn a_used_record_lapses_ninety_days_after_its_last_use(store: Opened) {
    store.enroll(enrollment(1)).await.unwrap();
    store.note_use(instance(1), 0, later(5)).await.unwrap();
    store.purge(UnixMillis(later(95).0 - 1), vec![]).await.unwrap();
    assert!(store.record(instance(1)).await.unwrap().is_some());
    store.purge(later(95), vec![]).await.unwrap();
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
}

pub(crate) async fn the_operators_word_and_a_running_suspension_outlive_the_record(store: Opened) {
    for number in [1, 2, 3] {
        store.enroll(enrollment(number)).await.unwrap();
    }
    store.set_limit(instance(1), Some(60)).await.unwrap();
    store.set_turn(instance(1), Some(true)).await.unwrap();
    store
        .set_suspension(instance(2), Some(suspension(None)))
        .await
        .unwrap();
    store
        .suspend(instance(3), suspension(Some(later(8))))
        .await
        .unwrap();
    store.purge(later(7), vec![]).await.unwrap();
    let limited = Record {
        per_minute: Some(60),
        turn: Some(true),
        ..Record::bare(instance(1))
    };
    let suspended = Record {
        suspension: Some(suspension(None)),
        ..Record::bare(instance(2))
    };
    let for_a_while = Record {
        suspension: Some(suspension(Some(later(8)))),
        ..Record::bare(instance(3))
    };
    assert_eq!(
        store.records(None, 9).await.unwrap(),
        [limited.clone(), suspended.clone(), for_a_while]
    );
    store.purge(later(8), vec![]).await.unwrap();
    store.purge(later(5000), vec![]).await.unwrap();
    assert_eq!(store.records(None, 9).await.unwrap(), [limited, suspended]);
}

pub(crate) async fn what_has_expired_is_forgotten(store: Opened) {
    store.enroll(enrollment(1)).await.unwrap();
    store.add_invite(invite(1, later(1))).await.unwrap();
    store.add_invite(invite(2, later(3))).await.unwrap();
    let purged = store.purge(UnixMillis(later(1).0 - 1), vec![]).await.unwrap();
    assert_eq!((purged.invites, purged.groups), (0, 0));
    let purged = store.purge(later(1), vec![]).await.unwrap();
    assert_eq!((purged.invites, purged.groups), (1, 1));
    assert_eq!(store.invites(NOW).await.unwrap(), [invite(2, later(3))]);
}

pub(crate) async fn an_entry_goes_long_after_its_last_secret(store: Opened) {
    let of_both = Entry {
        kids: vec![SECRET, OTHER_SECRET],
        ..gone(Cause::Revoked)
    };
    let entries = vec![
        (instance(1), gone(Cause::Revoked)),
        (instance(2), of_both.clone()),
    ];
    store.join_revocations(entries, false).await.unwrap();
    let purge = |at: UnixMillis, kids: Vec<Kid>| store.purge(at, kids);
    purge(NOW, vec![SECRET, OTHER_SECRET]).await.unwrap();
    assert_eq!(
        purge(later(5000), vec![SECRET, OTHER_SECRET])
            .await
            .unwrap()
            .revocations,
        [],
        "both in use"
    );
    assert_eq!(
        purge(UnixMillis(later(5030).0 - 1), vec![OTHER_SECRET])
            .await
            .unwrap()
            .revocations,
        []
    );
    let purged = purge(later(5030), vec![OTHER_SECRET]).await.unwrap();
    assert_eq!(purged.revocations, [(instance(1), gone(Cause::Revoked))]);
    assert_eq!(
        store.revocations().await.unwrap(),
        [(instance(2), of_both.clone())]
    );
    let purged = purge(later(5060), vec![]).await.unwrap();
    assert_eq!(purged.revocations, [(instance(2), of_both)]);
    assert_eq!(store.revocations().await.unwrap(), []);
}
