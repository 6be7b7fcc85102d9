mod sequences;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const A: TurnKey = TurnKey::Group(1);
const B: TurnKey = TurnKey::Group(2);
const C: TurnKey = TurnKey::Group(3);
const D: TurnKey = TurnKey::Group(4);

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn by(sender: TurnKey) -> Asker {
    after(0, sender)
}

fn after(refused_with: u64, sender: TurnKey) -> Asker {
    Asker { sender, refused_with }
}

fn usable(state: &mut State, now: Duration) -> Option<u64> {
    usable_to(state, by(A), now)
}

fn usable_to(state: &mut State, asker: Asker, now: Duration) -> Option<u64> {
    match state.on_wanted(asker, now) {
        Wanted::Usable { serial, .. } => Some(serial),
        Wanted::Coming | Wanted::BackingOff { .. } | Wanted::Doubted { .. } => None,
    }
}

/// With one token, which was accepted.
fn proven() -> State {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    state.on_accepted(1);
    state
}

/// With one that several were refused with, at 1 s.
fn doubted() -> State {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    assert_eq!(state.on_refused(1, A, seconds(1)), Mend::Begins);
    state.on_fetched(2, HOUR, seconds(1));
    for sender in [A, B, C] {
        let stays = Mend::Stays { accepted: false };
        assert_eq!(state.on_refused(2, sender, seconds(1)), stays);
    }
    state
}

#[test]
fn nothing_is_fetched_until_a_push_wants_a_token() {
    let mut state = State::default();
    assert_eq!(state.fetch_due(), None);
    assert_eq!(state.on_wanted(by(A), HOUR), Wanted::Coming);
    assert!(state.fetch_due().unwrap() <= HOUR);
}

