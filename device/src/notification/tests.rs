//! Opening: the shared vectors, each error, and whatever bytes come.

use proptest::prelude::*;
use serde_json::json;
use sovereign_relay_protocol::seal::{PADDED_BYTES, seal as seal_checked};

use super::*;
use crate::entropy;

fn key() -> DeviceKey {
    DeviceKey::generate(|bytes| entropy::fill(bytes).unwrap()).unwrap()
}

fn seal(text: &str, key: &DeviceKey) -> String {
    seal_checked(text, &key.public_key(), |bytes| entropy::fill(bytes).unwrap()).unwrap()
}

#[test]
fn all_fields_are_read_and_unknown_ones_are_ignored() {
    let key = key();
    let text = json!({
        "title": "Ünïcode 👋", "body": "line\nline", "url": "/chat/1", "tag": "chat-1",
        "data": {"kind": "call", "n": [1, 2]}, "icon": "later"
    });
    let expected = Notification {
        title: "Ünïcode 👋".to_owned(),
        body: "line\nline".to_owned(),
        url: Some("/chat/1".to_owned()),
        tag: Some("chat-1".to_owned()),
        data: Some(json!({"kind": "call", "n": [1, 2]})),
    };
    assert_eq!(open(&seal(&text.to_string(), &key), &key), Ok(expected));
}

#[test]
fn a_title_is_enough_and_null_is_the_same_as_nothing() {
    let key = key();
    let expected = Notification {
        title: "Hello".to_owned(),
        body: String::new(),
        url: None,
        tag: None,
        data: None,
    };
    for text in [
        r#"{"title":"Hello"}"#,
        r#"{"title":"Hello","body":null,"url":null,"tag":null,"data":null}"#,
        r#" {"title":"no","title":"Hello"} "#,
    ] {
        assert_eq!(open(&seal(text, &key), &key).as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn what_holds_no_notification_is_said_to_be_that() {
    let key = key();
    for (text, why) in [
        ("[]", "it is not an object"),
        ("\"title\"", "it is not an object"),
        ("{}", "it has no title"),
        (r#"{"title":null}"#, "it has no title"),
        (r#"{"title":7}"#, "the title is not text"),
        (r#"{"title":"t","body":{}}"#, "the body is not text"),
        (r#"{"title":"t","url":[]}"#, "the url is not text"),
        (r#"{"title":"t","tag":true}"#, "the tag is not text"),
    ] {
        assert_eq!(
            open(&seal(text, &key), &key),
            Err(OpenError::NotANotification(why)),
            "{text}"
        );
    }
    assert_eq!(
        parse("no JSON"),
        Err(OpenError::NotANotification("it is not JSON"))
    );
}

#[test]
fn for_another_key_damaged_and_too_large_are_told_apart() {
    let (ours, theirs) = (key(), key());
    let sealed = seal(r#"{"title":"t"}"#, &theirs);
    assert_eq!(open(&sealed, &ours), Err(OpenError::NotForThisKey));
    for damaged in ["", "not base64!", "AAAA", &sealed[..120], &sealed[4..]] {
        assert_eq!(open(damaged, &theirs), Err(OpenError::Damaged), "{damaged}");
    }
    let large = "A".repeat(SEALED_CHARS + 1);
    assert_eq!(open(&large, &ours), Err(OpenError::TooLarge));
    assert_eq!(open(&large[1..], &ours), Err(OpenError::Damaged));
}

#[test]
fn the_longest_that_can_be_sealed_can_be_opened() {
    let key = key();
    let longest = PADDED_BYTES[PADDED_BYTES.len() - 1];
    let text = format!(r#"{{"title":"{}"}}"#, "x".repeat(longest - 12));
    assert_eq!(text.len(), longest);
    assert_eq!(open(&seal(&text, &key), &key).unwrap().title.len(), longest - 12);
}

#[test]
fn the_vectors_that_every_language_follows_open_to_their_notification_or_its_lack() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../protocol/vectors/sealed-payload.json")).unwrap();
    let right = vectors["open"].as_array().unwrap();
    for vector in right {
        let text = |name: &str| vector[name].as_str().unwrap();
        let private = text("devicePrivateKeyHex");
        let scalar: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| u8::from_str_radix(&private[at..at + 2], 16).unwrap())
            .collect();
        let opened = open(
            text("encryptedPayloadBase64"),
            &DeviceKey::from_scalar(&scalar).unwrap(),
        );
        assert_eq!(opened, parse(text("plaintextUtf8")));
        assert_eq!(
            opened.is_ok(),
            text("plaintextUtf8").contains(r#""title":""#),
            "{}",
            text("name")
        );
    }
    assert_eq!(right.len(), 5);
}

proptest! {
    #[test]
    fn any_text_is_opened_or_refused_without_a_panic(text in ".{0,400}") {
        prop_assert!(open(&text, &key()).is_err());
        let _ = parse(&text);
    }

    #[test]
    fn no_changed_character_is_opened(at in 0_usize..400, to in "[A-Za-z0-9+/=]") {
        let key = key();
        let sealed = seal(r#"{"title":"t","body":"b"}"#, &key);
        let at = at % sealed.len();
        let changed = format!("{}{to}{}", &sealed[..at], &sealed[at + 1..]);
        prop_assert!(changed == sealed || open(&changed, &key).is_err());
    }

    #[test]
    fn what_was_sealed_is_what_is_opened(title in ".{0,60}", body in ".{0,120}", tag in prop::option::of(".{0,30}")) {
        let key = key();
        let text = json!({"title": title, "body": body, "tag": tag}).to_string();
        let opened = open(&seal(&text, &key), &key).unwrap();
        prop_assert_eq!((opened.title, opened.body, opened.tag), (title, body, tag));
    }
}
