use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const NEW: u64 = u64::MAX;

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn usable(state: &mut State, now: Duration) -> Option<u64> {
    match state.on_wanted(now) {
        Wanted::Usable { serial, .. } => Some(serial),
        Wanted::Coming | Wanted::BackingOff { .. } => None,
    }
}

#[test]
fn nothing_is_fetched_until_a_push_wants_a_token() {
    let mut state = State::default();
    assert_eq!(state.fetch_due(), None);
    assert_eq!(state.on_wanted(HOUR), Wanted::Coming);
    assert!(state.fetch_due().unwrap() <= HOUR);
}

#[test]
fn a_used_token_is_refreshed_ahead_and_an_unused_one_is_left_to_expire() {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    assert_eq!(state.fetch_due(), None);
    assert_eq!(
        state.on_wanted(seconds(60)),
        Wanted::Usable {
            serial: 1,
            first: true
        }
    );
    assert_eq!(
        state.on_wanted(seconds(61)),
        Wanted::Usable {
            serial: 1,
            first: false
        }
    );
    assert_eq!(state.fetch_due(), Some(HOUR * 4 / 5));
}

#[test]
fn an_expired_token_is_never_handed_out() {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    assert_eq!(usable(&mut state, HOUR - seconds(6)), Some(1));
    assert_eq!(usable(&mut state, HOUR - seconds(5)), None);
    assert_eq!(state.fetch_due(), Some(Duration::ZERO));
}

#[test]
fn a_refusal_of_an_older_token_leaves_the_newer_one() {
    let mut state = State::default();
    state.on_fetched(2, HOUR, Duration::ZERO);
    assert_eq!(state.on_refused(1, Duration::ZERO), Mend::UnderWay);
    assert_eq!(usable(&mut state, Duration::ZERO), Some(2));
    assert_eq!(state.on_refused(2, Duration::ZERO), Mend::Begins);
    assert_eq!(
        state.on_refused(2, Duration::ZERO),
        Mend::UnderWay,
        "one mend, however many pushes had it"
    );
    assert_eq!(usable(&mut state, Duration::ZERO), None);
}

#[test]
fn a_second_refusal_in_a_row_waits() {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    assert_eq!(state.on_refused(1, Duration::ZERO), Mend::Begins);
    assert_eq!(
        state.fetch_due(),
        Some(Duration::ZERO),
        "the first refusal is mended at once"
    );
    state.on_fetched(2, HOUR, seconds(1));
    for _ in 0..2 {
        assert_eq!(state.on_refused(2, seconds(2)), Mend::Waits);
    }
    assert_eq!(state.fetch_due(), Some(seconds(11)));
    assert_eq!(
        state.on_wanted(seconds(10)),
        Wanted::BackingOff { until: seconds(11) }
    );
    assert_eq!(state.on_wanted(seconds(11)), Wanted::Coming);
}

#[test]
fn a_token_that_replaced_a_refused_one_and_served_a_while_is_mended_like_any_other() {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    for round in 1..50 {
        let now = seconds(600 * round);
        assert_eq!(state.on_refused(round, now), Mend::Begins, "round {round}");
        assert_eq!(state.on_wanted(now), Wanted::Coming);
        state.on_fetched(round + 1, HOUR, now);
    }
}

#[test]
fn failures_back_off_to_ten_seconds_and_a_success_forgets_them() {
    let mut state = State::default();
    for _ in 0..20 {
        state.on_failed(TokenError::Unreachable, HOUR, 1.0);
        state.on_wanted(HOUR);
    }
    assert_eq!(state.fetch_due(), Some(HOUR + LONGEST_BACKOFF));
    state.on_fetched(1, HOUR, HOUR);
    state.on_refused(1, HOUR);
    assert_eq!(state.fetch_due(), Some(Duration::ZERO));
}

#[test]
fn refused_credentials_are_tried_again_once_a_minute() {
    let mut state = State::default();
    for _ in 0..20 {
        state.on_failed(TokenError::Refused, HOUR, 1.0);
        state.on_wanted(HOUR);
    }
    assert_eq!(state.fetch_due(), Some(HOUR + LONGEST_BACKOFF_REFUSED));
}

