use jsonwebtoken::{DecodingKey, Validation};
use serde::Deserialize;

use super::*;
use crate::web_push::address::Addresses;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

#[derive(Deserialize)]
struct Read {
    aud: String,
    exp: u64,
    sub: String,
}

fn vapid(key: &VapidKey) -> Vapid {
    Vapid::new(key, Contact::parse("mailto:push@instance.example").unwrap()).unwrap()
}

fn key() -> VapidKey {
    VapidKey::generate().unwrap()
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text, Addresses::Public).unwrap()
}

fn at(vapid: &Vapid, text: &str, now: UnixMillis) -> String {
    let value = vapid.authorization(&endpoint(text), now).unwrap();
    value.to_str().unwrap().to_owned()
}

/// Checks the signature with the key in the header, as a push service does.
fn read(authorization: &str) -> Read {
    let (token, key) = authorization
        .strip_prefix("vapid t=")
        .and_then(|rest| rest.split_once(", k="))
        .unwrap();
    let point = URL_SAFE_NO_PAD.decode(key).unwrap();
    let (x, y) = point[1..].split_at(32);
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    let verifier = DecodingKey::from_ec_components(&x, &y).unwrap();
    let mut validation = Validation::new(Algorithm::ES256);
    validation.validate_exp = false;
    validation.validate_aud = false;
    jsonwebtoken::decode::<Read>(token, &verifier, &validation)
        .unwrap()
        .claims
}

const fn plus_seconds(seconds: u64) -> UnixMillis {
    UnixMillis(NOW.0 + seconds * 1000)
}

#[test]
fn a_token_is_for_the_origin_ends_within_twelve_hours_and_names_a_contact() {
    let vapid = vapid(&key());
    let claims = read(&at(&vapid, "https://push.example:8443/send/1?a=b", NOW));
    assert_eq!(claims.aud, "https://push.example:8443");
    assert_eq!(claims.exp, NOW.seconds() + 12 * 3600);
    assert_eq!(claims.sub, "mailto:push@instance.example");
}

#[test]
fn one_token_serves_an_origin_until_its_last_hour() {
    let vapid = vapid(&key());
    let first = at(&vapid, "https://push.example/1", NOW);
    assert_eq!(
        at(&vapid, "https://push.example/2", plus_seconds(11 * 3600 - 1)),
        first
    );
    assert_ne!(at(&vapid, "https://other.example/1", NOW), first);
    let renewed = at(&vapid, "https://push.example/1", plus_seconds(11 * 3600));
    assert_ne!(renewed, first);
    assert_eq!(read(&renewed).exp, NOW.seconds() + 23 * 3600);
}

#[test]
fn a_clock_that_is_set_back_leaves_no_token_that_ends_too_late() {
    let vapid = vapid(&key());
    at(&vapid, "https://push.example/1", plus_seconds(30 * 3600));
    assert_eq!(
        read(&at(&vapid, "https://push.example/1", NOW)).exp,
        NOW.seconds() + 12 * 3600
    );
}

#[test]
fn so_many_tokens_are_kept_and_no_more() {
    let mut tokens = Tokens::default();
    let value = HeaderValue::from_static("vapid");
    for number in 0..=TOKENS as u64 {
        tokens.put(
            &format!("https://{number}.example"),
            value.clone(),
            10_000 + number,
        );
    }
    assert_eq!(tokens.0.len(), TOKENS);
    assert!(tokens.get("https://0.example", 0).is_none());
    assert!(tokens.get("https://1.example", 0).is_some());
    tokens.put("https://1.example", value, 20_000);
    assert_eq!(tokens.0.len(), TOKENS);
}

#[test]
fn a_topic_is_short_and_the_same_for_one_tag_of_one_endpoint_alone() {
    let ours = vapid(&key());
    let topic = |vapid: &Vapid, text, tag| vapid.topic(&endpoint(text), tag);
    let first = topic(&ours, "https://push.example/1", "chat-7");
    assert_eq!(first, topic(&ours, "https://push.example/1", "chat-7"));
    assert_eq!(first.len(), 32);
    assert!(
        first
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    );
    for other in [
        topic(&ours, "https://push.example/1", "chat-8"),
        topic(&ours, "https://push.example/2", "chat-7"),
        topic(&vapid(&key()), "https://push.example/1", "chat-7"),
    ] {
        assert_ne!(other, first);
    }
}

#[test]
fn a_kept_key_is_read_as_other_libraries_write_it() {
    // RFC 8291, appendix A: the application server's key pair.
    let text = Redacted::new("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw");
    let public = "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
    let key = VapidKey::parse(&text).unwrap();
    assert_eq!(key.public_key(), public);
    assert_eq!(key.to_text(), text);
    let padded = Redacted::new(format!("{}=", text.expose()));
    assert_eq!(VapidKey::parse(&padded).unwrap().public_key(), public);
}

#[test]
fn what_is_no_key_is_refused_and_keys_print_nothing() {
    let zeros = URL_SAFE_NO_PAD.encode([0; 32]);
    let short = URL_SAFE_NO_PAD.encode([1; 31]);
    for text in ["", "not base64!", &zeros, &short] {
        let error = VapidKey::parse(&Redacted::new(text)).unwrap_err();
        assert_eq!(error, VapidError::Malformed);
    }
    assert_eq!(format!("{:?}", key()), "REDACTED");
    let value = vapid(&key())
        .authorization(&endpoint("https://push.example/1"), NOW)
        .unwrap();
    assert_eq!(format!("{value:?}"), "Sensitive");
}

#[tokio::test]
async fn the_key_that_was_kept_first_holds() {
    let first = key();
    let kept = VapidKey::kept::<VapidError>(async |name, candidate| {
        assert_eq!(name, VAPID_SETTING);
        assert_ne!(candidate, first.to_text());
        Ok(first.to_text())
    });
    assert_eq!(kept.await.unwrap().public_key(), first.public_key());
    let broken = VapidKey::kept::<VapidError>(async |_, _| Ok(Redacted::new("?")));
    assert_eq!(broken.await.unwrap_err(), VapidError::Malformed);
}

#[test]
fn a_contact_is_a_mail_address_or_a_page() {
    for good in ["mailto:push@instance.example", "https://instance.example/about"] {
        assert!(Contact::parse(good).is_ok(), "{good}");
    }
    for wrong in [
        "",
        "push@instance.example",
        "mailto:",
        "mailto:nobody",
        "http://instance.example",
        "tel:1",
    ] {
        assert_eq!(Contact::parse(wrong), Err(ContactError), "{wrong}");
    }
}
