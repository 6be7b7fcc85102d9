//! The revocation list.

use super::*;

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
