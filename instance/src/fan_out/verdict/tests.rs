use proptest::prelude::*;
use sovereign_relay_client::protocol::time::UnixMillis;

use super::*;

const NOW: u64 = 1_800_000_000;

const ROW: RowFacts = RowFacts {
    target_created_at: NOW - 100,
    ttl_until: NOW + 3600,
    attempts: 0,
    first_attempt_at: NOW,
    is_remembered: false,
};

fn refusal(code: Option<ErrorCode>, retry_after: Option<u64>) -> Refusal {
    Refusal {
        code,
        status: code.map_or(0, ErrorCode::status),
        message: String::new(),
        retry_after: retry_after.map(Duration::from_secs),
    }
}

fn refused(code: ErrorCode, retry_after: Option<u64>) -> Met {
    Met::of_place(Err(refusal(Some(code), retry_after)))
}

fn failed(reason: Reason, retryable: bool, retry_after: Option<u64>) -> Met {
    Met::of_place(Ok(PushOutcome::Failed {
        reason: Some(reason),
        retryable,
        retry_after: retry_after.map(Duration::from_secs),
    }))
}

fn gone(since_millis: u64) -> Met {
    Met::of_place(Ok(PushOutcome::InvalidToken {
        reason: Some(Reason::Unregistered),
        since: UnixMillis(since_millis),
    }))
}

fn decided(met: &Met) -> Verdict {
    decide(ROW, met, NOW, u64::MAX)
}

#[test]
fn what_waits_for_a_relay_that_is_away_is_told_within_a_minute_of_its_return() {
    let row = RowFacts { attempts: 40, ..ROW };
    let wait = |met: &Met| match decide(row, met, NOW, u64::MAX).action {
        Action::Retry { at, .. } => at - NOW,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        wait(&refused(ErrorCode::Draining, None)),
        LONGEST_SHARED_WAIT_SECONDS
    );
    // One message's own trouble, and what may have been taken.
    assert_eq!(
        wait(&failed(Reason::UnknownOutcome, true, None)),
        LONGEST_WAIT_SECONDS
    );
    assert_eq!(
        wait(&refused(ErrorCode::InternalError, None)),
        LONGEST_WAIT_SECONDS
    );
}

#[test]
fn what_was_sent_is_noted_and_forgotten() {
    let sent = decided(&Met::of_place(Ok(PushOutcome::Sent { message_id: None })));
    assert_eq!(
        (sent.action, sent.outcome, sent.reason),
        (Action::Used, Outcome::Sent, "")
    );
}

#[test]
fn only_a_registration_older_than_the_second_it_went_in_is_removed() {
    let created = ROW.target_created_at;
    for (since_millis, removed) in [
        ((created - 1) * 1000, false),
        (created * 1000, false),
        (created * 1000 + 999, false),
        ((created + 1) * 1000, true),
    ] {
        let verdict = decided(&gone(since_millis));
        if removed {
            let since = Some(created + 1);
            assert_eq!(verdict.action, Action::Prune { since });
            assert_eq!(
                (verdict.outcome, verdict.reason),
                (Outcome::Pruned, "unregistered")
            );
        } else {
            assert_eq!(verdict.action, Action::Done);
            assert_eq!(
                (verdict.outcome, verdict.reason),
                (Outcome::Kept, "registered_again")
            );
        }
    }
}

#[test]
fn what_is_wrong_with_the_message_is_final() {
    for code in [
        ErrorCode::InvalidRequest,
        ErrorCode::PayloadTooLarge,
        ErrorCode::IdempotencyConflict,
        ErrorCode::PlatformNotConfigured,
    ] {
        let verdict = decided(&refused(code, None));
        assert_eq!(
            (verdict.action, verdict.outcome, verdict.reason),
            (Action::Done, Outcome::Failed, code.as_str())
        );
    }
    let rejected = decided(&failed(Reason::PayloadRejected, false, None));
    assert_eq!(
        (rejected.action, rejected.reason),
        (Action::Done, "payload_rejected")
    );
    assert_eq!(
        decided(&Met::of_call(&CallError::Unreadable(413))).action,
        Action::Done
    );
}

