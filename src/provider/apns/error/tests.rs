use http::header::RETRY_AFTER;
use proptest::prelude::*;

use super::*;

const BEGAN: UnixMillis = UnixMillis(1_700_000_000_000);
const NOW: UnixMillis = UnixMillis(1_700_000_000_500);

fn judge(status: u16, body: &str) -> Judgement {
    judge_with(status, body, &HeaderMap::new())
}

fn judge_with(status: u16, body: &str, headers: &HeaderMap) -> Judgement {
    let status = StatusCode::from_u16(status).unwrap();
    Answer::new(status, headers, Some(body.as_bytes()), NOW).judge(BEGAN, NOW)
}

fn judge_reason(status: u16, reason: &str) -> Judgement {
    judge(status, &format!(r#"{{"reason":"{reason}"}}"#))
}

fn failure(judgement: &Judgement) -> &Failure {
    match &judgement.outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn gone(certainty: Certainty, reason: Reason, since: UnixMillis) -> Outcome {
    Outcome::Gone {
        certainty,
        reason,
        since,
    }
}

#[test]
fn a_200_is_sent_under_the_providers_name_of_it() {
    let mut headers = HeaderMap::new();
    headers.insert("apns-id", "an-id".parse().unwrap());
    let expected = Outcome::Sent {
        message_id: Some("an-id".to_owned()),
    };
    assert_eq!(judge_with(200, "", &headers).outcome, expected);
    assert_eq!(judge(200, "").outcome, Outcome::Sent { message_id: None });
    headers.insert("apns-id", "y".repeat(9_000).parse().unwrap());
    assert_eq!(
        judge_with(200, "", &headers).outcome,
        Outcome::Sent { message_id: None },
        "not Apple's, and not for the caller"
    );
}

#[test]
fn the_two_documented_410s_are_certain_and_carry_apples_timestamp() {
    let since = UnixMillis(1_600_000_000_123);
    for (word, reason) in [
        ("Unregistered", Reason::Unregistered),
        ("ExpiredToken", Reason::ExpiredToken),
    ] {
        let body = format!(r#"{{"reason":"{word}","timestamp":{}}}"#, since.0);
        assert_eq!(
            judge(410, &body),
            Judgement::last(gone(Certainty::Certain, reason, since))
        );
        assert_eq!(
            judge_reason(410, word).outcome,
            gone(Certainty::Certain, reason, BEGAN)
        );
    }
}

#[test]
fn a_timestamp_in_the_future_is_cut_to_now() {
    let body = format!(
        r#"{{"reason":"Unregistered","timestamp":{}}}"#,
        NOW.0 + 86_400_000
    );
    assert_eq!(
        judge(410, &body).outcome,
        gone(Certainty::Certain, Reason::Unregistered, NOW)
    );
}

#[test]
fn a_410_without_apples_word_for_it_deletes_nothing() {
    let bodies = [
        "",
        "<html>",
        r#"{"reason":"SomethingNew"}"#,
        r#"{"reason":"BadDeviceToken"}"#,
        r#"{"timestamp":1}"#,
    ];
    for body in bodies {
        let judgement = judge(410, body);
        assert_eq!(failure(&judgement).reason, Reason::UnconfirmedToken, "{body}");
    }
}

#[test]
fn the_two_words_that_a_wrong_relay_also_earns_are_conditional() {
    let bad = gone(Certainty::Conditional, Reason::BadToken, BEGAN);
    assert_eq!(judge_reason(400, "BadDeviceToken"), Judgement::last(bad));
    let wrong = gone(Certainty::Conditional, Reason::WrongApp, BEGAN);
    assert_eq!(
        judge_reason(400, "DeviceTokenNotForTopic"),
        Judgement::last(wrong)
    );
}

#[test]
fn what_refuses_the_relay_is_the_relays_fault_and_not_worth_a_retry() {
    let cases = [
        (400, "BadTopic"),
        (400, "MissingTopic"),
        (400, "TopicDisallowed"),
        (400, "BadExpirationDate"),
        (400, "BadMessageId"),
        (400, "BadPriority"),
        (400, "DuplicateHeaders"),
        (400, "InvalidPushType"),
        (400, "PayloadEmpty"),
        (403, "BadCertificate"),
        (403, "BadCertificateEnvironment"),
        (403, "ExpiredProviderToken"),
        (403, "Forbidden"),
        (403, "InvalidProviderToken"),
        (403, "MissingProviderToken"),
        (403, "BadEnvironmentKeyIdInToken"),
        (403, "SomethingNew"),
        (404, "BadPath"),
        (405, "MethodNotAllowed"),
        (429, "TooManyProviderTokenUpdates"),
    ];
    for (status, reason) in cases {
        let judgement = judge_reason(status, reason);
        assert_eq!(judgement, Judgement::misconfigured(), "{status} {reason}");
        assert!(!failure(&judgement).retryable && failure(&judgement).health == Health::Answered);
    }
}

#[test]
fn a_key_that_does_not_fit_the_connection_gets_another_connection_once() {
    let judgement = judge_reason(403, "UnrelatedKeyIdInToken");
    assert_eq!(judgement.again, Again::OnAnotherConnection);
    assert_eq!(failure(&judgement).reason, Reason::RelayMisconfigured);
}

#[test]
fn what_the_caller_sent_wrong_is_rejected_for_good() {
    let cases = [
        (400, "BadCollapseId"),
        (400, "MissingDeviceToken"),
        (400, "SomethingNew"),
        (413, "PayloadTooLarge"),
        (413, "x"),
    ];
    for (status, reason) in cases {
        let judgement = judge_reason(status, reason);
        assert_eq!(
            failure(&judgement).reason,
            Reason::PayloadRejected,
            "{status} {reason}"
        );
        assert!(!failure(&judgement).retryable);
    }
}

#[test]
fn too_many_requests_hold_this_device_only() {
    for body in [r#"{"reason":"TooManyRequests"}"#, ""] {
        let judgement = judge(429, body);
        let expected = Failure {
            reason: Reason::DeviceThrottled,
            retryable: true,
            retry_after: Some(Duration::from_secs(60)),
            hold: Hold::Token,
            health: Health::Answered,
        };
        assert_eq!(failure(&judgement), &expected);
    }
}

#[test]
fn a_500_or_503_is_tried_once_more_and_counts_against_the_provider() {
    let cases = [
        (500, "InternalServerError", Again::Once),
        (503, "ServiceUnavailable", Again::Once),
        (503, "Shutdown", Again::OnAnotherConnection),
        (500, "SomethingNew", Again::Once),
        (502, "", Again::No),
        (504, "", Again::No),
    ];
    for (status, reason, again) in cases {
        let judgement = judge_reason(status, reason);
        assert_eq!(judgement.again, again, "{status} {reason}");
        assert_eq!(
            judgement.outcome,
            failed(Reason::ProviderUnavailable, true, Health::Faulty)
        );
    }
}

#[test]
fn a_refusal_whose_body_was_lost_is_no_verdict_and_may_be_retried() {
    for status in 400..500 {
        let status = StatusCode::from_u16(status).unwrap();
        let answer = Answer::new(status, &HeaderMap::new(), None, NOW);
        assert_eq!(answer.label(), "unreadable");
        let judgement = answer.judge(BEGAN, NOW);
        let reason = match status {
            StatusCode::TOO_MANY_REQUESTS => Reason::ProviderThrottled,
            _ => Reason::ProviderUnavailable,
        };
        assert_eq!(judgement, Judgement::failed(reason, true), "{status}");
    }
}

#[test]
fn a_refusal_that_is_not_in_apples_form_passes_and_the_operator_hears_of_one_that_forbids() {
    for body in [
        "",
        "<html>",
        "{}",
        r#"{"reason":7}"#,
        r#"{"error":"BadDeviceToken"}"#,
    ] {
        for status in [400, 405, 413] {
            assert_eq!(
                judge(status, body).outcome,
                not_the_providers(),
                "{status} {body}"
            );
        }
        for status in [403, 404] {
            let expected = Judgement::failed(Reason::RelayMisconfigured, true);
            assert_eq!(judge(status, body), expected, "{status} {body}");
        }
    }
}

#[test]
fn other_answers_need_no_body() {
    let judge_status = |status| {
        let status = StatusCode::from_u16(status).unwrap();
        Answer::new(status, &HeaderMap::new(), None, NOW).judge(BEGAN, NOW)
    };
    assert_eq!(judge_status(200).outcome, Outcome::Sent { message_id: None });
    assert_eq!(judge_status(503), judge(503, ""));
    assert_eq!(judge_status(502), judge(502, ""));
}

#[test]
fn a_hint_is_read_in_both_forms_kept_in_bounds_and_forbids_the_repeat() {
    let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_millis(NOW.0 + 37_000));
    let cases = [
        ("37", 37),
        (date.as_str(), 36),
        ("0", 1),
        ("999999", 3600),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 1),
    ];
    for (text, seconds) in cases {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
        let judgement = judge_with(503, "", &headers);
        let wait = failure(&judgement).retry_after.unwrap();
        assert_eq!(wait.as_secs(), seconds, "{text}");
        assert_eq!(
            (failure(&judgement).hold, judgement.again),
            (Hold::Provider, Again::No)
        );
    }
    let headers = HeaderMap::from_iter([(RETRY_AFTER, "soon".parse().unwrap())]);
    assert_eq!(failure(&judge_with(503, "", &headers)).retry_after, None);
}

#[test]
fn an_idle_timeout_is_the_connections_end_not_the_pushs() {
    let judgement = judge_reason(400, "IdleTimeout");
    assert_eq!(judgement.again, Again::OnAnotherConnection);
    assert!(failure(&judgement).retryable);
}

#[test]
fn every_documented_reason_is_read_and_printed_as_apple_writes_it() {
    assert_eq!(ApnsReason::ALL.len(), 32);
    for reason in ApnsReason::ALL {
        let read: ApnsReason = serde_json::from_str(&format!("\"{}\"", reason.as_str())).unwrap();
        assert_eq!(read, *reason);
    }
}

proptest! {
    #[test]
    fn nothing_but_the_documented_pairs_calls_a_device_gone(
        status in 200_u16..600,
        index in 0_usize..64,
        timestamp in prop_oneof![Just("1".to_owned()), Just("\"x\"".to_owned()), Just("-5".to_owned())],
    ) {
        let word = ApnsReason::ALL.get(index).map_or("SomethingNew", |reason| reason.as_str());
        let body = format!(r#"{{"reason":"{word}","timestamp":{timestamp}}}"#);
        let documented = matches!(
            (status, word),
            (410, "Unregistered" | "ExpiredToken") | (400, "BadDeviceToken" | "DeviceTokenNotForTopic")
        );
        let is_gone = matches!(judge(status, &body).outcome, Outcome::Gone { .. });
        prop_assert_eq!(is_gone, documented);
    }

    #[test]
    fn no_body_panics_or_makes_a_device_gone(status in 200_u16..600, body in prop::collection::vec(any::<u8>(), 0..64)) {
        let status = StatusCode::from_u16(status).unwrap();
        let judgement = Answer::new(status, &HeaderMap::new(), Some(&body), NOW).judge(BEGAN, NOW);
        let is_gone = matches!(judgement.outcome, Outcome::Gone { .. });
        prop_assert!(!is_gone);
    }
}
