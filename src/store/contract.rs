//! The contract that every store passes: `store_contract!(open)` makes one test of each function here, where
//! `open()` gives a fresh, empty store and whatever must live as long.

use std::sync::Arc;

use futures_util::future::join_all;
use sovereign_relay_actors::ports::{Standing, Suspension};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

use super::{
    Enrolled, INVITES_OUTSTANDING, Invite, InviteHash, NewEnrollment, Record, Store, Swap,
    revocation::{Cause, Entry, Gone, Grace, Kid, Rotated, State},
};

macro_rules! store_contract {
    ($open:path) => {
        $crate::store::contract::store_contract!(@ $open:
            an_enrollment_can_be_read_back,
            enrollments_of_one_address_share_a_group_for_a_day,
            an_invite_serves_one_of_many_enrollments_at_once,
            an_unknown_or_expired_invite_enrolls_nobody,
            uses_add_up_and_time_does_not_go_back,
            a_use_of_an_unknown_instance_writes_nothing,
            the_policys_suspension_never_shortens_a_longer_one,
            the_operators_word_needs_no_enrollment_and_leaves_nothing_when_taken_back,
            records_come_in_pages_in_the_order_of_ids,
            joined_revocations_only_grow_stricter,
            a_withdrawal_erases_the_record,
            a_swap_needs_the_entry_it_expected,
            of_many_swaps_at_once_one_wins,
            invites_are_listed_until_they_expire_and_bounded,
            an_unused_record_lapses_after_seven_days,
            a_used_record_lapses_ninety_days_after_its_last_use,
            the_operators_limit_and_a_running_suspension_outlive_the_record,
            what_has_expired_is_forgotten,
            an_entry_goes_long_after_its_last_secret,
        );
    };
    (@ $open:path: $($name:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $name() {
                let (store, _guard) = $open();
                $crate::store::contract::$name(store).await;
            }
        )*
    };
}
pub(crate) use store_contract;

type Opened = Arc<dyn Store>;

const DAY: u64 = 24 * 3600 * 1000;
const NOW: UnixMillis = UnixMillis(1_800_000_000_000);
const SECRET: Kid = Kid([1; 6]);
const OTHER_SECRET: Kid = Kid([2; 6]);

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn later(days: u64) -> UnixMillis {
    NOW.plus_millis(days * DAY)
}

fn enrollment(number: u8) -> NewEnrollment {
    NewEnrollment {
        instance: instance(number),
        name: Some(Redacted::new("Küche")),
        contact: Some(Redacted::new("admin@home.example")),
        at: NOW,
        address: u64::from(number),
        fresh_group: 1000 + u64::from(number),
        invite: None,
    }
}

fn invite(number: u8, expires_at: UnixMillis) -> Invite {
    Invite {
        hash: InviteHash([number; 32]),
        created_at: NOW,
        expires_at,
    }
}

fn suspension(until: Option<UnixMillis>) -> Suspension {
    Suspension {
        until,
        reason: "tokens of others".to_owned(),
    }
}

fn gone(cause: Cause) -> Entry {
    Entry {
        kids: vec![SECRET],
        state: State::Gone(Gone { at: NOW, cause }),
    }
}

fn rotated(newest: u32, until: UnixMillis) -> Entry {
    let grace = vec![Grace {
        generation: newest - 1,
        until,
    }];
    Entry {
        kids: vec![SECRET],
        state: State::Rotated(Rotated {
            newest,
            issued_at: NOW.seconds(),
            used: false,
            grace,
        }),
    }
}

async fn entry_of(store: &Opened, of: InstanceId) -> Option<Entry> {
    let list = store.revocations().await.unwrap();
    list.into_iter()
        .find(|(instance, _)| *instance == of)
        .map(|(_, entry)| entry)
}

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
    store.set_limit(instance(1), None).await.unwrap();
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

pub(crate) async fn joined_revocations_only_grow_stricter(store: Opened) {
    store.enroll(enrollment(1)).await.unwrap();
    store
        .join_revocations(vec![(instance(1), rotated(2, later(1)))], false)
        .await
        .unwrap();
    store
        .join_revocations(vec![(instance(1), rotated(1, later(9)))], false)
        .await
        .unwrap();
    let entry = entry_of(&store, instance(1)).await.unwrap();
    assert!(entry.allows(1, NOW) && !entry.allows(1, later(1)) && !entry.allows(0, NOW));
    let both = vec![
        (instance(1), gone(Cause::Revoked)),
        (instance(2), gone(Cause::Revoked)),
    ];
    store.join_revocations(both, false).await.unwrap();
    store
        .join_revocations(vec![(instance(1), rotated(9, later(9)))], false)
        .await
        .unwrap();
    assert_eq!(entry_of(&store, instance(1)).await, Some(gone(Cause::Revoked)));
    assert_eq!(entry_of(&store, instance(2)).await, Some(gone(Cause::Revoked)));
    assert!(
        store.record(instance(1)).await.unwrap().is_some(),
        "the operator still sees whom it was"
    );
}

pub(crate) async fn a_withdrawal_erases_the_record(store: Opened) {
    store.enroll(enrollment(1)).await.unwrap();
    store.set_limit(instance(1), Some(60)).await.unwrap();
    store
        .join_revocations(vec![(instance(1), gone(Cause::Withdrawn))], true)
        .await
        .unwrap();
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
    assert_eq!(entry_of(&store, instance(1)).await, Some(gone(Cause::Withdrawn)));
}

pub(crate) async fn a_swap_needs_the_entry_it_expected(store: Opened) {
    let (first, second) = (rotated(1, later(1)), rotated(2, later(1)));
    let of = instance(1);
    let swap =
        |expected: Option<&Entry>, new: &Entry| store.swap_revocation(of, expected.cloned(), new.clone());
    assert_eq!(swap(Some(&first), &second).await.unwrap(), Swap::Changed(None));
    assert_eq!(swap(None, &first).await.unwrap(), Swap::Done);
    assert_eq!(
        swap(None, &second).await.unwrap(),
        Swap::Changed(Some(first.clone()))
    );
    assert_eq!(swap(Some(&first), &second).await.unwrap(), Swap::Done);
    assert_eq!(entry_of(&store, of).await, Some(second));
}

pub(crate) async fn of_many_swaps_at_once_one_wins(store: Opened) {
    let swaps = (1..=32).map(|newest| store.swap_revocation(instance(1), None, rotated(newest, NOW)));
    let outcomes = join_all(swaps).await;
    assert_eq!(
        outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Ok(Swap::Done)))
            .count(),
        1
    );
    assert!(outcomes.iter().all(Result::is_ok));
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

pub(crate) async fn the_operators_limit_and_a_running_suspension_outlive_the_record(store: Opened) {
    for number in [1, 2, 3] {
        store.enroll(enrollment(number)).await.unwrap();
    }
    store.set_limit(instance(1), Some(60)).await.unwrap();
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
