use sovereign_relay_protocol::time::UnixMillis;

use super::*;

const START: Now = Now {
    mono: Duration::from_secs(100),
    unix: UnixMillis(0),
};

fn spend(group: Option<u64>, token: u128) -> SharedSpend {
    SharedSpend {
        group,
        token: TokenHash(token),
    }
}

#[test]
fn a_token_gets_240_a_minute_over_all_instances() {
    let limits = EmbeddedLimits::new();
    let taken = (0..1000)
        .take_while(|_| limits.take(spend(None, 1), START).is_ok())
        .count();
    assert_eq!(taken, 240);
    let wait = limits.take(spend(None, 1), START).unwrap_err();
    assert_eq!(wait, Limit::Device.wait(Duration::from_millis(250)));
    assert_eq!(limits.take(spend(None, 1), START.plus(wait.time)), Ok(()));
    assert_eq!(limits.take(spend(None, 2), START), Ok(()));
}

#[test]
fn a_young_group_gets_1200_a_minute_however_many_instances_and_tokens_it_has() {
    let limits = EmbeddedLimits::new();
    let taken = (0..10_000)
        .take_while(|&token| limits.take(spend(Some(9), token), START).is_ok())
        .count();
    assert_eq!(taken, 1200);
    let refused = limits.check(spend(Some(9), 1_000_000), START).unwrap_err();
    assert_eq!(refused.limit, Limit::Group);
    assert_eq!(limits.take(spend(Some(8), 1_000_000), START), Ok(()));
}

#[test]
fn a_push_that_one_budget_refuses_takes_nothing_of_the_other() {
    let limits = EmbeddedLimits::new();
    while limits.take(spend(None, 1), START).is_ok() {}
    for _ in 0..5_000 {
        assert!(limits.take(spend(Some(9), 1), START).is_err());
        assert!(limits.check(spend(Some(9), 1), START).is_err());
    }
    let taken = (100..10_000)
        .take_while(|&token| limits.take(spend(Some(9), token), START).is_ok())
        .count();
    assert_eq!(taken, 1200);
    for _ in 0..5_000 {
        assert!(limits.take(spend(Some(9), 50), START).is_err());
    }
    let of_token = (0..1_000)
        .take_while(|_| limits.take(spend(None, 50), START).is_ok())
        .count();
    assert_eq!(of_token, 240);
}

#[test]
fn the_wait_is_for_both_budgets() {
    let limits = EmbeddedLimits::new();
    while limits.take(spend(None, 1), START).is_ok() {}
    for token in 100..1300 {
        limits.take(spend(Some(9), token), START).unwrap();
    }
    let wait = limits.take(spend(Some(9), 1), START).unwrap_err();
    assert_eq!(limits.check(spend(Some(9), 1), START), Err(wait));
    assert_eq!(limits.take(spend(Some(9), 1), START.plus(wait.time)), Ok(()));
}

#[test]
fn a_million_tokens_leave_nothing_behind() {
    let limits = EmbeddedLimits::new();
    let mut now = START;
    for token in 0..1_000_000_u128 {
        limits.take(spend(Some(token as u64 % 50), token), now).ok();
        if token % 10_000 == 0 {
            now = now.plus(Duration::from_secs(5));
            limits.clean(now);
            assert!(limits.keys() < 30_000);
        }
    }
    limits.clean(now.plus(Duration::from_secs(120)));
    assert_eq!(limits.keys(), 0);
}

#[test]
fn a_push_that_its_token_refuses_takes_nothing_of_its_group_even_for_a_moment() {
    let limits = EmbeddedLimits::new();
    while limits.take(spend(None, 1), START).is_ok() {}
    assert!(limits.take(spend(Some(9), 1), START).is_err());
    assert_eq!(limits.keys(), 1, "the group was not touched");
}
