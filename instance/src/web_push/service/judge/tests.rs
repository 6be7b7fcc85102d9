use actix_web::http::header::{HeaderName, HeaderValue};
use sovereign_relay_protocol::time::UnixMillis;

use super::*;
use crate::web_push::{Addresses, Endpoint, VapidKey, vapid::Vapid};

const ORIGIN: &str = "https://push.example";
const NOW: u64 = 1_700_000_000;

fn contact() -> Contact {
    Contact::parse("https://instance.example").unwrap()
}

fn token(key: &VapidKey, endpoint: &str, now: u64) -> String {
    let endpoint = Endpoint::parse(endpoint, Addresses::Public).unwrap();
    let vapid = Vapid::new(key, contact()).unwrap();
    let value = vapid.authorization(&endpoint, UnixMillis(now * 1000)).unwrap();
    value.to_str().unwrap().to_owned()
}

fn body() -> Vec<u8> {
    let mut body = vec![0; 200];
    body[20] = 65;
    body
}

struct Case {
    key: VapidKey,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Case {
    fn right() -> Self {
        let key = VapidKey::generate().unwrap();
        let authorization = token(&key, "https://push.example/send/1", NOW);
        let case = Self {
            key,
            headers: HeaderMap::new(),
            body: body(),
        };
        case.with("authorization", &authorization)
            .with("content-encoding", "aes128gcm")
            .with("ttl", "60")
            .with("urgency", "high")
            .with("topic", "abc_-9")
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.insert(HeaderName::from_static(name), value);
        self
    }

    fn without(mut self, name: &'static str) -> Self {
        self.headers.remove(HeaderName::from_static(name));
        self
    }

    fn with_body(self, body: Vec<u8>) -> Self {
        Self { body, ..self }
    }

    fn judge(&self) -> Result<Stored, u16> {
        self.judge_at(NOW)
    }

    fn judge_at(&self, now: u64) -> Result<Stored, u16> {
        judge(&self.headers, &self.body, ORIGIN, &self.key.public_key(), now).map_err(|refusal| refusal.0)
    }
}

#[test]
fn a_right_message_is_stored_with_what_was_said_about_it() {
    let stored = Case::right().judge().unwrap();
    assert_eq!(stored.ttl_seconds, 60);
    assert_eq!(stored.urgency.as_deref(), Some("high"));
    assert_eq!(stored.topic.as_deref(), Some("abc_-9"));
    assert_eq!(stored.body, body());
    assert!(Case::right().without("urgency").without("topic").judge().is_ok());
}

#[test]
fn who_sends_is_checked() {
    let other = VapidKey::generate().unwrap();
    let of_other = token(&other, "https://push.example/send/1", NOW);
    assert_eq!(Case::right().with("authorization", &of_other).judge(), Err(403));
    let right = Case::right();
    let elsewhere = token(&right.key, "https://elsewhere.example/1", NOW);
    assert_eq!(right.with("authorization", &elsewhere).judge(), Err(403));
    let right = Case::right();
    let (of_other_token, _) = of_other.split_once(", k=").unwrap();
    let named = format!("{of_other_token}, k={}", right.key.public_key());
    assert_eq!(right.with("authorization", &named).judge(), Err(403));
    assert_eq!(Case::right().without("authorization").judge(), Err(401));
    assert_eq!(Case::right().with("authorization", "Bearer x").judge(), Err(401));
}

#[test]
fn a_token_that_is_over_or_too_long_is_refused() {
    let case = Case::right();
    assert!(case.judge_at(NOW + 12 * 3600 - 1).is_ok());
    assert_eq!(case.judge_at(NOW + 12 * 3600), Err(403));
    assert!(case.judge_at(NOW - 12 * 3600).is_ok());
    assert_eq!(case.judge_at(NOW - 12 * 3600 - 1), Err(403));
}

#[test]
fn what_is_no_push_message_is_refused() {
    for (case, status) in [
        (Case::right().without("ttl"), 400),
        (Case::right().with("ttl", "soon"), 400),
        (Case::right().with("urgency", "urgent"), 400),
        (Case::right().with("topic", ""), 400),
        (Case::right().with("topic", "a topic"), 400),
        (Case::right().with("topic", &"x".repeat(33)), 400),
        (Case::right().without("content-encoding"), 415),
        (Case::right().with("content-encoding", "aesgcm"), 415),
        (Case::right().with_body(vec![0; 4097]), 413),
        (Case::right().with_body(vec![0; 86]), 400),
        (Case::right().with_body(vec![0; 200]), 400),
    ] {
        assert_eq!(case.judge(), Err(status));
    }
}