#[test]
fn a_throttled_endpoint_gets_the_time_it_asks_for_up_to_a_minute() {
    for (asked, given) in [(0, 0.5), (37, 37.0), (3600, 60.0)] {
        let mut state = State::default();
        let wait = seconds(asked);
        state.on_failed(TokenError::Throttled { wait }, HOUR, 1.0);
        let until = HOUR + Duration::from_secs_f64(given);
        assert_eq!(state.on_wanted(HOUR), Wanted::BackingOff { until }, "{asked}");
    }
}

#[test]
fn after_a_failure_nothing_is_fetched_until_a_push_wants_a_token_again() {
    let mut state = State::default();
    state.on_wanted(Duration::ZERO);
    state.on_failed(TokenError::Refused, Duration::ZERO, 0.0);
    assert_eq!(state.fetch_due(), None);
    assert_eq!(state.on_wanted(HOUR), Wanted::Coming);
    state.on_fetched(1, HOUR, HOUR);
    state.on_wanted(HOUR);
    state.on_failed(TokenError::Unreachable, HOUR + HOUR * 4 / 5, 0.0);
    assert_eq!(
        state.fetch_due(),
        None,
        "a refresh ahead that failed is not tried again for nobody"
    );
    assert_eq!(
        state.on_wanted(HOUR * 2 - seconds(60)),
        Wanted::Usable {
            serial: 1,
            first: true
        }
    );
    assert!(state.fetch_due().is_some());
}

#[test]
fn a_day_of_expiries_needs_one_fetch_each() {
    let mut state = State::default();
    let mut fetches = 0;
    for second in 0..24 * 3600 {
        let now = seconds(second);
        state.on_wanted(now);
        if state.fetch_due().is_some_and(|due| due <= now) {
            fetches += 1;
            state.on_fetched(fetches, HOUR, now);
            assert_eq!(usable(&mut state, now), Some(fetches));
        }
    }
    assert_eq!(fetches, 30, "one each 48 minutes");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Wait(u64),
    Want,
    Refuse,
    Fail(TokenError),
    Fetch(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..4000).prop_map(Step::Wait),
        Just(Step::Want),
        Just(Step::Refuse),
        Just(Step::Fail(TokenError::Unreachable)),
        Just(Step::Fail(TokenError::Refused)),
        (0u64..10_000).prop_map(|wait| Step::Fail(TokenError::Throttled { wait: seconds(wait) })),
        (1u64..100_000).prop_map(Step::Fetch),
    ]
}

proptest! {
    #[test]
    fn a_token_is_handed_out_only_within_its_life(lifetime in 0u64..200_000, asked in 0u64..300_000) {
        let mut state = State::default();
        state.on_fetched(1, seconds(lifetime), Duration::ZERO);
        if usable(&mut state, seconds(asked)).is_some() {
            prop_assert!(asked < lifetime);
        }
    }

    #[test]
    fn whatever_happens_a_push_without_a_token_makes_a_fetch_due_within_a_minute_and_a_refused_token_stays_away(
        steps in proptest::collection::vec(step(), 1..60)
    ) {
        let (mut state, mut now, mut newest, mut refused) = (State::default(), Duration::ZERO, 0, NEW);
        for step in steps {
            match step {
                Step::Wait(wait) => now += seconds(wait),
                Step::Refuse => {
                    state.on_refused(newest, now);
                    refused = newest;
                }
                Step::Fail(error) => state.on_failed(error, now, 0.5),
                Step::Fetch(lifetime) => {
                    newest += 1;
                    state.on_fetched(newest, seconds(lifetime), now);
                }
                Step::Want => match state.on_wanted(now) {
                    Wanted::Usable { serial, .. } => prop_assert!(serial == newest && serial != refused),
                    Wanted::Coming => prop_assert!(state.fetch_due().unwrap() <= now),
                    Wanted::BackingOff { until } => {
                        prop_assert_eq!(state.fetch_due(), Some(until));
                        prop_assert!(until <= now + LONGEST_BACKOFF_REFUSED);
                    }
                },
            }
        }
    }
}
