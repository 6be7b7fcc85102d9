use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::time::UnixMillis;

fn good() -> Value {
    json!({ "deviceToken": "aabb", "platform": "ios", "encryptedPayload": "sealed", "instanceKey": "key" })
}

fn with(field: &str, value: Value) -> Result<PushBody, InvalidPush> {
    let mut body = good();
    body[field] = value;
    PushBody::parse(body.to_string().as_bytes())
}

#[test]
fn the_body_of_the_deployed_runtime_parses_with_every_default() {
    let body = PushBody::parse(good().to_string().as_bytes()).unwrap();
    assert_eq!(body.instance_key.unwrap().expose(), "key");
    let message = body.message;
    assert_eq!(
        (message.platform, message.priority, message.ttl_seconds),
        (Platform::Ios, Priority::High, 2_419_200)
    );
    assert_eq!(
        (message.device_token.expose(), message.encrypted_payload.expose()),
        ("aabb", "sealed")
    );
    assert!(
        message.collapse_id.is_none() && message.environment.is_none() && message.idempotency_key.is_none()
    );
}

#[test]
fn every_option_is_read() {
    let mut body = good();
    body["priority"] = json!("normal");
    body["ttlSeconds"] = json!(0);
    body["collapseId"] = json!("chat");
    body["environment"] = json!("sandbox");
    body["idempotencyKey"] = json!("once");
    body["unknown"] = json!({ "deeply": [{}] });
    let message = PushBody::parse(body.to_string().as_bytes()).unwrap().message;
    assert_eq!((message.priority, message.ttl_seconds), (Priority::Normal, 0));
    assert_eq!(message.environment, Some(Environment::Sandbox));
    assert_eq!(message.collapse_id.unwrap().expose(), "chat");
    assert_eq!(message.idempotency_key.unwrap().expose(), "once");
}

#[test]
fn every_wrong_field_is_named() {
    let long = "x".repeat(200);
    let cases = [
        (
            "deviceToken",
            vec![json!(null), json!(""), json!(7), json!(["a"])],
            InvalidPush::DeviceToken,
        ),
        (
            "platform",
            vec![json!(null), json!("iOS"), json!("linux"), json!(1)],
            InvalidPush::Platform,
        ),
        (
            "encryptedPayload",
            vec![json!(null), json!(""), json!({})],
            InvalidPush::EncryptedPayload,
        ),
        (
            "instanceKey",
            vec![json!(""), json!(7), json!({})],
            InvalidPush::InstanceKey,
        ),
        (
            "priority",
            vec![json!("urgent"), json!(10)],
            InvalidPush::Priority,
        ),
        (
            "ttlSeconds",
            vec![json!(-1), json!(2_419_201), json!(1.5), json!("60"), json!(1e300)],
            InvalidPush::Ttl,
        ),
        (
            "collapseId",
            vec![json!(""), json!(long), json!(1)],
            InvalidPush::CollapseId,
        ),
        (
            "environment",
            vec![json!("development"), json!(0)],
            InvalidPush::Environment,
        ),
        (
            "idempotencyKey",
            vec![json!(""), json!(long), json!("a b"), json!(1)],
            InvalidPush::IdempotencyKey,
        ),
    ];
    for (field, values, error) in cases {
        for value in values {
            assert_eq!(with(field, value.clone()), Err(error), "{field} = {value}");
        }
    }
}

#[test]
fn an_optional_field_may_be_null() {
    for field in [
        "instanceKey",
        "priority",
        "ttlSeconds",
        "collapseId",
        "environment",
        "idempotencyKey",
    ] {
        assert!(with(field, Value::Null).is_ok(), "{field}");
    }
}

#[test]
fn a_word_in_the_form_of_an_object_is_no_word() {
    assert_eq!(
        with("priority", json!({ "high": null })),
        Err(InvalidPush::Priority)
    );
    let environment = json!({ "sandbox": null });
    assert_eq!(with("environment", environment), Err(InvalidPush::Environment));
}

