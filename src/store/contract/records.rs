//! Enrollments, uses, the operator's word, invites.

use super::*;

pub(crate) async fn an_enrollment_can_be_read_back(store: Opened) {
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
    assert_eq!(store.standing(instance(1)).await.unwrap(), None);
    assert_eq!(
        store.enroll(enrollment(1)).await.unwrap(),
        Enrolled::Made { group: 1001 }
    );
    let record = store.record(instance(1)).await.unwrap().unwrap();
    let expected = Record {
        name: Some(Redacted::new("Küche")),
        contact: Some(Redacted::new("admin@home.example")),
        enrolled_at: Some(NOW),
        group: Some(1001),
        ..Record::bare(instance(1))
    };
    assert_eq!(record, expected);
    let standing = store.standing(instance(1)).await.unwrap();
    let expected = Standing {
        enrolled_at: Some(NOW),
        group: Some(1001),
        sent: 0,
        per_minute: None,
        turn: None,
        suspension: None,
    };
    assert_eq!(standing, Some(expected));
}

pub(crate) async fn enrollments_of_one_address_share_a_group_for_a_day(store: Opened) {
    let at = |number: u8, at: UnixMillis| NewEnrollment {
        address: 7,
        at,
        ..enrollment(number)
    };
    assert_eq!(
        store.enroll(at(1, NOW)).await.unwrap(),
        Enrolled::Made { group: 1001 }
    );
    let within = UnixMillis(later(1).0 - 1);
    assert_eq!(
        store.enroll(at(2, within)).await.unwrap(),
        Enrolled::Made { group: 1001 }
    );
    assert_eq!(
        store.enroll(at(3, later(1))).await.unwrap(),
        Enrolled::Made { group: 1003 },
        "not prolonged"
    );
    assert_eq!(
        store.enroll(enrollment(4)).await.unwrap(),
        Enrolled::Made { group: 1004 },
        "another address"
    );
}

pub(crate) async fn an_invite_serves_one_of_many_enrollments_at_once(store: Opened) {
    assert!(store.add_invite(invite(9, later(1))).await.unwrap());
    let enroll = |number: u8| {
        store.enroll(NewEnrollment {
            invite: Some(InviteHash([9; 32])),
            ..enrollment(number)
        })
    };
    let outcomes = join_all((1..=32).map(enroll)).await;
    let made = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Ok(Enrolled::Made { .. })))
        .count();
    let refused = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Ok(Enrolled::InviteRefused)))
        .count();
    assert_eq!((made, refused), (1, 31));
    assert_eq!(store.records(None, 100).await.unwrap().len(), 1);
    assert_eq!(store.invites(NOW).await.unwrap(), []);
}

pub(crate) async fn an_unknown_or_expired_invite_enrolls_nobody(store: Opened) {
    store.add_invite(invite(9, NOW)).await.unwrap();
    for hash in [InviteHash([8; 32]), InviteHash([9; 32])] {
        let new = NewEnrollment {
            invite: Some(hash),
            ..enrollment(1)
        };
        assert_eq!(store.enroll(new).await.unwrap(), Enrolled::InviteRefused);
    }
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
}

pub(crate) async fn uses_add_up_and_time_does_not_go_back(store: Opened) {
    store.enroll(enrollment(1)).await.unwrap();
    store.note_use(instance(1), 3, later(2)).await.unwrap();
    store.note_use(instance(1), 4, later(1)).await.unwrap();
    store.note_use(instance(1), 0, later(1)).await.unwrap();
    let record = store.record(instance(1)).await.unwrap().unwrap();
    assert_eq!((record.sent, record.last_used_at), (7, Some(later(2))));
}

pub(crate) async fn a_use_of_an_unknown_instance_writes_nothing(store: Opened) {
    store.note_use(instance(1), 3, NOW).await.unwrap();
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
}

pub(crate) async fn the_policys_suspension_never_shortens_a_longer_one(store: Opened) {
    let until = |of: Option<Record>| of.unwrap().suspension.unwrap().until;
    store
        .suspend(instance(1), suspension(Some(later(2))))
        .await
        .unwrap();
    store
        .suspend(instance(1), suspension(Some(later(1))))
        .await
        .unwrap();
    assert_eq!(until(store.record(instance(1)).await.unwrap()), Some(later(2)));
    store
        .suspend(instance(1), suspension(Some(later(3))))
        .await
        .unwrap();
    assert_eq!(until(store.record(instance(1)).await.unwrap()), Some(later(3)));
    store
        .set_suspension(instance(1), Some(suspension(None)))
        .await
        .unwrap();
    store
        .suspend(instance(1), suspension(Some(later(9))))
        .await
        .unwrap();
    assert_eq!(
        until(store.record(instance(1)).await.unwrap()),
        None,
        "the operator's has no end"
    );
    store
        .set_suspension(instance(1), Some(suspension(Some(later(1)))))
        .await
        .unwrap();
    assert_eq!(
        until(store.record(instance(1)).await.unwrap()),
        Some(later(1)),
        "the operator may shorten"
    );
}

pub(crate) async fn the_operators_word_needs_no_enrollment_and_leaves_nothing_when_taken_back(store: Opened) {
    store.set_limit(instance(1), Some(60)).await.unwrap();
    store
        .set_suspension(instance(1), Some(suspension(None)))
        .await
        .unwrap();
    let standing = store.standing(instance(1)).await.unwrap().unwrap();
    assert_eq!(
        (standing.per_minute, standing.enrolled_at, standing.group),
        (Some(60), None, None)
    );
    assert_eq!(standing.suspension, Some(suspension(None)));
    store.set_turn(instance(1), Some(true)).await.unwrap();
    let standing = store.standing(instance(1)).await.unwrap().unwrap();
    assert_eq!((standing.per_minute, standing.turn), (Some(60), Some(true)));
    store.set_limit(instance(1), None).await.unwrap();
    store.set_turn(instance(1), None).await.unwrap();
    store.set_suspension(instance(1), None).await.unwrap();
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
}

pub(crate) async fn records_come_in_pages_in_the_order_of_ids(store: Opened) {
    for number in [3, 1, 5, 2, 4] {
        store.enroll(enrollment(number)).await.unwrap();
    }
    let ids = |page: Vec<Record>| page.into_iter().map(|record| record.instance).collect::<Vec<_>>();
    assert_eq!(
        ids(store.records(None, 2).await.unwrap()),
        [instance(1), instance(2)]
    );
    assert_eq!(
        ids(store.records(Some(instance(2)), 2).await.unwrap()),
        [instance(3), instance(4)]
    );
    assert_eq!(
        ids(store.records(Some(instance(4)), 2).await.unwrap()),
        [instance(5)]
    );
    assert_eq!(ids(store.records(Some(instance(5)), 2).await.unwrap()), []);
}

pub(crate) async fn invites_are_listed_until_they_expire_and_bounded(store: Opened) {
    store.add_invite(invite(2, later(2))).await.unwrap();
    store.add_invite(invite(1, later(1))).await.unwrap();
    assert_eq!(
        store.invites(NOW).await.unwrap(),
        [invite(1, later(1)), invite(2, later(2))]
    );
    assert_eq!(store.invites(later(1)).await.unwrap(), [invite(2, later(2))]);
    let more = (2..INVITES_OUTSTANDING).map(|number| {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&(number as u64).to_be_bytes());
        store.add_invite(Invite {
            hash: InviteHash(hash),
            ..invite(0, later(1))
        })
    });
    assert!(join_all(more).await.into_iter().all(|kept| kept.unwrap()));
    assert!(!store.add_invite(invite(3, later(1))).await.unwrap(), "full");
}
