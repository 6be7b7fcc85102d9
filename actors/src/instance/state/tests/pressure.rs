use super::*;

#[test]
fn a_loop_over_dead_tokens_is_slowed_and_then_suspended_with_a_reason_until_the_operator_pardons() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    let mut now = START;
    let (mut slowed, mut rounds) = (false, 0);
    let suspension = loop {
        rounds += 1;
        assert!(rounds < 10_000, "never suspended");
        now = now.plus(61 * SECOND);
        let suspension = (0..30).find_map(|token| {
            if let Decision::Refuse(Refusal::RateLimited(_)) = decide(&mut one, &shared, token, now) {
                slowed = true;
            }
            one.settle(TokenHash(token), PushResult::InvalidToken, now, now)
        });
        // As fast as the slowed rate lets it: the other budgets are full again each round.
        if let Some(suspension) = suspension {
            break suspension;
        }
        slowed |= one.pressure.slowed(now.mono).is_some();
    };
    assert!(slowed);
    assert_eq!(suspension.until, Some(now.plus(HOUR).unix));
    assert!(suspension.reason.contains("already reported gone"));
    assert_eq!(
        one.admit(&push(500).message, true, now),
        Err(Refusal::Suspended {
            retry_after: Some(HOUR)
        })
    );
    // While the store does not know of it, that it says nothing is no pardon, and its word counts where it is stricter.
    assert_eq!(one.untold_suspension(now), Some(&suspension));
    assert!(!one.is_idle(HOUR, now.plus(HOUR - SECOND)));
    let theirs = |until| one_suspended(&mut one, now, until);
    let [none, shorter, longer, endless] = [
        None,
        Some(Some(now.plus(SECOND).unix)),
        Some(Some(now.plus(2 * HOUR).unix)),
        Some(None),
    ]
    .map(theirs);
    assert_eq!(
        [none, shorter, longer, endless],
        [Some(HOUR), Some(HOUR), Some(2 * HOUR), None]
    );
    one.on_suspension_told();
    assert_eq!(one.untold_suspension(now), None);
    one.on_standing(Some(grown()));
    assert_eq!(one.admit(&push(500).message, true, now), Ok(()));
    assert!(passes(&mut one, &shared, 500, now));
}

/// How long it is suspended after the store has said this; `None`: until somebody ends it.
fn one_suspended(one: &mut InstanceState, now: Now, stored: Option<Option<UnixMillis>>) -> Option<Duration> {
    one.on_standing(Some(stored.map_or_else(grown, suspended)));
    let suspended = one.suspended(now);
    suspended.expect("it is suspended")
}

#[test]
fn a_slowed_instance_gets_a_tenth_of_its_rate() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    for nth in 0..=60 {
        let at = START.plus(61 * SECOND * nth);
        one.settle(TokenHash(1), PushResult::InvalidToken, at, at);
    }
    let now = START.plus(61 * SECOND * 60);
    let taken = (10..5_000)
        .take_while(|&token| passes(&mut one, &shared, token, now))
        .count();
    assert_eq!(taken, 60);
    let retry_after = wait(decide(&mut one, &shared, 9_000, now));
    assert!(passes(&mut one, &shared, 9_000, now.plus(retry_after)));
}

#[test]
fn a_large_instances_first_sweep_is_only_throttled_for_tokens_that_never_took_a_push() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    one.settle(TokenHash(1), PushResult::Sent, START, START);
    for token in 100..600 {
        assert_eq!(
            one.settle(TokenHash(token), PushResult::InvalidToken, START, START),
            None
        );
    }
    assert!(passes(&mut one, &shared, 1, START));
    let retry_after = wait(decide(&mut one, &shared, 2, START));
    assert!(passes(&mut one, &shared, 2, START.plus(retry_after)));
}

#[test]
fn an_instance_is_idle_after_its_time_unless_something_counts_against_it() {
    let mut one = state(Some(grown()));
    let idle_after = 660 * SECOND;
    assert!(!one.is_idle(idle_after, START.plus(659 * SECOND)));
    assert!(one.is_idle(idle_after, START.plus(660 * SECOND)));
    one.settle(TokenHash(1), PushResult::InvalidToken, START, START);
    assert!(!one.is_idle(idle_after, START.plus(660 * SECOND)));
    assert!(one.is_idle(idle_after, START.plus(2 * HOUR)));
}

#[test]
fn a_million_pushes_to_ever_new_tokens_leave_bounded_maps_that_empty_with_time() {
    let shared = Shared::new();
    let mut one = state(Some(Standing {
        per_minute: Some(4_000_000),
        ..grown()
    }));
    let mut now = START;
    for token in 0..1_000_000_u128 {
        let result = match token % 3 {
            0 => PushResult::Sent,
            1 => PushResult::InvalidToken,
            _ => PushResult::Failed,
        };
        decide(&mut one, &shared, token, now);
        one.settle(TokenHash(token), result, now, now);
        if token % 20_000 == 0 {
            now = now.plus(20 * SECOND);
            one.clean(now);
            shared.tokens.clean(now.mono);
            assert!(one.len() <= 16_384 * 2 + 65_536);
        }
    }
    one.clean(now.plus(25 * HOUR));
    assert_eq!(one.len(), 0);
}