#[test]
fn what_the_relay_or_the_way_to_it_is_to_blame_for_is_tried_again() {
    let codes = [
        ErrorCode::RateLimited,
        ErrorCode::Overloaded,
        ErrorCode::Draining,
        ErrorCode::SendFailed,
        ErrorCode::InternalError,
        ErrorCode::RequestTimeout,
        ErrorCode::Suspended,
        ErrorCode::NotConfigured,
    ];
    let mut met: Vec<Met> = codes.map(|code| refused(code, None)).to_vec();
    met.push(failed(Reason::UnknownOutcome, true, None));
    met.push(failed(Reason::RelayMisconfigured, false, None));
    met.extend([404, 502, 302].map(|status| Met::of_call(&CallError::Unreadable(status))));
    for met in met {
        let verdict = decided(&met);
        assert!(matches!(verdict.action, Action::Retry { .. }), "{met:?}");
        assert_eq!(verdict.outcome, Outcome::Retrying);
    }
}

#[test]
fn a_code_of_a_later_version_is_tried_again_only_where_the_relay_names_a_time() {
    let later = decided(&Met::of_place(Err(refusal(None, Some(9)))));
    assert!(matches!(later.action, Action::Retry { .. }));
    assert_eq!(
        decided(&Met::of_place(Err(refusal(None, None)))).outcome,
        Outcome::Failed
    );
}

#[test]
fn an_answer_that_was_lost_keeps_its_ttl_and_one_that_was_a_refusal_may_have_another() {
    let forgotten = |met: &Met| match decided(met).action {
        Action::Retry { forgotten, .. } => forgotten,
        action => panic!("{action:?}"),
    };
    assert!(!forgotten(&Met::of_call(&CallError::Unreadable(502))));
    assert!(!forgotten(&refused(ErrorCode::InternalError, None)));
    assert!(forgotten(&refused(ErrorCode::RateLimited, None)));
    assert!(forgotten(&failed(Reason::ProviderTimeout, true, None)));
}

