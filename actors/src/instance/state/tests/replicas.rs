//! Budgets that replicas share: the receipt comes in with the push.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::ports::Receipt;

/// A receipt, and whether it went back.
fn receipt() -> (Receipt, Arc<AtomicBool>) {
    let went_back = Arc::new(AtomicBool::new(false));
    let told = went_back.clone();
    (
        Receipt::new(move || told.store(true, Ordering::Relaxed)),
        went_back,
    )
}

fn refusal(decision: Decision) -> Option<Duration> {
    match decision {
        Decision::Refuse(Refusal::RateLimited(wait)) => Some(wait.time),
        _ => None,
    }
}

#[test]
fn the_bill_names_the_instances_rate_and_its_group_while_it_is_young() {
    let mut one = state(Some(young()));
    let bill = one.bill(&push(1), START);
    assert_eq!(
        (bill.instance, bill.per_minute, bill.group),
        (InstanceId::from_bytes(ID), limits::PUSHES_PER_MINUTE, Some(5))
    );
    one.on_standing(Some(Standing {
        per_minute: Some(7),
        ..grown()
    }));
    let bill = one.bill(&push(1), START);
    assert_eq!((bill.per_minute, bill.group), (7, None));
}

#[test]
fn a_push_that_is_paid_passes_whatever_the_actors_own_budget_says_and_the_receipt_is_kept() {
    let limited = Standing {
        per_minute: Some(1),
        ..young()
    };
    let (mut one, shared) = (state(Some(limited)), Shared::new());
    for token in 0..50 {
        let (paid, went_back) = receipt();
        let decision = one.decide(&push(token), Some(Ok(paid)), true, &shared, START);
        assert!(matches!(decision, Decision::Deliver { .. }), "{decision:?}");
        assert!(!went_back.load(Ordering::Relaxed));
    }
    assert_eq!(shared.groups.keys(), 0, "the group was in the bill");
}

#[test]
fn a_push_that_is_paid_but_refused_for_its_token_gives_back() {
    let (mut one, shared) = (state(Some(grown())), Shared::new());
    for _ in 0..limits::TOKEN_PER_INSTANCE_PER_MINUTE {
        let decision = one.decide(&push(1), Some(Ok(receipt().0)), true, &shared, START);
        assert!(matches!(decision, Decision::Deliver { .. }));
    }
    let (paid, went_back) = receipt();
    assert!(refusal(one.decide(&push(1), Some(Ok(paid)), true, &shared, START)).is_some());
    assert!(went_back.load(Ordering::Relaxed));
}

#[test]
fn a_bill_that_is_not_paid_refuses_with_the_longest_wait_and_takes_nothing() {
    let (mut one, shared) = (state(Some(grown())), Shared::new());
    for _ in 0..limits::TOKEN_PER_INSTANCE_PER_MINUTE {
        let decision = one.decide(&push(1), Some(Ok(receipt().0)), true, &shared, START);
        assert!(matches!(decision, Decision::Deliver { .. }));
    }
    let takes = shared.takes.load(Ordering::Relaxed);
    let mut wait_of = |wait, token| {
        let unpaid = Err(Limit::Instance.wait(wait));
        refusal(one.decide(&push(token), Some(unpaid), true, &shared, START))
    };
    assert_eq!(wait_of(SECOND, 2), Some(SECOND));
    assert_eq!(
        wait_of(Duration::from_millis(1), 1),
        Some(SECOND / 2),
        "the token's"
    );
    assert_eq!(wait_of(SECOND, 1), Some(SECOND));
    assert_eq!(shared.takes.load(Ordering::Relaxed), takes);
}
