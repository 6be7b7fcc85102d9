use super::*;
use crate::instance::signal::{Admitted, SessionRefusal, TurnFor};

const MODES: [TurnFor; 3] = [TurnFor::None, TurnFor::Allowed, TurnFor::All];

fn with_turn(turn: Option<bool>) -> InstanceState {
    state(Some(Standing { turn, ..grown() }))
}

fn admit(one: &mut InstanceState, now: Now) -> Result<(), SessionRefusal> {
    one.admit_session(TurnFor::None, now).map(|_| ())
}

#[test]
fn a_minutes_sessions_may_be_made_at_once_and_the_next_when_it_says() {
    let mut one = state(Some(young()));
    for _ in 0..limits::SESSIONS_PER_MINUTE {
        assert_eq!(admit(&mut one, START), Ok(()));
    }
    let retry_after = SECOND / 2;
    assert_eq!(
        admit(&mut one, START),
        Err(SessionRefusal::TooOften { retry_after })
    );
    let just_before = START.plus(retry_after - Duration::from_nanos(1));
    assert!(admit(&mut one, just_before).is_err());
    assert_eq!(admit(&mut one, START.plus(retry_after)), Ok(()));
}

#[test]
fn sessions_and_pushes_have_budgets_of_their_own() {
    let (mut one, shared) = (state(Some(grown())), Shared::new());
    while admit(&mut one, START).is_ok() {}
    assert!(matches!(
        one.decide(&push(1), None, true, &shared, START),
        Decision::Deliver { .. }
    ));
}

#[test]
fn a_suspension_stops_sessions_for_as_long_as_it_runs_and_takes_no_budget() {
    let until = UnixMillis(START.unix.0 + 1_000);
    let mut one = state(Some(suspended(Some(until))));
    let retry_after = Some(SECOND);
    for _ in 0..1_000 {
        assert_eq!(
            admit(&mut one, START),
            Err(SessionRefusal::Suspended { retry_after })
        );
    }
    for _ in 0..limits::SESSIONS_PER_MINUTE {
        assert_eq!(admit(&mut one, START.plus(SECOND)), Ok(()));
    }
    let mut for_good = state(Some(suspended(None)));
    let refused = Err(SessionRefusal::Suspended { retry_after: None });
    assert_eq!(admit(&mut for_good, START.plus(HOUR)), refused);
}

#[test]
fn turn_is_for_those_whom_the_mode_and_the_operator_mean() {
    for (word, expected) in [
        (None, [false, false, true]),
        (Some(true), [false, true, true]),
        (Some(false), [false, false, false]),
    ] {
        let mut one = with_turn(word);
        let given = MODES.map(|mode| one.admit_session(mode, START).unwrap().turn);
        assert_eq!(given, expected, "{word:?}");
    }
}

#[test]
fn an_instance_of_which_nothing_is_known_makes_sessions_and_counts_as_not_allowed() {
    let mut one = state(None);
    let admitted = one.admit_session(TurnFor::Allowed, START);
    assert_eq!(admitted, Ok(Admitted { turn: false }));
}

#[test]
fn the_operators_word_holds_from_the_next_standing_on_and_so_does_its_end() {
    let mut one = with_turn(None);
    for turn in [Some(true), Some(false), Some(true), None] {
        one.on_standing(Some(Standing { turn, ..grown() }));
        let admitted = one.admit_session(TurnFor::Allowed, START).unwrap();
        assert_eq!(admitted.turn, turn == Some(true));
    }
    one.on_standing(Some(Standing {
        turn: Some(true),
        ..grown()
    }));
    one.on_standing(None);
    assert!(!one.admit_session(TurnFor::Allowed, START).unwrap().turn);
}

#[test]
fn a_session_is_a_use_that_keeps_the_record_and_a_refusal_is_none() {
    let mut one = state(Some(grown()));
    assert!(one.take_use().is_none());
    admit(&mut one, START).unwrap();
    assert_eq!(
        one.take_use().map(|noted| (noted.sent, noted.at)),
        Some((0, START.unix))
    );
    let mut refused = state(Some(suspended(None)));
    assert!(admit(&mut refused, START).is_err() && refused.take_use().is_none());
}
