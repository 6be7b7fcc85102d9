use super::*;
use crate::{
    lane::sent_memory::tests::token as token_hash,
    ports::{Health, Hold},
};

const SINCE: UnixMillis = UnixMillis(1_700_000_000_000);

fn scope(generation: u64) -> Scope {
    Scope {
        name: "apns/production/fs.sovereign.mobile".into(),
        generation,
    }
}

fn case(of: u8, token: u64) -> Case {
    Case {
        scope: Some(scope(1)),
        key: TurnKey::Group(of.into()),
        token: token_hash(token),
    }
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn sent() -> Outcome {
    Outcome::Sent {
        message_id: Some("id".into()),
    }
}

fn gone(certainty: Certainty) -> Outcome {
    Outcome::Gone {
        certainty,
        reason: Reason::BadToken,
        since: SINCE,
    }
}

fn is_gone(verdict: &Verdict) -> bool {
    *verdict == Verdict::Answer(PushAnswer::invalid_token(Reason::BadToken, SINCE))
}

fn is_failed(verdict: &Verdict, reason: Reason) -> bool {
    *verdict == Verdict::Answer(PushAnswer::failed(reason, true, Some(600)))
}

#[test]
fn a_certain_verdict_passes_on_a_new_relay_with_the_providers_timestamp() {
    let mut judge = Judge::default();
    assert!(is_gone(&judge.judge(&case(1, 1), gone(Certainty::Certain), s(0))));
}

#[test]
fn a_conditional_verdict_is_unconfirmed_until_something_was_sent() {
    let mut judge = Judge::default();
    let verdict = judge.judge(&case(1, 1), gone(Certainty::Conditional), s(0));
    assert!(is_failed(&verdict, Reason::UnconfirmedToken));
    judge.judge(&case(2, 2), sent(), s(1));
    assert!(is_gone(&judge.judge(
        &case(1, 1),
        gone(Certainty::Conditional),
        s(2)
    )));
}

#[test]
fn two_hundred_bad_tokens_of_several_instances_are_held_with_an_alarm_and_a_real_410_still_passes() {
    let mut judge = Judge::default();
    (0..20).for_each(|token| drop(judge.judge(&case(1, 10_000 + token), sent(), s(0))));
    let mut held = 0;
    for token in 0..200_u8 {
        let case = case(token % 4, token.into());
        let verdict = judge.judge(&case, gone(Certainty::Conditional), s(1 + u64::from(token) / 4));
        held += usize::from(is_failed(&verdict, Reason::RelayMisconfigured));
        assert!(
            token < 3 || !is_gone(&verdict),
            "the guard before, the fuse after: nobody is called gone"
        );
    }
    assert!(held >= 180, "{held}");
    let changes = judge.take_changes();
    assert_eq!(changes.len(), 1);
    assert!(changes[0].gauge && changes[0].change.fuse == FuseName::Conditional);
    assert!(is_gone(&judge.judge(
        &case(1, 900),
        gone(Certainty::Certain),
        s(60)
    )));
}

#[test]
fn one_instances_invented_tokens_leave_the_others_verdicts_alone_on_a_quiet_relay_too() {
    for invented in [10_u64, 200] {
        let mut judge = Judge::default();
        judge.judge(&case(1, 1), sent(), s(0));
        for token in 0..invented {
            judge.judge(&case(66, 10_000 + token), gone(Certainty::Conditional), s(1_000));
        }
        judge.judge(&case(1, 1), sent(), s(1_001));
        assert!(is_gone(&judge.judge(
            &case(1, 2),
            gone(Certainty::Conditional),
            s(1_002)
        )));
    }
}

#[test]
fn the_second_fuse_holds_certain_verdicts_too() {
    let mut judge = Judge::default();
    (0..60).for_each(|token| drop(judge.judge(&case(1, token), sent(), s(0))));
    let verdicts: Vec<_> = (0..60)
        .map(|token| judge.judge(&case(1, token), gone(Certainty::Certain), s(10)))
        .collect();
    assert_eq!(verdicts.iter().filter(|verdict| is_gone(verdict)).count(), 30);
    assert!(is_failed(verdicts.last().unwrap(), Reason::RelayMisconfigured));
    let verdict = judge.judge(&case(2, 99), gone(Certainty::Conditional), s(11));
    assert!(is_failed(&verdict, Reason::RelayMisconfigured));
}

#[test]
fn a_new_generation_starts_anew_and_late_answers_of_the_old_one_prove_nothing() {
    let mut judge = Judge::default();
    (0..60).for_each(|token| drop(judge.judge(&case(1, token), sent(), s(0))));
    (0..60).for_each(|token| drop(judge.judge(&case(1, token), gone(Certainty::Certain), s(10))));
    assert!(judge.take_changes().iter().any(|change| change.gauge));
    let new = Case {
        scope: Some(scope(2)),
        ..case(1, 1)
    };
    assert!(is_gone(&judge.judge(&new, gone(Certainty::Certain), s(11))));
    let closed = judge.take_changes();
    assert!(
        !closed.is_empty() && closed.iter().all(|change| !change.gauge),
        "its alarms end with it"
    );
    judge.judge(&case(1, 1), sent(), s(12));
    let verdict = judge.judge(&new, gone(Certainty::Conditional), s(13));
    assert!(
        is_failed(&verdict, Reason::UnconfirmedToken),
        "the old key's `sent` says nothing of the new"
    );
    let verdict = judge.judge(&case(1, 1), gone(Certainty::Conditional), s(13));
    assert!(is_failed(&verdict, Reason::UnconfirmedToken));
    assert_eq!(judge.fuses().len(), 1);
}

#[test]
fn scopes_do_not_share_evidence_and_their_number_is_bounded() {
    let mut judge = Judge::default();
    for number in 0..3 * SCOPES {
        let scope = Some(Scope {
            name: format!("topic-{number}").into(),
            generation: 1,
        });
        let verdict = judge.judge(&Case { scope, ..case(1, 1) }, gone(Certainty::Conditional), s(0));
        assert!(is_failed(&verdict, Reason::UnconfirmedToken));
        let scope = Some(Scope {
            name: format!("topic-{number}").into(),
            generation: 1,
        });
        judge.judge(&Case { scope, ..case(1, 1) }, sent(), s(0));
    }
    assert_eq!(judge.fuses().len(), SCOPES);
}

#[test]
fn a_malformed_token_needs_proof_for_windows_only() {
    let mut judge = Judge::default();
    let answer = judge.malformed(&case(1, 1), Platform::Ios, SINCE, s(0));
    assert_eq!(answer, PushAnswer::invalid_token(Reason::MalformedToken, SINCE));
    let answer = judge.malformed(&case(1, 2), Platform::Windows, SINCE, s(0));
    assert_eq!(answer.reason, Some(Reason::UnconfirmedToken));
    judge.judge(&case(1, 3), sent(), s(1));
    let answer = judge.malformed(&case(1, 2), Platform::Windows, SINCE, s(2));
    assert_eq!(answer, PushAnswer::invalid_token(Reason::MalformedToken, SINCE));
}

#[test]
fn malformed_tokens_of_many_instances_are_held_and_never_spoil_the_guard() {
    let mut judge = Judge::default();
    judge.judge(&case(9, 1), sent(), s(0));
    let answers: Vec<_> = (0..12_u8)
        .map(|of| judge.malformed(&case(of, 100 + u64::from(of)), Platform::Android, SINCE, s(1)))
        .collect();
    assert_eq!(
        answers
            .iter()
            .filter(|answer| answer.reason == Some(Reason::RelayMisconfigured))
            .count(),
        3
    );
    let other = Judge::default();
    let mut judge = other;
    judge.judge(&case(9, 1), sent(), s(0));
    (0..8_u64).for_each(|token| drop(judge.malformed(&case(1, 100 + token), Platform::Android, SINCE, s(1))));
    assert!(is_gone(&judge.judge(
        &case(9, 2),
        gone(Certainty::Conditional),
        s(2)
    )));
}

#[test]
fn an_unconfirmed_token_has_the_same_hint_whoever_says_so() {
    let failure = Failure {
        reason: Reason::UnconfirmedToken,
        retryable: true,
        retry_after: None,
        hold: Hold::Nothing,
        health: Health::Answered,
    };
    let verdict = Judge::default().judge(&case(1, 1), Outcome::Failed(failure), s(0));
    assert!(is_failed(&verdict, Reason::UnconfirmedToken));
}

#[test]
fn what_is_no_statement_about_the_token_goes_through_with_a_clamped_hint() {
    let mut judge = Judge::default();
    let failure = |retryable, retry_after, hold| Failure {
        reason: Reason::ProviderUnavailable,
        retryable,
        retry_after,
        hold,
        health: Health::Faulty,
    };
    let ms = Duration::from_millis;
    let cases = [
        (true, Some(ms(36_100)), Hold::Nothing, Some(37)),
        (true, Some(s(9_999_999)), Hold::Provider, Some(3_600)),
        (true, Some(ms(0)), Hold::Token, Some(1)),
        (true, None, Hold::Nothing, None),
        (true, None, Hold::Provider, Some(60)),
        (false, Some(s(5)), Hold::Nothing, None),
    ];
    for (retryable, retry_after, hold, seconds) in cases {
        let verdict = judge.judge(
            &case(1, 1),
            Outcome::Failed(failure(retryable, retry_after, hold)),
            s(0),
        );
        let expected = PushAnswer::failed(Reason::ProviderUnavailable, retryable, seconds);
        assert_eq!(verdict, Verdict::Answer(expected));
    }
    let verdict = judge.judge(&case(1, 1), Outcome::Unreachable, s(0));
    assert_eq!(
        verdict,
        Verdict::Unreachable {
            retry_after: UNREACHABLE_RETRY
        }
    );
    let verdict = judge.judge(&case(1, 1), Outcome::Overloaded { retry_after: ms(1) }, s(0));
    assert_eq!(verdict, Verdict::Overloaded { retry_after: s(1) });
    assert_eq!(judge.tokens(), 0);
}
