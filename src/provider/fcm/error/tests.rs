mod arbitrary;

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use sovereign_relay_actors::ports::Failure;
use sovereign_relay_protocol::time::UnixMillis;

use super::{body::BAD_TOKEN_MESSAGE, *};

const BEGAN: UnixMillis = UnixMillis(1_000);
const TOKEN: &str = "dev:APA91bExample";
const FCM_ERROR: &str = "type.googleapis.com/google.firebase.fcm.v1.FcmError";

fn reading(status: u16, body: impl Into<bytes::Bytes>) -> Reading {
    let answer = Answer::new((status, HeaderMap::new(), body.into()), BEGAN, BEGAN);
    read(&answer, &Redacted::new(TOKEN))
}

fn read_body(status: u16, body: impl Into<bytes::Bytes>) -> Outcome {
    reading(status, body).outcome()
}

fn refused_as(status: u16, body: String) -> &'static str {
    match reading(status, body) {
        Reading::RelayRefused(refusal) | Reading::TokenRefused(refusal) => refusal.reason,
        other @ (Reading::Outcome(_) | Reading::PerhapsRelayRefused(_)) => panic!("{other:?}"),
    }
}

fn error(message: &str, details: Vec<Value>) -> String {
    json!({ "error": { "code": 0, "message": message, "status": "X", "details": details } }).to_string()
}

fn fcm(code: &str) -> Value {
    json!({ "@type": FCM_ERROR, "errorCode": code })
}

fn violations(fields: &[&str]) -> Value {
    let fields: Vec<_> = fields
        .iter()
        .map(|field| json!({ "field": field, "description": "bad" }))
        .collect();
    json!({ "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields })
}

fn quota(violation: Value) -> Value {
    json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation] })
}

fn is_gone(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Gone { .. })
}

fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_200_with_a_name_is_sent_and_without_one_nobody_knows() {
    let named = json!({ "name": "projects/p/messages/0:123" }).to_string();
    assert_eq!(
        read_body(200, named),
        Outcome::Sent {
            message_id: Some("0:123".into())
        }
    );
    assert_eq!(
        read_body(200, r#"{"name":""}"#),
        Outcome::Sent { message_id: None }
    );
    for (status, body) in [(200, "<html>"), (200, "{}"), (200, ""), (204, "")] {
        let failure = failure(read_body(status, body));
        assert_eq!(
            (failure.reason, failure.retryable),
            (Reason::UnknownOutcome, true),
            "{status} {body}"
        );
    }
}

#[test]
fn another_success_may_have_been_accepted_and_a_redirect_was_not() {
    for (status, reason) in [
        (202, Reason::UnknownOutcome),
        (204, Reason::UnknownOutcome),
        (302, Reason::ProviderUnavailable),
    ] {
        let failure = failure(read_body(status, "{}"));
        assert_eq!((failure.reason, failure.retryable), (reason, true), "{status}");
    }
}

#[test]
fn only_unregistered_in_an_fcm_error_is_certain() {
    let certain = Outcome::Gone {
        certainty: Certainty::Certain,
        reason: Reason::Unregistered,
        since: BEGAN,
    };
    assert_eq!(
        read_body(
            404,
            error("Requested entity was not found.", vec![fcm("UNREGISTERED")])
        ),
        certain
    );
    let unnamed = read_body(404, error("Requested entity was not found.", vec![]));
    assert_eq!(failure(unnamed).reason, Reason::RelayMisconfigured);
    for body in ["", "UNREGISTERED", "{}"] {
        assert_eq!(
            failure(read_body(404, body)).reason,
            Reason::ProviderUnavailable,
            "{body}"
        );
    }
    for status in [400, 401, 403, 500] {
        assert!(
            !is_gone(&read_body(status, error("", vec![fcm("UNREGISTERED")]))),
            "{status}"
        );
    }
}

#[test]
fn both_shapes_of_a_bad_token_are_conditional() {
    let expected = Outcome::Gone {
        certainty: Certainty::Conditional,
        reason: Reason::BadToken,
        since: BEGAN,
    };
    let documented = error(BAD_TOKEN_MESSAGE, vec![fcm("INVALID_ARGUMENT")]);
    let named = error(
        "whatever",
        vec![fcm("INVALID_ARGUMENT"), violations(&["message.token"])],
    );
    assert_eq!(read_body(400, documented), expected);
    assert_eq!(read_body(400, named), expected);
}

#[test]
fn an_invalid_argument_about_anything_else_is_the_payloads() {
    let bodies = [
        error("Android message is too big", vec![fcm("INVALID_ARGUMENT")]),
        error(BAD_TOKEN_MESSAGE, vec![]),
        error(
            BAD_TOKEN_MESSAGE,
            vec![fcm("INVALID_ARGUMENT"), violations(&["message.data[0].value"])],
        ),
        error(
            "x",
            vec![
                fcm("INVALID_ARGUMENT"),
                violations(&["message.token", "message.android.ttl"]),
            ],
        ),
        error("x", vec![violations(&["message.token"])]),
        error(
            "x",
            vec![fcm("INVALID_ARGUMENT"), violations(&["message.token.x"])],
        ),
    ];
    for body in bodies {
        let failure = failure(read_body(400, body.clone()));
        assert_eq!(
            (failure.reason, failure.retryable),
            (Reason::PayloadRejected, false),
            "{body}"
        );
    }
}

#[test]
fn details_of_other_kinds_and_shapes_change_nothing() {
    let odd = [
        json!({ "@type": "type.googleapis.com/google.rpc.Help", "links": [{ "url": "x" }] }),
        json!({ "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": "none" }),
        json!("text"),
        json!(null),
    ];
    for detail in odd {
        let body = error("gone", vec![detail, fcm("UNREGISTERED")]);
        assert!(is_gone(&read_body(404, body.clone())), "{body}");
    }
    for message in [json!(null), json!(7), json!({ "text": "gone" })] {
        let body = json!({ "error": { "message": message, "details": [fcm("UNREGISTERED")] } });
        assert!(is_gone(&read_body(404, body.to_string())), "{body}");
    }
}

#[test]
fn what_is_not_exactly_an_fcm_error_is_none() {
    let bodies = [
        json!({ "@type": "google.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED" }),
        json!({ "@type": format!("x{FCM_ERROR}"), "errorCode": "UNREGISTERED" }),
        json!({ "@type": FCM_ERROR, "errorCode": "unregistered" }),
        json!({ "@type": FCM_ERROR, "errorCode": ["UNREGISTERED"] }),
        json!({ "@type": FCM_ERROR, "error_code": "UNREGISTERED" }),
        json!({ "@type": FCM_ERROR }),
    ];
    for detail in bodies {
        assert_eq!(
            refused_as(404, error("", vec![detail.clone()])),
            "not_found",
            "{detail}"
        );
    }
    let two = error("", vec![fcm("UNREGISTERED"), fcm("INTERNAL")]);
    assert_eq!(refused_as(404, two), "not_found");
}

#[test]
fn a_violation_that_cannot_be_read_is_not_the_absence_of_one() {
    let kind = "type.googleapis.com/google.rpc.BadRequest";
    for odd in [
        json!({ "@type": kind, "fieldViolations": "message.data" }),
        json!({ "@type": kind, "fieldViolations": [{ "path": "message.data" }] }),
    ] {
        let body = error(BAD_TOKEN_MESSAGE, vec![fcm("INVALID_ARGUMENT"), odd]);
        assert_eq!(failure(read_body(400, body)).reason, Reason::PayloadRejected);
    }
}

#[test]
fn a_token_of_another_project_is_conditional_and_any_other_403_is_the_relays() {
    let mismatch = read_body(403, error("SenderId mismatch", vec![fcm("SENDER_ID_MISMATCH")]));
    assert_eq!(
        mismatch,
        Outcome::Gone {
            certainty: Certainty::Conditional,
            reason: Reason::WrongApp,
            since: BEGAN
        }
    );
    assert_eq!(refused_as(403, error("denied", vec![])), "permission_denied");
    assert_eq!(
        refused_as(403, error("", vec![fcm("THIRD_PARTY_AUTH_ERROR")])),
        "third_party_auth"
    );
}

#[test]
fn a_401_without_a_detail_is_the_access_token_and_with_one_the_project() {
    let expired = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ACCESS_TOKEN_EXPIRED",
    });
    for body in [error("", vec![]), error("", vec![expired]), "<html>".to_owned()] {
        assert!(matches!(reading(401, body), Reading::TokenRefused(_)));
    }
    let third = reading(401, error("", vec![fcm("THIRD_PARTY_AUTH_ERROR")]));
    assert!(matches!(
        third,
        Reading::RelayRefused(Refusal {
            reason: "third_party_auth",
            ..
        })
    ));
}

