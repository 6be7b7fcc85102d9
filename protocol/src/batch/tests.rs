use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;

const GOOD: &str = r#"{"deviceToken":"aa","platform":"ios","encryptedPayload":"x"}"#;

#[test]
fn one_bad_entry_of_any_type_keeps_its_place_and_spoils_no_other() {
    let entries = [
        GOOD,
        "[\"aa\",\"ios\"]",
        "null",
        "7",
        "\"text\"",
        "{}",
        "true",
        GOOD,
    ];
    let body = format!("{{\"messages\":[{}]}}", entries.join(","));
    let messages = Batch::parse(body.as_bytes()).unwrap().messages;
    assert_eq!(messages.len(), 8);
    assert!(messages[0].is_ok() && messages[7].is_ok());
    for wrong in [1, 2, 3, 4, 6] {
        assert_eq!(messages[wrong], Err(InvalidPush::NotAnObject), "{wrong}");
    }
    assert_eq!(messages[5], Err(InvalidPush::DeviceToken));
}

#[test]
fn an_entry_longer_than_a_single_push_may_be_is_an_error_in_its_place() {
    let long = format!("{{\"unknown\":\"{}\"}}", "x".repeat(limits::BODY_BYTES));
    let twice = r#"{"platform":"ios","platform":"ios"}"#;
    let body = format!("{{\"messages\":[{GOOD},{long},{twice},{GOOD}]}}");
    let messages = Batch::parse(body.as_bytes()).unwrap().messages;
    assert!(messages[0].is_ok() && messages[3].is_ok());
    assert_eq!(messages[1], Err(InvalidPush::TooLong));
    assert_eq!(messages[2], Err(InvalidPush::FieldTwice));
}

#[test]
fn what_a_single_push_would_be_told_is_told_of_the_same_message_in_a_batch_and_of_no_other() {
    let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
    let with = |field: &str| GOOD.replace('}', &format!(",{field}}}"));
    let entries = [
        with(r#""x":"\ud800""#),
        with(r#""x":1e999"#),
        with(r#""x":99999999999999999999999999"#),
        with(&format!("\"x\":{deep}")),
        with(r#""x":1,"x":2"#),
        with(r#""ttlSeconds":1e999"#),
        with(r#""collapseId":"\ud800""#),
        with(r#""\ud800":1"#),
        with(r#""platform":"ios""#),
        deep,
    ];
    let body = format!("{{\"messages\":[{GOOD},{},{GOOD}]}}", entries.join(","));
    let messages = Batch::parse(body.as_bytes()).unwrap().messages;
    assert_eq!(messages.len(), entries.len() + 2);
    assert!(messages[0].is_ok() && messages[entries.len() + 1].is_ok());
    for (entry, parsed) in entries.iter().zip(&messages[1..]) {
        assert_eq!(*parsed, PushBody::parse(entry.as_bytes()), "{entry:.90}");
    }
    let refused = messages.iter().filter(|message| message.is_err()).count();
    assert_eq!(refused, 5);
}

#[test]
fn a_batch_holds_1_to_500_messages() {
    let of = |count: usize| format!("{{\"messages\":[{}]}}", vec![GOOD; count].join(","));
    assert_eq!(Batch::parse(of(0).as_bytes()).unwrap_err(), InvalidBatch::Count);
    assert_eq!(Batch::parse(of(1).as_bytes()).unwrap().messages.len(), 1);
    assert_eq!(Batch::parse(of(500).as_bytes()).unwrap().messages.len(), 500);
    assert_eq!(Batch::parse(of(501).as_bytes()).unwrap_err(), InvalidBatch::Count);
}

#[test]
fn what_is_no_object_with_messages_is_refused() {
    for wrong in [
        "",
        "null",
        "[]",
        "[[]]",
        "{}",
        "{\"messages\":{}}",
        "{\"messages\":null}",
        "{\"messages\":[}",
    ] {
        assert_eq!(
            Batch::parse(wrong.as_bytes()).unwrap_err(),
            InvalidBatch::NotAnObject,
            "{wrong}"
        );
    }
}

/// The same bytes read without a line of the parser under test. `None`: they are no batch.
fn read_plainly(bytes: &[u8]) -> Option<Vec<&str>> {
    #[derive(Deserialize)]
    struct Plain<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    // The derive would also read an array as the fields in their order.
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    let plain: Plain<'_> = serde_json::from_slice(bytes).ok().filter(|_| is_object)?;
    Some(plain.messages.into_iter().map(RawValue::get).collect())
}

/// Whatever the bytes are: a batch has one place for each entry, and says there what a single push would be told.
fn is_read_as_single_pushes_are(bytes: &[u8]) -> Result<(), TestCaseError> {
    let entries = read_plainly(bytes);
    match (Batch::parse(bytes), entries) {
        (Ok(batch), Some(entries)) => {
            prop_assert_eq!(batch.messages.len(), entries.len());
            for (parsed, entry) in batch.messages.iter().zip(entries) {
                prop_assert_eq!(parsed, &PushBody::parse(entry.as_bytes()), "{}", entry);
            }
        }
        (Err(InvalidBatch::Count), Some(entries)) => {
            prop_assert!(!(1..=limits::BATCH_MESSAGES).contains(&entries.len()));
        }
        (Err(InvalidBatch::NotAnObject), None) => {}
        (parsed, entries) => prop_assert!(false, "{parsed:?} of {entries:?}"),
    }
    Ok(())
}

/// Text of an entry: good, almost good, or JSON of another kind.
fn entry() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| serde_json::json!(value).to_string()),
        any::<String>().prop_map(|value| serde_json::json!(value).to_string()),
    ];
    let name = prop_oneof![
        proptest::sample::select(vec![
            "deviceToken",
            "platform",
            "encryptedPayload",
            "instanceKey",
            "priority",
            "ttlSeconds",
            "collapseId",
            "environment",
            "idempotencyKey",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let field =
        (name, scalar.clone()).prop_map(|(name, value)| format!("{}:{value}", serde_json::json!(name)));
    let more = vec(field, 0..4);
    prop_oneof![
        more.clone()
            .prop_map(|fields| format!("{{{}}}", fields.join(","))),
        more.prop_map(|fields| fields.iter().fold(GOOD.to_owned(), |entry, field| entry
            .replace('}', &format!(",{field}}}")))),
        vec(scalar.clone(), 0..3).prop_map(|values| format!("[{}]", values.join(","))),
        scalar,
    ]
}

fn batch() -> impl Strategy<Value = String> {
    vec(entry(), 0..12).prop_map(|entries| format!("{{\"messages\":[{}]}}", entries.join(",")))
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_a_batch_only_where_a_plain_reading_finds_one(bytes in vec(any::<u8>(), 0..300)) {
        is_read_as_single_pushes_are(&bytes)?;
    }

    #[test]
    fn each_entry_is_told_what_it_would_be_told_alone(batch in batch()) {
        is_read_as_single_pushes_are(batch.as_bytes())?;
    }

    #[test]
    fn a_mutated_batch_is_still_read_entry_by_entry(
        batch in batch(),
        cuts in vec((any::<Index>(), any::<u8>(), 0u8..3), 1..4),
    ) {
        let mut bytes = batch.into_bytes();
        for (at, byte, kind) in cuts {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        is_read_as_single_pushes_are(&bytes)?;
    }
}
