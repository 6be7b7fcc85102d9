use proptest::prelude::*;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sovereign_relay_actors::ports::Failure;
use sovereign_relay_protocol::time::UnixMillis;

use super::*;

const BEGAN: UnixMillis = UnixMillis(1_000);

fn answer(status: u16, headers: &[(&'static str, &str)]) -> Answer {
    let pairs = headers.iter().map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )
    });
    whole(status, pairs.collect())
}

fn whole(status: u16, headers: HeaderMap) -> Answer {
    Answer::new((status, headers, bytes::Bytes::new()), BEGAN, BEGAN)
}

fn outcome(status: u16, headers: &[(&'static str, &str)]) -> Outcome {
    read(&answer(status, headers)).outcome()
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
}

#[test]
fn a_blocked_domain_is_an_alarm_whatever_else_is_said() {
    for text in [
        "Domain Blocked",
        "DOMAIN BLOCKED",
        "the sending domain is blocked; channel expired",
        "Domain  Block",
    ] {
        let reading = read(&answer(410, &[("x-wns-error-description", text)]));
        assert!(
            matches!(
                reading,
                Reading::RelayRefused(Refusal {
                    reason: "domain_blocked",
                    ..
                })
            ),
            "{text}"
        );
    }
}

#[test]
fn without_any_header_of_wns_nothing_is_said_of_the_device() {
    for status in [400, 403, 404, 405, 410, 413, 418, 301, 302, 307, 308] {
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
    assert!(matches!(read(&answer(401, &[])), Reading::TokenRefused(_)));
    for status in [400, 413] {
        assert_eq!(failure(described(status, "x")).reason, Reason::PayloadRejected);
    }
    assert_eq!(failure(described(405, "x")).reason, Reason::RelayMisconfigured);
    let maybe = failure(outcome(202, &[]));
    assert_eq!((maybe.reason, maybe.retryable), (Reason::UnknownOutcome, true));
    for status in [500, 502, 503] {
        let unavailable = failure(outcome(status, &[]));
        assert_eq!(
            (unavailable.reason, unavailable.health, unavailable.hold),
            (Reason::ProviderUnavailable, Health::Faulty, Hold::Nothing)
        );
    }
    let later = failure(outcome(503, &[("retry-after", "37")]));
    assert_eq!(
        (later.retry_after, later.hold),
        (Some(Duration::from_secs(37)), Hold::Provider)
    );
}

fn lines(status: u16, lines: &[&[u8]]) -> Reading {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append("x-wns-error-description", HeaderValue::from_bytes(line).unwrap());
    }
    read(&whole(status, headers))
}

fn is_blocked(reading: &Reading) -> bool {
    matches!(reading, Reading::RelayRefused(refusal) if refusal.reason == "domain_blocked")
}

#[test]
fn a_line_that_says_blocked_wins_wherever_it_stands_and_whatever_the_status() {
    for status in [403, 404, 410] {
        assert!(is_blocked(&lines(
            status,
            &[b"The channel expired", b"Domain Blocked"]
        )));
        assert!(is_blocked(&lines(
            status,
            &[b"Domain Blocked", b"The channel expired"]
        )));
        assert!(is_blocked(&lines(status, &[b"\xfcber: Domain Blocked"])));
    }
}

#[test]
fn a_description_that_can_not_be_read_may_say_blocked_and_ends_nobody() {
    for text in [&b"Domain Bl\xf6cked"[..], "Domäne gesperrt".as_bytes()] {
        for status in [403, 404, 410] {
            let both: [&[u8]; 2] = [b"channel expired", text];
            for said in [&[text][..], &both] {
                let failure = failure(lines(status, said).outcome());
                assert_eq!(
                    (failure.reason, failure.retryable),
                    (Reason::UnconfirmedToken, true)
                );
            }
        }
    }
}

#[test]
fn only_a_whole_sentence_about_the_channel_is_certain() {
    for text in [
        "channel expired",
        "The  channel has expired.",
        "Channel URI expired",
        "CHANNEL EXPIRED",
    ] {
        assert_eq!(described(410, text), certain(Reason::ExpiredToken), "{text}");
    }
    for text in [
        "access token expired",
        "The channel has not expired",
        "the channel's access token expired",
        "expired",
        "channel",
        "",
        "the revoked channel",
    ] {
        assert_eq!(described(410, text), conditional(Reason::Unregistered), "{text}");
    }
    let contradiction = lines(410, &[b"channel expired", b"channel revoked"]);
    assert_eq!(contradiction.outcome(), conditional(Reason::Unregistered));
    let twice = lines(410, &[b"channel expired", b"The channel expired."]);
    assert_eq!(twice.outcome(), certain(Reason::ExpiredToken));
}

proptest! {
    #[test]
    fn arbitrary_descriptions_end_a_device_for_certain_only_by_the_documented_words(text in "[ -~]{0,60}") {
        if let Outcome::Gone { certainty: Certainty::Certain, .. } = described(410, text.trim()) {
            let lower = text.to_ascii_lowercase();
            prop_assert!(lower.contains("channel") && (lower.contains("expired") || lower.contains("revoked")));
            prop_assert!(!lower.contains("block"));
        }
    }

    #[test]
    fn no_answer_without_a_header_of_wns_is_a_devices_end(
        status in 200u16..600,
        name in "[a-z]{1,8}(-[a-z]{1,8}){0,2}",
        text in "[ -~]{0,40}",
    ) {
        prop_assume!(!name.starts_with("x-wns-"));
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(text.trim()).unwrap());
        let gone = matches!(read(&whole(status, headers)).outcome(), Outcome::Gone { .. });
        prop_assert!(!gone);
    }

    #[test]
    fn with_a_header_of_wns_only_three_statuses_are(status in 200u16..600) {
        let gone = matches!(described(status, "The channel expired"), Outcome::Gone { .. });
        prop_assert_eq!(gone, [403, 404, 410].contains(&status));
    }
}