#[test]
fn a_429_is_the_projects_unless_it_names_a_device() {
    let of_project = "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per minute'";
    let project = [
        error("", vec![]),
        error(of_project, vec![fcm("QUOTA_EXCEEDED")]),
        error(
            "",
            vec![quota(json!({ "subject": "project:p", "description": "rate" }))],
        ),
        error(
            "",
            vec![quota(json!({ "description": "messages to all devices" }))],
        ),
        String::new(),
    ];
    for body in project {
        let failure = failure(read_body(429, body.clone()));
        assert_eq!(
            (failure.reason, failure.hold),
            (Reason::ProviderThrottled, Hold::Provider),
            "{body}"
        );
        assert_eq!(
            (failure.retry_after, failure.health),
            (Some(Duration::from_secs(60)), Health::Answered)
        );
    }
    let device = [
        error("Device message rate exceeded", vec![fcm("QUOTA_EXCEEDED")]),
        error("", vec![quota(json!({ "subject": "device" }))]),
        error("", vec![quota(json!({ "subject": format!("token:{TOKEN}") }))]),
        error(
            "",
            vec![quota(
                json!({ "description": "The rate of one device is exceeded" }),
            )],
        ),
        error(
            "",
            vec![quota(
                json!({ "quotaMetric": "fcm.googleapis.com/device_message_rate" }),
            )],
        ),
        error(
            "",
            vec![quota(
                json!({ "quotaId": "MessagesPerDevicePerMinutePerProject" }),
            )],
        ),
        error("", vec![quota(json!({ "subject": "DEVICE_MESSAGE_RATE" }))]),
    ];
    for body in device {
        let failure = failure(read_body(429, body.clone()));
        assert_eq!(
            (failure.reason, failure.hold),
            (Reason::DeviceThrottled, Hold::Token),
            "{body}"
        );
    }
}

#[test]
fn a_wait_is_taken_from_the_answer_in_both_forms_and_clamped() {
    let waited = |status, text: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", text.parse().unwrap());
        let now = UnixMillis(784_111_777_000);
        let answer = Answer::new((status, headers, bytes::Bytes::new()), now, now);
        let outcome = read(&answer, &Redacted::new(TOKEN)).outcome();
        let failure = failure(outcome);
        (failure.retry_after.map(|wait| wait.as_secs()), failure.hold)
    };
    assert_eq!(waited(429, "37"), (Some(37), Hold::Provider));
    assert_eq!(
        waited(429, "Sun, 06 Nov 1994 08:50:14 GMT"),
        (Some(37), Hold::Provider)
    );
    assert_eq!(waited(429, "86400"), (Some(3600), Hold::Provider));
    assert_eq!(waited(429, "soon"), (Some(60), Hold::Provider));
    assert_eq!(waited(503, "37"), (Some(37), Hold::Provider));
    assert_eq!(waited(503, "soon"), (None, Hold::Nothing));
}

#[test]
fn answers_that_are_not_of_fcms_making_are_retryable_or_an_alarm() {
    for status in [301, 302, 307, 407, 408] {
        let failure = failure(read_body(status, "<html>"));
        assert_eq!(
            (failure.reason, failure.retryable, failure.health),
            (Reason::ProviderUnavailable, true, Health::Answered),
            "{status}"
        );
    }
    for status in [402, 405, 410, 418] {
        assert_eq!(refused_as(status, error("", vec![])), "unexpected", "{status}");
    }
}

#[test]
fn a_4xx_without_googles_envelope_is_final_for_nobody_and_an_alarm_where_the_relay_may_be_refused() {
    for status in [400, 402, 403, 404, 405, 410, 413, 418, 451] {
        for body in ["", "<html>", "{}", r#"{"error":"text"}"#, r#"{"error":null}"#] {
            let reading = reading(status, body);
            let alarms = matches!(reading, Reading::PerhapsRelayRefused(_));
            assert_eq!(alarms, [403, 404].contains(&status), "{status} {body}");
            let failure = failure(reading.outcome());
            assert_eq!(
                (failure.reason, failure.retryable),
                (Reason::ProviderUnavailable, true),
                "{status} {body}"
            );
        }
    }
}

#[test]
fn a_server_error_is_retryable_and_counts_for_the_breaker() {
    for (status, body) in [
        (500, error("", vec![fcm("INTERNAL")])),
        (502, "<html>".into()),
        (503, String::new()),
    ] {
        let failure = failure(read_body(status, body));
        assert_eq!(
            (failure.reason, failure.retryable),
            (Reason::ProviderUnavailable, true)
        );
        assert_eq!(failure.health, Health::Faulty);
    }
}
