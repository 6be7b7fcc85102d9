//! Which limit it was.

use super::{super::super::pressure::REPEATS_SLOW, *};

/// Pushes to these until one is refused, and by what.
fn refused(
    one: &mut InstanceState,
    shared: &Shared,
    mut tokens: impl Iterator<Item = u128>,
    now: Now,
) -> Limit {
    let refused = tokens.find_map(|token| match decide(one, shared, token, now) {
        Decision::Refuse(Refusal::RateLimited(wait)) => Some(wait.limit),
        _ => None,
    });
    refused.expect("a limit")
}

#[test]
fn a_refusal_names_the_limit_that_it_met() {
    let shared = Shared::new();
    let mut one = state(Some(grown()));
    assert_eq!(refused(&mut one, &shared, 0.., START), Limit::Instance);
    let mut another = state(Some(grown()));
    assert_eq!(
        refused(&mut another, &shared, std::iter::repeat(5_000), START),
        Limit::Device
    );
    let mut others = [state(Some(young())), state(Some(young())), state(Some(young()))];
    let refused = others
        .each_mut()
        .map(|young| refused(young, &shared, 10_000.., START));
    assert_eq!(refused, [Limit::Instance, Limit::Instance, Limit::Group]);
}

#[test]
fn one_that_keeps_pushing_to_dead_tokens_hears_so_and_so_does_one_that_guesses() {
    let shared = Shared::new();
    let mut loops = state(Some(grown()));
    let mut now = START;
    for _ in 0..=REPEATS_SLOW {
        now = now.plus(SECOND);
        loops.settle(TokenHash(1), PushResult::InvalidToken, now, now);
    }
    assert_eq!(refused(&mut loops, &shared, 1_000.., now), Limit::Slowed);
    let mut guesses = state(Some(grown()));
    for token in 0..=u128::from(limits::NEVER_SENT_DEAD_PER_HOUR) {
        guesses.settle(TokenHash(token), PushResult::InvalidToken, START, START);
    }
    assert_eq!(refused(&mut guesses, &shared, 1_000.., START), Limit::Strangers);
}

#[test]
fn of_two_limits_the_one_that_lasts_longer_is_named() {
    let shared = Shared::new();
    let mut one = state(Some(Standing {
        per_minute: Some(1),
        ..grown()
    }));
    let mut another = state(Some(grown()));
    while passes(&mut another, &shared, 1, START) {}
    let mut third = state(Some(grown()));
    while passes(&mut third, &shared, 1, START) {}
    assert_eq!(
        refused(&mut one, &shared, std::iter::repeat(1), START),
        Limit::Device
    );
    assert!(passes(&mut one, &shared, 2, START));
    assert_eq!(
        refused(&mut one, &shared, std::iter::repeat(1), START),
        Limit::Instance
    );
}
