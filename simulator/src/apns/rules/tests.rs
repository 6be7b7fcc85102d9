use http::{HeaderName, HeaderValue};

use super::*;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// The fields of a good request with these on top or instead.
fn check(pairs: &[(&str, &str)]) -> Result<(), Refusal> {
    let options = ApnsOptions::default();
    let mut all = headers(&[("apns-topic", &options.bundle_id)]);
    for (name, value) in headers(pairs) {
        all.insert(name.unwrap(), value);
    }
    check_fields(&all, &options)
}

#[test]
fn each_bad_field_has_its_documented_reason() {
    let long = "é".repeat(33);
    for (name, value, reason) in [
        ("apns-topic", "com.example.other", "TopicDisallowed"),
        ("apns-topic", "not a topic", "BadTopic"),
        ("apns-priority", "7", "BadPriority"),
        ("apns-priority", "high", "BadPriority"),
        ("apns-expiration", "soon", "BadExpirationDate"),
        ("apns-expiration", "-1", "BadExpirationDate"),
        ("apns-push-type", "shout", "InvalidPushType"),
        ("apns-collapse-id", &long, "BadCollapseId"),
        ("apns-collapse-id", "", "BadCollapseId"),
    ] {
        let refused = check(&[(name, value)]).unwrap_err();
        assert_eq!((refused.status, refused.reason), (400, reason), "{name}: {value}");
    }
    assert_eq!(
        check_fields(&HeaderMap::new(), &ApnsOptions::default()),
        Err(Refusal::MISSING_TOPIC)
    );
}

#[test]
fn good_fields_and_absent_ones_pass() {
    assert_eq!(check(&[]), Ok(()));
    let good = [
        ("apns-priority", "5"),
        ("apns-expiration", "0"),
        ("apns-push-type", "background"),
        ("apns-collapse-id", "abc"),
        ("apns-topic", "fs.sovereign.simulator.macos"),
    ];
    assert_eq!(check(&good), Ok(()));
}

#[test]
fn a_background_notification_must_not_have_priority_10() {
    let pairs = [("apns-push-type", "background"), ("apns-priority", "10")];
    assert_eq!(check(&pairs), Err(Refusal::BAD_PRIORITY));
}

#[test]
fn path_and_method_are_checked_in_this_order() {
    assert_eq!(device_token(&Method::POST, "/3/device/00ff"), Ok("00ff"));
    assert_eq!(
        device_token(&Method::POST, "/3/device/"),
        Err(Refusal::MISSING_DEVICE_TOKEN)
    );
    assert_eq!(
        device_token(&Method::GET, "/3/device/00ff"),
        Err(Refusal::METHOD_NOT_ALLOWED)
    );
    assert_eq!(
        device_token(&Method::POST, "/2/device/00ff"),
        Err(Refusal::BAD_PATH)
    );
}

#[test]
fn a_field_that_comes_twice_is_refused() {
    let twice = headers(&[("apns-priority", "5"), ("apns-priority", "5")]);
    assert_eq!(single_headers(&twice), Err(Refusal::DUPLICATE_HEADERS));
    assert_eq!(
        single_headers(&headers(&[("apns-priority", "5"), ("x-other", "1")])),
        Ok(())
    );
}

#[test]
fn a_message_id_is_a_canonical_lower_case_uuid() {
    let id = "0190b4a6-8c1e-7d3a-9f00-0123456789ab";
    assert_eq!(message_id(&headers(&[("apns-id", id)])), Ok(Some(id.to_owned())));
    assert_eq!(message_id(&HeaderMap::new()), Ok(None));
    for bad in ["abc", &id.to_uppercase(), &id.replace('-', "")] {
        assert_eq!(
            message_id(&headers(&[("apns-id", bad)])),
            Err(Refusal::BAD_MESSAGE_ID),
            "{bad}"
        );
    }
}

#[test]
fn a_body_of_4096_bytes_passes_and_one_more_does_not() {
    let body = |bytes: usize| format!("{{\"aps\":{{}},\"e\":\"{}\"}}", "x".repeat(bytes - 17));
    assert_eq!(body(4096).len(), 4096);
    assert_eq!(payload(body(4096).as_bytes()), Ok(()));
    assert_eq!(payload(body(4097).as_bytes()), Err(Refusal::PAYLOAD_TOO_LARGE));
    assert_eq!(payload(b""), Err(Refusal::PAYLOAD_EMPTY));
    assert_eq!(payload(b"{}"), Err(Refusal::PAYLOAD_EMPTY));
    assert_eq!(payload(b"not json"), Err(Refusal::PAYLOAD_EMPTY));
}
