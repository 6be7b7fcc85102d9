use std::time::Duration;

use proptest::prelude::*;
use sovereign_relay_actors::push::TurnKey;
use sovereign_relay_protocol::{
    envelope::CollapseTag,
    platform::{Environment, Platform},
    redacted::Redacted,
};
use uuid::Uuid;

use super::*;

fn delivery() -> Delivery {
    Delivery {
        sender: TurnKey::Group(1),
        platform: Platform::Ios,
        environment: Environment::Production,
        token: TargetToken::Apple(Redacted::new("00FFab")),
        payload: Redacted::new("sealed"),
        priority: Priority::High,
        ttl_seconds: 60,
        collapse: Some(CollapseTag::from_mac(&[0; 32])),
        message_id: Uuid::from_u128(0xABCD),
        deadline: Duration::ZERO,
    }
}

fn build(delivery: &Delivery) -> ApnsRequest {
    let app = App {
        topic: HeaderValue::from_static("fs.sovereign.mobile"),
        title: " ".to_owned(),
        scope: Arc::from("scope"),
    };
    let origin = Origin::new("api.push.apple.com", 443, true).unwrap();
    ApnsRequest::new(delivery, &app, &origin, UnixMillis(1_700_000_000_001)).unwrap()
}

#[test]
fn the_request_is_the_documented_one() {
    let request = build(&delivery());
    assert_eq!(request.head.method(), Method::POST);
    assert_eq!(request.head.uri(), "https://api.push.apple.com/3/device/00FFab");
    let mut headers: Vec<_> = request
        .head
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    let expected = [
        "apns-collapse-id: AAAAAAAAAAAAAAAAAAAAAA",
        "apns-expiration: 1700000061",
        "apns-id: 00000000-0000-0000-0000-00000000abcd",
        "apns-priority: 10",
        "apns-push-type: alert",
        "apns-topic: fs.sovereign.mobile",
    ];
    assert_eq!(headers, expected);
    let body = r#"{"aps":{"mutable-content":1,"alert":{"title":" "},"sound":"default"},"encryptedPayload":"sealed"}"#;
    assert_eq!(request.body, body);
}

#[test]
fn normal_priority_is_five_and_no_collapse_id_is_no_header() {
    let request = build(&Delivery {
        priority: Priority::Normal,
        collapse: None,
        ..delivery()
    });
    assert_eq!(request.head.headers()["apns-priority"], "5");
    assert!(!request.head.headers().contains_key("apns-collapse-id"));
}

#[test]
fn what_differs_between_pushes_is_never_indexed_and_what_does_not_is() {
    let request = build(&delivery());
    let sensitive = |name: &str| request.head.headers()[name].is_sensitive();
    assert!(
        ["apns-id", "apns-expiration", "apns-collapse-id"]
            .into_iter()
            .all(sensitive)
    );
    assert!(
        !["apns-topic", "apns-push-type", "apns-priority"]
            .into_iter()
            .any(sensitive)
    );
}

#[test]
fn a_token_of_another_provider_is_no_push_for_apns() {
    let app = App {
        topic: HeaderValue::from_static("a"),
        title: String::new(),
        scope: Arc::from("scope"),
    };
    let origin = Origin::new("localhost", 1, true).unwrap();
    let foreign = Delivery {
        token: TargetToken::Fcm(Redacted::new("x")),
        ..delivery()
    };
    assert_eq!(
        ApnsRequest::new(&foreign, &app, &origin, UnixMillis(0)).err(),
        Some(NotForApns)
    );
}

#[test]
fn an_origin_leaves_out_the_default_port_and_brackets_an_ipv6_address() {
    let uri = |host: &str, port, tls| {
        Origin::new(host, port, tls)
            .unwrap()
            .device_uri("ab")
            .unwrap()
            .to_string()
    };
    assert_eq!(uri("localhost", 2197, true), "https://localhost:2197/3/device/ab");
    assert_eq!(uri("::1", 8080, false), "http://[::1]:8080/3/device/ab");
    assert!(Origin::new("not a host", 443, true).is_none());
}

proptest! {
    #[test]
    fn expiration_is_in_the_future_and_capped_and_zero_only_for_a_ttl_of_zero(
        ttl in any::<u32>(), millis in 0_u64..10_000_000_000_000,
    ) {
        let at = expiration(ttl, UnixMillis(millis));
        if ttl == 0 {
            prop_assert_eq!(at, 0);
        } else {
            prop_assert!(at * 1000 > millis);
            prop_assert!(at <= millis / 1000 + 1 + u64::from(TTL_SECONDS));
        }
    }
}
