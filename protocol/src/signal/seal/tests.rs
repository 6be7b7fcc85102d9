use proptest::prelude::*;
use serde_json::Value;

use super::*;

pub(crate) fn vectors(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    let pair = |index| u8::from_str_radix(&text[index..index + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(pair).collect()
}

fn sealed_vectors() -> Value {
    vectors(include_str!("../../../vectors/sealed-signal.json"))
}

fn slot(value: &Value) -> Slot {
    serde_json::from_value(value.clone()).unwrap()
}

fn secret_and_session(vectors: &Value) -> (SessionSecret, SessionId) {
    let secret = SessionSecret::from_bytes(hex(&vectors["secretHex"]).try_into().unwrap());
    (
        secret,
        SessionId::parse(vectors["sessionId"].as_str().unwrap()).unwrap(),
    )
}

fn pair() -> (Sealer, Opener) {
    let (secret, session) = (SessionSecret::from_bytes([7; 32]), SessionId::from_bytes([9; 16]));
    (
        Sealer::new(&secret, session, Slot::A, [1; 16]),
        Opener::new(secret, session, Slot::A),
    )
}

#[test]
fn the_vectors_are_sealed_and_opened_byte_for_byte() {
    let vectors = sealed_vectors();
    let (secret, session) = secret_and_session(&vectors);
    for case in vectors["open"].as_array().unwrap() {
        let sender = slot(&case["senderSlot"]);
        let r = hex(&case["rHex"]).try_into().unwrap();
        let load = Load::new(&secret, session, sender, r);
        let plaintext = case["plaintext"].as_str().unwrap();
        let frame = Opaque::new(case["frame"].as_str().unwrap());
        assert_eq!(
            load.seal(case["m"].as_u64().unwrap(), plaintext.as_bytes()),
            frame
        );
        let mut opener = Opener::new(secret.clone(), session, sender);
        assert_eq!(opener.open(&frame).unwrap().as_str(), plaintext);
    }
}

#[test]
fn the_wrong_vectors_are_refused_where_they_say() {
    let vectors = sealed_vectors();
    let (secret, session) = secret_and_session(&vectors);
    for case in vectors["reject"].as_array().unwrap() {
        // A frame that comes back to its own sender is judged by a receiver that listens to the other slot.
        let reflected_to = case.get("receiverSlot").map(slot);
        let sender = case.get("senderSlot").map_or(Slot::A, slot);
        let listens_to = reflected_to.map_or(sender, Slot::other);
        let mut opener = Opener::new(secret.clone(), session, listens_to);
        let accepted = usize::try_from(case["acceptFirst"].as_u64().unwrap()).unwrap();
        for (index, frame) in case["sequence"].as_array().unwrap().iter().enumerate() {
            let opened = opener.open(&Opaque::new(frame.as_str().unwrap()));
            assert_eq!(opened.is_ok(), index < accepted, "{} {index}", case["why"]);
        }
    }
}

#[test]
fn messages_of_a_load_come_once_and_in_order_and_gaps_are_allowed() {
    let (mut sealer, mut opener) = pair();
    let sealed: Vec<_> = (0..4).map(|n| sealer.seal(&n.to_string()).unwrap()).collect();
    assert_eq!(opener.open(&sealed[0]).unwrap().trim_end(), "0");
    assert_eq!(opener.open(&sealed[2]).unwrap().trim_end(), "2");
    assert_eq!(opener.open(&sealed[1]), Err(OpenError::Replayed));
    assert_eq!(opener.open(&sealed[2]), Err(OpenError::Replayed));
    assert_eq!(opener.open(&sealed[3]).unwrap().trim_end(), "3");
}

#[test]
fn a_new_load_replaces_the_old_one_for_good() {
    let (mut first, mut opener) = pair();
    let secret = SessionSecret::from_bytes([7; 32]);
    let mut second = Sealer::new(&secret, SessionId::from_bytes([9; 16]), Slot::A, [2; 16]);
    let old = [first.seal("1").unwrap(), first.seal("2").unwrap()];
    assert!(opener.open(&old[0]).is_ok());
    assert!(opener.open(&second.seal("3").unwrap()).is_ok());
    assert_eq!(opener.open(&old[1]), Err(OpenError::Retired));
    assert!(opener.open(&second.seal("4").unwrap()).is_ok());
}

#[test]
fn a_forged_load_replaces_nothing() {
    let (mut sealer, mut opener) = pair();
    assert!(opener.open(&sealer.seal("1").unwrap()).is_ok());
    let stranger = SessionSecret::from_bytes([8; 32]);
    let mut forger = Sealer::new(&stranger, SessionId::from_bytes([9; 16]), Slot::A, [3; 16]);
    assert_eq!(
        opener.open(&forger.seal("x").unwrap()),
        Err(OpenError::NotAuthentic)
    );
    assert!(opener.open(&sealer.seal("2").unwrap()).is_ok());
}

#[test]
fn lengths_fall_into_few_classes_and_the_longest_fits_a_frame() {
    let lengths = |plaintext: usize| pair().0.seal(&"x".repeat(plaintext)).map(|sealed| sealed.len());
    assert_eq!(lengths(0), lengths(256));
    assert_ne!(lengths(256), lengths(257));
    assert!(lengths(16384).unwrap() < crate::limits::SIGNAL_FRAME_BYTES - 1024);
    assert_eq!(lengths(16385), Err(SealError::TooLarge));
}

#[test]
fn a_secret_prints_nothing_and_has_one_spelling() {
    let secret = SessionSecret::from_bytes([0xfe; 32]);
    assert_eq!(format!("{secret:?}"), "REDACTED");
    let text = secret.expose_text();
    assert_eq!(SessionSecret::parse(&text).unwrap().expose(), secret.expose());
    assert!(SessionSecret::parse(&text[1..]).is_none() && SessionSecret::parse("").is_none());
}

proptest! {
    #[test]
    fn any_change_of_a_sealed_message_is_refused(at in any::<prop::sample::Index>(), byte in 0x20u8..0x7f) {
        let (mut sealer, mut opener) = pair();
        let sealed = sealer.seal("{}").unwrap();
        let mut bytes = sealed.expose().as_bytes().to_vec();
        let index = at.index(bytes.len());
        prop_assume!(bytes[index] != byte);
        bytes[index] = byte;
        let changed = Opaque::new(String::from_utf8(bytes).unwrap());
        prop_assert!(opener.open(&changed).is_err());
        prop_assert!(opener.open(&sealed).is_ok());
    }

    #[test]
    fn any_text_is_refused_without_a_panic(text in ".{0,120}") {
        prop_assert!(pair().1.open(&Opaque::new(text)).is_err());
    }
}