#[test]
fn what_is_no_object_is_refused_and_told_what_is_wrong() {
    let nested = "[".repeat(10_000);
    let cases = [
        ("", InvalidPush::NotJson),
        ("{", InvalidPush::NotJson),
        ("{}x", InvalidPush::NotJson),
        (&nested, InvalidPush::NotAnObject),
        ("\u{feff}{}", InvalidPush::NotJson),
        ("null", InvalidPush::NotAnObject),
        ("7", InvalidPush::NotAnObject),
        ("\"x\"", InvalidPush::NotAnObject),
        (r#"["aabb","ios","sealed"]"#, InvalidPush::NotAnObject),
        (
            r#" {"deviceToken":"a","deviceToken":"b"}"#,
            InvalidPush::FieldTwice,
        ),
    ];
    for (wrong, error) in cases {
        assert_eq!(PushBody::parse(wrong.as_bytes()), Err(error), "{wrong:.20}");
    }
    assert_eq!(PushBody::parse(b"\xff\xfe{}"), Err(InvalidPush::NotJson));
    let unknown = good().to_string().replace('}', r#","x":"\ud800"}"#);
    assert_eq!(
        PushBody::parse(unknown.as_bytes()),
        PushBody::parse(good().to_string().as_bytes()),
        "a field of no meaning is not judged"
    );
}

#[test]
fn a_field_with_half_a_character_or_a_number_beyond_all_bounds_is_the_one_that_is_named() {
    let body = |field: &str, value: &str| {
        let mut body = good();
        body[field] = json!("<>");
        PushBody::parse(body.to_string().replace("\"<>\"", value).as_bytes())
    };
    let half = "\"\\ud800\"";
    assert_eq!(body("encryptedPayload", half), Err(InvalidPush::EncryptedPayload));
    assert_eq!(body("deviceToken", half), Err(InvalidPush::DeviceToken));
    assert_eq!(body("collapseId", half), Err(InvalidPush::CollapseId));
    assert_eq!(body("ttlSeconds", "1e999"), Err(InvalidPush::Ttl));
    assert_eq!(body("priority", "1e999"), Err(InvalidPush::Priority));
}

#[test]
fn nothing_of_a_message_is_printed() {
    let body = json!({
        "deviceToken": "marked-a", "platform": "ios", "encryptedPayload": "marked-b", "instanceKey": "marked-c",
        "collapseId": "marked-d", "idempotencyKey": "marked-e",
    });
    let printed = format!("{:?}", PushBody::parse(body.to_string().as_bytes()).unwrap());
    assert!(!printed.contains("marked"), "{printed}");
}

#[test]
fn answers_have_the_shape_that_callers_read() {
    let sent = serde_json::to_value(PushAnswer::sent(Some("id".into()))).unwrap();
    assert_eq!(sent, json!({ "result": "sent", "messageId": "id" }));
    let gone = PushAnswer::invalid_token(Reason::Unregistered, UnixMillis(1_700_000_000_000));
    let expected = json!({ "result": "invalid_token", "reason": "unregistered", "invalidSince": "2023-11-14T22:13:20Z" });
    assert_eq!(serde_json::to_value(gone).unwrap(), expected);
    let failed = serde_json::to_value(PushAnswer::failed(Reason::ProviderThrottled, true, Some(37))).unwrap();
    let expected = json!({ "result": "failed", "reason": "provider_throttled", "retryable": true, "retryAfterSeconds": 37 });
    assert_eq!(failed, expected);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = PushBody::parse(&bytes);
    }

    #[test]
    fn a_mutated_body_gives_a_message_or_an_error_and_no_panic(at in 0usize..100, byte in any::<u8>()) {
        let mut bytes = good().to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(body) = PushBody::parse(&bytes) {
            prop_assert!(!body.message.device_token.is_empty() && !body.message.encrypted_payload.is_empty());
        }
    }
}

#[test]
fn results_and_reasons_print_as_they_are_serialized() {
    let wire = |text: &str| serde_json::Value::String(text.to_owned());
    for result in [PushResult::Sent, PushResult::InvalidToken, PushResult::Failed] {
        assert_eq!(serde_json::to_value(result).unwrap(), wire(result.as_str()));
    }
    for reason in Reason::ALL {
        assert_eq!(serde_json::to_value(reason).unwrap(), wire(reason.as_str()));
    }
}
