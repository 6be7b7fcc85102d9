use proptest::prelude::*;

use super::*;

fn enroll(body: &str) -> Result<EnrollRequest, InvalidEnroll> {
    EnrollRequest::parse(body.as_bytes())
}

fn grace(body: &str) -> Result<Option<u64>, InvalidRotate> {
    RotateRequest::parse(body.as_bytes()).map(|request| request.grace_seconds)
}

#[test]
fn a_request_without_a_body_has_no_fields() {
    for body in [
        "",
        " \r\n",
        "{}",
        r#"{"name":null,"contact":null}"#,
        r#"{"unknown":[1]}"#,
    ] {
        assert_eq!(enroll(body), Ok(EnrollRequest::default()), "{body}");
        assert_eq!(grace(body), Ok(None), "{body}");
    }
}

#[test]
fn name_and_contact_are_kept_as_given() {
    let request = enroll(r#"{"name":"Küche 🏠","contact":"a.b+c@mail.example.org"}"#).unwrap();
    assert_eq!(request.name.unwrap().expose(), "Küche 🏠");
    assert_eq!(request.contact.unwrap().expose(), "a.b+c@mail.example.org");
}

#[test]
fn what_is_not_an_object_is_refused() {
    for body in [
        "[]",
        r#"["n","c"]"#,
        "1",
        "null",
        "\"x\"",
        "{",
        "{}{}",
        r#"{"name":"a"#,
    ] {
        assert_eq!(enroll(body), Err(InvalidEnroll::NotAnObject), "{body}");
        assert_eq!(grace(body), Err(InvalidRotate::NotAnObject), "{body}");
    }
    assert_eq!(
        EnrollRequest::parse(b"{\"name\":\"\xff\"}"),
        Err(InvalidEnroll::NotAnObject)
    );
}

#[test]
fn a_name_has_1_to_80_characters_and_no_control_characters() {
    let of = |name: &str| enroll(&serde_json::json!({ "name": name }).to_string());
    assert!(of(&"ü".repeat(80)).is_ok());
    for name in [
        String::new(),
        "x".repeat(81),
        "a\nb".into(),
        "\u{1b}[31m".into(),
        "a\u{85}b".into(),
    ] {
        assert_eq!(of(&name), Err(InvalidEnroll::Name));
    }
    for body in [
        r#"{"name":1}"#,
        r#"{"name":["a"]}"#,
        r#"{"name":{}}"#,
        r#"{"name":true}"#,
    ] {
        assert_eq!(enroll(body), Err(InvalidEnroll::Name), "{body}");
    }
}

#[test]
fn a_contact_is_an_address_that_mail_can_be_sent_to() {
    let of = |contact: &str| enroll(&serde_json::json!({ "contact": contact }).to_string());
    let longest_domain = format!("{}.{}.{}.org", "d".repeat(63), "d".repeat(63), "d".repeat(57));
    for contact in [
        "a@b.example",
        "o'neil@x-y.example",
        "jürgen@müller.example",
        &format!("{}@{longest_domain}", "l".repeat(64)),
    ] {
        assert!(of(contact).is_ok(), "{contact}");
    }
    let too_long = format!("{}@{longest_domain}x", "l".repeat(64));
    for contact in [
        "",
        "a",
        "@b.example",
        "a@",
        "a@b",
        "a@b..example",
        "a@-b.example",
        "a@b-.example",
        ".a@b.example",
        "a.@b.example",
        "a..b@c.example",
        "a b@c.example",
        "a@b@c.example",
        "\"a b\"@c.example",
        "a@[127.0.0.1]",
        "a@b.example\r\nBcc: x@y.example",
        "a\u{0}@b.example",
        "<a@b.example>",
        "a@b.example,c@d.example",
        &too_long,
    ] {
        assert_eq!(of(contact), Err(InvalidEnroll::Contact), "{contact:?}");
    }
}

#[test]
fn a_grace_is_a_whole_number_of_seconds_up_to_a_month() {
    assert_eq!(grace(r#"{"graceSeconds":0}"#), Ok(Some(0)));
    assert_eq!(grace(r#"{"graceSeconds":2592000}"#), Ok(Some(2_592_000)));
    for value in [
        "2592001",
        "-1",
        "1.5",
        "\"60\"",
        "true",
        "[]",
        "{}",
        "18446744073709551616",
        "1e400",
    ] {
        assert!(
            grace(&format!(r#"{{"graceSeconds":{value}}}"#)).is_err(),
            "{value}"
        );
    }
}

#[test]
fn nothing_of_it_is_printed() {
    let request = enroll(r#"{"name":"secret-name","contact":"secret@mail.example"}"#).unwrap();
    let instance_id = InstanceId::from_bytes([1; 16]);
    let enrolled = EnrollAnswer {
        instance_id,
        instance_key: "secret-key".into(),
    };
    let rotated = RotateAnswer {
        instance_id,
        instance_key: "secret-key".into(),
        previous_valid_until: UnixMillis(0),
    };
    assert!(!format!("{request:?} {enrolled:?} {rotated:?}").contains("secret"));
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = EnrollRequest::parse(&bytes);
        let _ = RotateRequest::parse(&bytes);
    }

    #[test]
    fn what_is_accepted_has_no_control_character(name in ".{0,90}", contact in "[a-z.@\\PC\n]{0,40}") {
        let body = serde_json::json!({ "name": name, "contact": contact }).to_string();
        if let Ok(request) = EnrollRequest::parse(body.as_bytes()) {
            let kept = format!("{}{}", request.name.unwrap().expose(), request.contact.unwrap().expose());
            prop_assert!(!kept.chars().any(char::is_control));
        }
    }
}
