use proptest::prelude::*;
use reqwest::header::{HeaderName, HeaderValue};

use super::*;

const BEGAN: UnixMillis = UnixMillis(1_000);

fn answer(status: u16, headers: &[(&'static str, &str)]) -> Answer {
    let pairs = headers.iter().map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )
    });
    Answer {
        status,
        headers: pairs.collect(),
        body: bytes::Bytes::new(),
    }
}

fn outcome(status: u16, headers: &[(&'static str, &str)]) -> Outcome {
    match read(&answer(status, headers), BEGAN, BEGAN) {
        Reading::Outcome(outcome) | Reading::TokenRefused(outcome) => outcome,
    }
}

fn described(status: u16, description: &str) -> Outcome {
    outcome(status, &[("x-wns-error-description", description)])
}

fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn certain(reason: Reason) -> Outcome {
    Outcome::Gone {
        certainty: Certainty::Certain,
        reason,
        since: BEGAN,
    }
}

fn conditional(reason: Reason) -> Outcome {
    Outcome::Gone {
        certainty: Certainty::Conditional,
        reason,
        since: BEGAN,
    }
}

#[test]
fn a_received_notification_is_sent_with_or_without_a_status_header() {
    assert_eq!(outcome(200, &[]), Outcome::Sent { message_id: None });
    let headers = [("x-wns-status", "Received"), ("x-wns-msg-id", "4CE1A2B3")];
    assert_eq!(
        outcome(200, &headers),
        Outcome::Sent {
            message_id: Some("4CE1A2B3".into())
        }
    );
}

#[test]
fn a_200_may_say_in_either_header_that_it_goes_nowhere() {
    for name in ["x-wns-status", "x-wns-notificationstatus"] {
        assert_eq!(
            failure(outcome(200, &[(name, "DROPPED")])).reason,
            Reason::Dropped
        );
        let throttled = failure(outcome(200, &[(name, "channelThrottled")]));
        assert_eq!(
            (throttled.reason, throttled.hold),
            (Reason::DeviceThrottled, Hold::Token)
        );
    }
}

#[test]
fn a_channel_that_ended_is_gone_and_a_blocked_domain_is_not() {
    assert_eq!(
        described(404, "The channel URI is not valid"),
        certain(Reason::Unregistered)
    );
    assert_eq!(
        described(410, "The channel expired"),
        certain(Reason::ExpiredToken)
    );
    assert_eq!(
        described(410, "The channel was REVOKED"),
        certain(Reason::Unregistered)
    );
    assert_eq!(
        outcome(410, &[("x-wns-debug-trace", "x")]),
        conditional(Reason::Unregistered)
    );
    assert_eq!(described(403, "not authorized"), conditional(Reason::WrongApp));
    for text in ["Domain Blocked", "the sending domain is blocked; channel expired"] {
        assert_eq!(
            failure(described(410, text)).reason,
            Reason::RelayMisconfigured,
            "{text}"
        );
    }
}

#[test]
fn without_any_header_of_wns_nothing_is_said_of_the_device() {
    for status in [403, 404, 410, 301, 302, 307, 308] {
        let failure = failure(outcome(status, &[("server", "some proxy")]));
        assert_eq!(
            (failure.reason, failure.retryable),
            (Reason::ProviderUnavailable, true),
            "{status}"
        );
    }
}

#[test]
fn a_throttled_channel_waits_as_told_or_a_minute() {
    let told = failure(outcome(
        406,
        &[("retry-after", "37"), ("x-wns-status", "channelthrottled")],
    ));
    assert_eq!(
        (told.retry_after, told.hold),
        (Some(Duration::from_secs(37)), Hold::Token)
    );
    assert_eq!(
        failure(outcome(406, &[])).retry_after,
        Some(Duration::from_secs(60))
    );
}

#[test]
fn the_rest_of_the_table() {
    assert!(matches!(
        read(&answer(401, &[]), BEGAN, BEGAN),
        Reading::TokenRefused(_)
    ));
    for status in [400, 413] {
        assert_eq!(failure(outcome(status, &[])).reason, Reason::PayloadRejected);
    }
    assert_eq!(failure(described(405, "x")).reason, Reason::RelayMisconfigured);
    let unavailable = failure(outcome(503, &[]));
    assert_eq!(
        (unavailable.reason, unavailable.health),
        (Reason::ProviderUnavailable, Health::Faulty)
    );
}

proptest! {
    #[test]
    fn arbitrary_descriptions_end_a_device_for_certain_only_by_the_documented_words(text in "[ -~]{0,60}") {
        if let Outcome::Gone { certainty: Certainty::Certain, .. } = described(410, text.trim()) {
            let lower = text.to_ascii_lowercase();
            prop_assert!((lower.contains("expired") || lower.contains("revoked")) && !lower.contains("blocked"));
        }
    }
}