#[test]
fn a_try_that_was_surely_not_seen_does_not_undo_one_before_it_that_may_have_been() {
    let row = RowFacts {
        first_attempt_at: NOW - 60,
        is_remembered: true,
        ..ROW
    };
    let held = Met::Held {
        until: NOW + 9,
        reason: "relay_off",
    };
    for met in [refused(ErrorCode::RateLimited, None), held] {
        let action = decide(row, &met, NOW, 0).action;
        assert!(
            matches!(action, Action::Retry { forgotten: false, .. }),
            "{met:?}"
        );
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_asked_for_while_the_relay_remembers_and_never_sent_twice() {
    let unclear = Met::of_call(&CallError::Unreadable(200));
    let after = |passed| decide(ROW, &unclear, NOW + passed, 0);
    for passed in [0, 60, REMEMBERED_SECONDS - 1] {
        let at = NOW + passed + 1;
        assert_eq!(after(passed).action, Action::Retry { at, forgotten: false });
    }
    let last = after(REMEMBERED_SECONDS);
    assert_eq!(
        (last.action, last.outcome, last.reason),
        (Action::Done, Outcome::Failed, "unreadable_answer")
    );
}

#[test]
fn what_is_held_comes_up_at_its_ttl_at_the_latest() {
    let held = |until| Met::Held {
        until,
        reason: "relay_revoked",
    };
    let at = |at| Action::Retry { at, forgotten: true };
    assert_eq!(decided(&held(NOW + 60)).action, at(NOW + 60));
    assert_eq!(decided(&held(u64::MAX)).action, at(ROW.ttl_until));
    assert_eq!(decided(&held(0)).action, at(NOW + 1));
    let over = decide(ROW, &held(NOW), ROW.ttl_until, 0);
    assert_eq!((over.action, over.outcome), (Action::Done, Outcome::Expired));
}

#[test]
fn now_or_never_is_tried_once() {
    let row = RowFacts {
        ttl_until: NOW,
        ..ROW
    };
    let verdict = decide(row, &refused(ErrorCode::Overloaded, Some(1)), NOW, 0);
    assert_eq!(
        (verdict.action, verdict.outcome, verdict.reason),
        (Action::Done, Outcome::Expired, "overloaded")
    );
}

#[test]
fn the_last_try_is_made_before_the_ttl_is_over() {
    let row = RowFacts {
        attempts: 30,
        ttl_until: NOW + 100,
        ..ROW
    };
    let verdict = decide(row, &failed(Reason::ProviderTimeout, true, None), NOW, u64::MAX);
    let at = NOW + 99;
    assert_eq!(verdict.action, Action::Retry { at, forgotten: true });
}

#[test]
fn a_relay_that_refuses_most_is_left_alone_for_the_shortest_time_it_names() {
    let limited = |after| refused(ErrorCode::RateLimited, Some(after));
    let pause = |met: &[Met]| pause_until(met.iter(), NOW);
    assert_eq!(pause(&[Met::Sent, limited(9), limited(7)]), Some(NOW + 7));
    assert_eq!(
        pause(&[Met::Sent, Met::Sent, limited(9)]),
        None,
        "one device's limit, perhaps"
    );
    let throttled = failed(Reason::DeviceThrottled, true, Some(9));
    assert_eq!(pause(&[throttled]), None, "says nothing of the others");
    assert_eq!(pause(&[Met::of_call(&CallError::Unreadable(502))]), None);
    assert_eq!(pause(&[limited(u64::MAX)]), Some(NOW + LONGEST_PAUSE_SECONDS));
    assert_eq!(pause(&[]), None);
}

fn any_met() -> impl Strategy<Value = Met> {
    let code = prop::sample::select(ErrorCode::ALL.to_vec());
    let wait = prop::option::of(prop_oneof![0_u64..100_000, Just(u64::MAX)]);
    prop_oneof![
        Just(Met::Sent),
        any::<u64>().prop_map(gone),
        Just(Met::Gone {
            since: None,
            reason: "gone"
        }),
        (any::<bool>(), wait.clone()).prop_map(|(retryable, wait)| failed(Reason::Dropped, retryable, wait)),
        (prop::option::of(code), wait).prop_map(|(code, wait)| Met::of_place(Err(refusal(code, wait)))),
        any::<u16>().prop_map(|status| Met::of_call(&CallError::Unreadable(status))),
        any::<u64>().prop_map(|until| Met::Held {
            until,
            reason: "held"
        }),
    ]
}

proptest! {
    #[test]
    fn nothing_is_tried_early_or_after_its_ttl_and_nothing_newer_is_removed(
        met in any_met(),
        created in 0..=NOW,
        ttl in 0_u64..100_000,
        passed in 0_u64..200_000,
        attempts: u32,
        is_remembered: bool,
        draw: u64,
    ) {
        let row = RowFacts {
            target_created_at: created,
            ttl_until: NOW + ttl,
            attempts,
            first_attempt_at: NOW - 100,
            is_remembered,
        };
        let now = NOW + passed;
        let verdict = decide(row, &met, now, draw);
        match verdict.action {
            Action::Retry { at, forgotten } => {
                prop_assert!(!(forgotten && is_remembered));
                prop_assert!(now < row.ttl_until && at > now && at <= row.ttl_until);
                if let Met::Later(Later { after: Some(after), .. }) = met {
                    prop_assert!(at >= now.saturating_add(after).min(row.ttl_until));
                }
                if let Met::Held { until, .. } = met {
                    prop_assert!(at >= until.min(row.ttl_until));
                }
                prop_assert_eq!(verdict.outcome, Outcome::Retrying);
            }
            Action::Prune { since } => {
                let is_gone = matches!(met, Met::Gone { .. });
                prop_assert!(is_gone);
                prop_assert!(since.is_none_or(|since| created < since));
            }
            Action::Used => prop_assert_eq!(&met, &Met::Sent),
            Action::Done => {
                let other = [Outcome::Sent, Outcome::Pruned, Outcome::Retrying];
                prop_assert!(!other.contains(&verdict.outcome));
            }
        }
        if let Some(until) = pause_until([&met].into_iter(), now) {
            prop_assert!(until > now);
        }
    }
}