#[test]
fn a_used_token_is_refreshed_ahead_and_an_unused_one_is_left_to_expire() {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    assert_eq!(state.fetch_due(), None);
    assert_eq!(
        state.on_wanted(by(A), seconds(60)),
        Wanted::Usable {
            serial: 1,
            first: true
        }
    );
    assert_eq!(
        state.on_wanted(by(A), seconds(61)),
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
fn a_refused_token_is_replaced_at_once_and_nobody_gets_it_again_who_was_refused_with_it() {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    assert_eq!(state.on_refused(1, A, HOUR / 2), Mend::Begins);
    assert_eq!(
        state.on_refused(1, B, HOUR / 2),
        Mend::UnderWay,
        "one mend, however many pushes had it"
    );
    assert_eq!(state.on_wanted(after(1, A), HOUR / 2), Wanted::Coming);
    assert!(state.fetch_due().unwrap() <= HOUR / 2);
    state.on_fetched(2, HOUR, HOUR / 2);
    for sender in [A, B] {
        assert_eq!(usable_to(&mut state, after(1, sender), HOUR / 2), Some(2));
    }
    assert_eq!(
        state.on_refused(1, B, HOUR / 2),
        Mend::UnderWay,
        "the newer is not touched"
    );
    assert_eq!(usable(&mut state, HOUR / 2), Some(2));
}

#[test]
fn the_others_go_on_with_a_token_that_one_sender_was_refused_with() {
    let mut state = proven();
    for _ in 0..100 {
        state.on_refused(1, A, seconds(1));
        assert_eq!(usable_to(&mut state, by(B), seconds(1)), Some(1));
    }
    state.on_fetched(2, HOUR, seconds(1));
    for second in 2..10 {
        assert_eq!(
            state.on_refused(2, A, seconds(second)),
            Mend::Stays { accepted: false }
        );
        assert_eq!(usable_to(&mut state, by(B), seconds(second)), Some(2));
    }
    state.on_accepted(2);
    assert_eq!(
        state.on_refused(2, A, seconds(10)),
        Mend::Stays { accepted: true }
    );
    assert_eq!(
        state.on_refused(2, B, seconds(10)),
        Mend::Begins,
        "who had none replaced lately is believed"
    );
}

#[test]
fn several_senders_that_are_refused_with_a_fresh_token_make_everybody_wait() {
    let mut state = doubted();
    let until = seconds(11);
    for sender in [A, B, C] {
        assert_eq!(
            state.on_wanted(by(sender), seconds(10)),
            Wanted::Doubted { until }
        );
    }
    assert_eq!(state.on_wanted(by(A), until), Wanted::Coming);
    state.on_fetched(3, HOUR, until);
    assert_eq!(usable(&mut state, until), Some(3));
}

#[test]
fn a_push_a_second_of_somebody_else_tries_a_doubted_token_and_proves_it_good_for_all() {
    let mut state = doubted();
    assert_eq!(usable_to(&mut state, by(D), seconds(2)), Some(2));
    assert_eq!(usable_to(&mut state, by(D), Duration::from_millis(2_999)), None);
    assert_eq!(usable_to(&mut state, by(D), seconds(3)), Some(2));
    assert_eq!(usable(&mut state, seconds(3)), None);
    state.on_accepted(2);
    for sender in [A, B, C, D] {
        assert_eq!(usable_to(&mut state, by(sender), seconds(3)), Some(2));
    }
}

#[test]
fn a_token_that_provider_and_endpoint_both_refuse_is_shown_to_nobody() {
    let mut state = proven();
    state.on_refused(1, A, seconds(1));
    state.on_failed(TokenError::Unavailable, seconds(1), 1.0);
    assert_eq!(usable_to(&mut state, by(B), seconds(2)), Some(1));
    state.on_failed(TokenError::Refused, seconds(2), 1.0);
    assert_eq!(
        state.on_wanted(by(B), seconds(2)),
        Wanted::BackingOff { until: seconds(3) }
    );
}

#[test]
fn a_replacement_that_could_not_be_fetched_is_wanted_again_by_those_who_wait() {
    let mut state = proven();
    assert_eq!(state.on_refused(1, A, seconds(1)), Mend::Begins);
    state.on_failed(TokenError::Unreachable, seconds(1), 1.0);
    assert_eq!(state.fetch_due().filter(|due| *due < HOUR / 2), None);
    let until = Duration::from_millis(1_500);
    assert_eq!(
        state.on_wanted(after(1, A), seconds(1)),
        Wanted::BackingOff { until }
    );
    assert_eq!(state.fetch_due(), Some(until));
}

#[test]
fn a_token_that_replaced_a_refused_one_and_served_a_while_is_mended_like_any_other() {
    let mut state = State::default();
    state.on_fetched(1, HOUR, Duration::ZERO);
    for round in 1..50 {
        let now = seconds(600 * round);
        assert_eq!(state.on_refused(round, A, now), Mend::Begins, "round {round}");
        assert_eq!(state.on_wanted(after(round, A), now), Wanted::Coming);
        state.on_fetched(round + 1, HOUR, now);
    }
}

#[test]
fn failures_back_off_to_ten_seconds_and_a_success_forgets_them() {
    let mut state = State::default();
    for _ in 0..20 {
        state.on_failed(TokenError::Unreachable, HOUR, 1.0);
        state.on_wanted(by(A), HOUR);
    }
    assert_eq!(state.fetch_due(), Some(HOUR + LONGEST_BACKOFF));
    state.on_fetched(1, HOUR, HOUR);
    state.on_refused(1, A, HOUR);
    assert_eq!(state.fetch_due(), Some(Duration::ZERO));
}

#[test]
fn refused_credentials_are_tried_again_once_a_minute() {
    let mut state = State::default();
    for _ in 0..20 {
        state.on_failed(TokenError::Refused, HOUR, 1.0);
        state.on_wanted(by(A), HOUR);
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
        assert_eq!(
            state.on_wanted(by(A), HOUR),
            Wanted::BackingOff { until },
            "{asked}"
        );
    }
}

#[test]
fn after_a_failure_nothing_is_fetched_until_a_push_wants_a_token_again() {
    let mut state = State::default();
    state.on_wanted(by(A), Duration::ZERO);
    state.on_failed(TokenError::Refused, Duration::ZERO, 0.0);
    assert_eq!(state.fetch_due(), None);
    assert_eq!(state.on_wanted(by(A), HOUR), Wanted::Coming);
    state.on_fetched(1, HOUR, HOUR);
    state.on_wanted(by(A), HOUR);
    state.on_failed(TokenError::Unreachable, HOUR + HOUR * 4 / 5, 0.0);
    assert_eq!(
        state.fetch_due(),
        None,
        "a refresh ahead that failed is not tried again for nobody"
    );
    assert_eq!(
        state.on_wanted(by(A), HOUR * 2 - seconds(60)),
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
        state.on_wanted(by(A), now);
        if state.fetch_due().is_some_and(|due| due <= now) {
            fetches += 1;
            state.on_fetched(fetches, HOUR, now);
            assert_eq!(usable(&mut state, now), Some(fetches));
        }
    }
    assert_eq!(fetches, 30, "one each 48 minutes");
}
