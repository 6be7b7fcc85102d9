use proptest::prelude::*;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::*;

const BEGAN: UnixMillis = UnixMillis(1_000);

fn read_body(status: u16, body: impl Into<String>) -> Outcome {
    let answer = Answer {
        status,
        headers: HeaderMap::new(),
        body: body.into().into(),
    };
    match read(&answer, BEGAN, BEGAN) {
        Reading::Outcome(outcome) | Reading::TokenRefused(outcome) => outcome,
    }
}

fn error(message: &str, details: Vec<Value>) -> String {
    json!({ "error": { "code": 0, "message": message, "status": "X", "details": details } }).to_string()
}

fn fcm(code: &str) -> Value {
    json!({ "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code })
}

fn violations(fields: &[&str]) -> Value {
    let fields: Vec<_> = fields
        .iter()
        .map(|field| json!({ "field": field, "description": "bad" }))
        .collect();
    json!({ "@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": fields })
}

fn quota(subject: &str, description: &str) -> Value {
    let violation = json!({ "subject": subject, "description": description });
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
fn an_accepted_message_is_sent_whatever_its_body() {
    let named = json!({ "name": "projects/p/messages/0:123" }).to_string();
    assert_eq!(
        read_body(200, named),
        Outcome::Sent {
            message_id: Some("0:123".into())
        }
    );
    assert_eq!(read_body(200, "<html>"), Outcome::Sent { message_id: None });
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
    for body in [
        error("Requested entity was not found.", vec![]),
        String::new(),
        "UNREGISTERED".into(),
        "{}".into(),
    ] {
        assert_eq!(failure(read_body(404, body)).reason, Reason::RelayMisconfigured);
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
        "<html>400</html>".to_owned(),
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
    for body in [
        error("denied", vec![]),
        error("", vec![fcm("THIRD_PARTY_AUTH_ERROR")]),
        String::new(),
    ] {
        assert_eq!(failure(read_body(403, body)).reason, Reason::RelayMisconfigured);
    }
}

#[test]
fn a_401_without_a_detail_is_the_access_token_and_with_one_the_project() {
    let answer = |body: String| Answer {
        status: 401,
        headers: HeaderMap::new(),
        body: body.into(),
    };
    assert!(matches!(
        read(&answer(error("", vec![])), BEGAN, BEGAN),
        Reading::TokenRefused(_)
    ));
    let third = read(
        &answer(error("", vec![fcm("THIRD_PARTY_AUTH_ERROR")])),
        BEGAN,
        BEGAN,
    );
    assert!(matches!(
        third,
        Reading::Outcome(Outcome::Failed(Failure {
            reason: Reason::RelayMisconfigured,
            ..
        }))
    ));
}

#[test]
fn a_429_is_the_projects_unless_it_names_a_device() {
    let project = [
        error("", vec![]),
        error("", vec![fcm("QUOTA_EXCEEDED"), quota("project:p", "rate")]),
        String::new(),
    ];
    for body in project {
        let failure = failure(read_body(429, body));
        assert_eq!(
            (failure.reason, failure.hold),
            (Reason::ProviderThrottled, Hold::Provider)
        );
        assert_eq!(
            (failure.retry_after, failure.health),
            (Some(Duration::from_secs(60)), Health::Answered)
        );
    }
    for violation in [
        quota("device", ""),
        quota("", "The rate of one device is exceeded"),
    ] {
        let failure = failure(read_body(429, error("", vec![fcm("QUOTA_EXCEEDED"), violation])));
        assert_eq!(
            (failure.reason, failure.hold),
            (Reason::DeviceThrottled, Hold::Token)
        );
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

proptest! {
    #[test]
    fn no_status_with_arbitrary_text_is_a_devices_end(status in 200u16..600, body in ".{0,200}") {
        prop_assert!(!is_gone(&read_body(status, body)));
    }

    #[test]
    fn one_changed_byte_never_makes_an_end_of_what_was_none(at in 0usize..400, byte in any::<u8>()) {
        let harmless = [
            (404, error("Requested entity was not found.", vec![])),
            (400, error("Android message is too big", vec![fcm("INVALID_ARGUMENT")])),
            (403, error("denied", vec![])),
        ];
        for (status, body) in harmless {
            let mut bytes = body.into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            let answer = Answer { status, headers: HeaderMap::new(), body: bytes.into() };
            let Reading::Outcome(outcome) = read(&answer, BEGAN, BEGAN) else { panic!("no 401 here") };
            prop_assert!(!is_gone(&outcome));
        }
    }
}
