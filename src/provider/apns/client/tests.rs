use super::*;

const LEFT: Duration = Duration::from_secs(10);

fn unavailable() -> Outcome {
    failed(Reason::ProviderUnavailable, true, Health::Faulty)
}

fn stumble(again: Again) -> Try {
    Try::Answered {
        judgement: Judgement {
            outcome: unavailable(),
            again,
        },
        refusal: None,
        connection: 7,
    }
}

fn no_answer(end: NoAnswer) -> Try {
    Try::NoAnswer { end, connection: 7 }
}

#[test]
fn what_was_not_taken_is_tried_again_elsewhere_at_once_then_with_doubling_pauses() {
    let mut tries = Tries::default();
    let mut pauses = Vec::new();
    let end = loop {
        match tries.next(no_answer(NoAnswer::NotTaken), LEFT) {
            Step::Again { pause, avoid } => {
                assert_eq!(avoid, Some(7));
                pauses.push(pause.as_millis());
            }
            Step::Done(outcome) => break outcome,
        }
    };
    assert_eq!(pauses, [0, 50, 100, 200, 400]);
    assert_eq!(end, unavailable());
}

#[test]
fn no_try_starts_after_the_deadline() {
    let mut tries = Tries::default();
    let first = tries.next(no_answer(NoAnswer::NotTaken), Duration::from_millis(1));
    assert!(matches!(first, Step::Again { .. }));
    let second = tries.next(no_answer(NoAnswer::NotTaken), Duration::from_millis(1));
    assert_eq!(second, Step::Done(unavailable()));
    let repeat = Tries::default().next(stumble(Again::Once), STUMBLE_PAUSE);
    assert_eq!(repeat, Step::Done(unavailable()));
}

#[test]
fn what_may_have_been_accepted_is_never_tried_again() {
    let lost = failed(
        Reason::UnknownOutcome,
        true,
        Health::ConnectionLost { connection: 7 },
    );
    assert_eq!(
        Tries::default().next(no_answer(NoAnswer::Lost), LEFT),
        Step::Done(lost)
    );
    let reset = failed(Reason::UnknownOutcome, true, Health::Faulty);
    assert_eq!(
        Tries::default().next(no_answer(NoAnswer::Reset), LEFT),
        Step::Done(reset)
    );
    let silent = failed(
        Reason::ProviderTimeout,
        true,
        Health::ConnectionLost { connection: 7 },
    );
    assert_eq!(
        Tries::default().next(no_answer(NoAnswer::Silent), LEFT),
        Step::Done(silent)
    );
    let timeout = failed(Reason::ProviderTimeout, true, Health::Faulty);
    assert_eq!(
        Tries::default().next(no_answer(NoAnswer::TimedOut), LEFT),
        Step::Done(timeout)
    );
}

#[test]
fn a_stumble_is_repeated_once_and_its_answer_stands_when_the_repeat_comes_to_nothing() {
    for nothing in [
        stumble(Again::Once),
        Try::NoLease(NoLease::Unreachable),
        Try::NoLease(NoLease::Full),
    ] {
        let mut tries = Tries::default();
        let first = tries.next(stumble(Again::Once), LEFT);
        assert_eq!(
            first,
            Step::Again {
                pause: STUMBLE_PAUSE,
                avoid: Some(7)
            }
        );
        assert_eq!(tries.next(nothing, LEFT), Step::Done(unavailable()));
    }
}

#[test]
fn a_repeat_that_is_answered_has_the_last_word() {
    let mut tries = Tries::default();
    let _ = tries.next(stumble(Again::Once), LEFT);
    let sent = Outcome::Sent { message_id: None };
    let answered = Try::Answered {
        judgement: Judgement {
            outcome: sent.clone(),
            again: Again::No,
        },
        refusal: None,
        connection: 8,
    };
    assert_eq!(tries.next(answered, LEFT), Step::Done(sent));
}

#[test]
fn no_connection_is_unreachable_and_no_turn_is_overload() {
    let unreachable = Tries::default().next(Try::NoLease(NoLease::Unreachable), Duration::ZERO);
    assert_eq!(unreachable, Step::Done(Outcome::Unreachable));
    let full = Tries::default().next(Try::NoLease(NoLease::Full), Duration::ZERO);
    assert_eq!(
        full,
        Step::Done(Outcome::Overloaded {
            retry_after: FULL_RETRY_AFTER
        })
    );
}

fn refused(again: Again, refusal: Option<Refusal>) -> Try {
    let reason = refusal.map_or(Reason::PayloadRejected, |_| Reason::RelayMisconfigured);
    Try::Answered {
        judgement: Judgement {
            outcome: failed(reason, false, Health::Answered),
            again,
        },
        refusal,
        connection: 7,
    }
}

#[test]
fn the_operator_hears_of_a_refusal_when_the_push_comes_to_it_and_of_none_that_another_connection_made_good() {
    let refusal = Refusal {
        status: 403,
        reason: "UnrelatedKeyIdInToken",
        advice: "",
    };
    let first = || refused(Again::OnAnotherConnection, Some(refusal));
    for (second, expected) in [
        (first(), Some(refusal)),
        (Try::NoLease(NoLease::Unreachable), Some(refusal)),
        (no_answer(NoAnswer::Lost), None),
        (refused(Again::No, None), None),
    ] {
        let mut tries = Tries::default();
        assert!(matches!(tries.next(first(), LEFT), Step::Again { .. }));
        let Step::Done(outcome) = tries.next(second, LEFT) else {
            panic!("a third try");
        };
        assert_eq!(tries.refusal(&outcome), expected);
    }
}
