use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use proptest::prelude::*;
use sha2::{Sha256, Sha384, Sha512};

use super::*;

const SECRET: &str = "an enrollment secret of 32 bytes.";
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
const CLAIMS: &str = r#"{"instanceId":"07070707-0707-4707-8707-070707070707","iat":1700000000}"#;
/// Made with another program, under the same secret: as the earlier relay did, and as this one does.
const EARLIER_KEY: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpbnN0YW5jZUlkIjoiMDcwNzA3MDctMDcwNy00NzA3LTg3MDctMDcwNzA3MDcwNzA3IiwiaWF0IjoxNzAwMDAwMDAwfQ.5PAgIFjymvDwvaqZIwtBeeRbiY4ebjXLJY6R2E2xRSQ";
const KEY: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6InU0ZGlOSFZLIn0.eyJpbnN0YW5jZUlkIjoiMDcwNzA3MDctMDcwNy0wNzA3LTA3MDctMDcwNzA3MDcwNzA3IiwiaWF0IjoxODAwMDAwMDAwLCJnZW4iOjN9.7fjNiUCBnDp--eZTyMK0Thu_TRNWFL4T8vJYNtGOTac";

fn secrets(current: &str, previous: &[&str]) -> Secrets {
    let previous = previous.iter().map(|secret| Redacted::new(*secret)).collect();
    Secrets::new(Redacted::new(current), previous).unwrap()
}

fn ring() -> KeyRing {
    KeyRing::new(&secrets(SECRET, &[]))
}

fn verify(key: &str) -> Option<Caller> {
    ring().verify(&Redacted::new(key))
}

fn instance() -> InstanceId {
    InstanceId::from_bytes([7; 16])
}

fn unsigned(header: &str, claims: &str) -> String {
    format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(claims)
    )
}

fn mac<M: Mac + KeyInit>(message: &str, secret: &str) -> String {
    let mut mac = <M as KeyInit>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(message.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

fn signed(header: &str, claims: &str, secret: &str) -> String {
    let message = unsigned(header, claims);
    format!("{message}.{}", mac::<Hmac<Sha256>>(&message, secret))
}

#[test]
fn keys_of_the_earlier_relay_and_keys_made_by_hand_are_accepted() {
    let caller = verify(EARLIER_KEY).unwrap();
    assert_eq!(
        caller.instance.to_string(),
        "07070707-0707-4707-8707-070707070707"
    );
    assert_eq!(caller.generation, None);
    assert_eq!(signed(HEADER, CLAIMS, SECRET), EARLIER_KEY);
}

#[test]
fn the_form_of_new_keys_is_fixed() {
    let key = ring().sign(instance(), 3, 1_800_000_000).unwrap();
    assert_eq!(key.expose(), KEY);
    assert_eq!(
        verify(KEY),
        Some(Caller {
            instance: instance(),
            generation: Some(3)
        })
    );
}

#[test]
fn a_key_altered_in_any_character_is_refused() {
    for at in 0..KEY.len() {
        for other in ['A', 'Q', '_', '.', '='] {
            let mut altered: Vec<char> = KEY.chars().collect();
            if altered[at] == other {
                continue;
            }
            altered[at] = other;
            let altered: String = altered.into_iter().collect();
            assert_eq!(verify(&altered), None, "character {at} as {other}");
        }
    }
}

#[test]
fn a_key_with_a_part_missing_added_or_exchanged_is_refused() {
    let parts: Vec<&str> = KEY.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    let mine = URL_SAFE_NO_PAD.encode(CLAIMS);
    for key in [
        String::new(),
        ".".into(),
        "..".into(),
        header.into(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{header}..{signature}"),
        format!(".{claims}.{signature}"),
        format!("{header}.{claims}.{signature}."),
        format!("{header}.{claims}.{signature}.{signature}"),
        format!("{header}.{mine}.{signature}"),
        format!("{KEY} "),
        format!(" {KEY}"),
        format!("{KEY}\n"),
    ] {
        assert_eq!(verify(&key), None, "{key:?}");
    }
}

#[test]
fn only_hs256_is_believed_whatever_the_header_says() {
    for algorithm in ["none", "None", "NONE", "hs256", "", "HS256 "] {
        let header = format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#);
        assert_eq!(verify(&signed(&header, CLAIMS, SECRET)), None, "{algorithm}");
        assert_eq!(
            verify(&format!("{}.", unsigned(&header, CLAIMS))),
            None,
            "{algorithm}, not signed"
        );
    }
    for algorithm in ["RS256", "PS256", "ES256", "EdDSA"] {
        let header = format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#);
        assert_eq!(verify(&signed(&header, CLAIMS, SECRET)), None, "{algorithm}");
        let foreign = URL_SAFE_NO_PAD.encode([7; 256]);
        assert_eq!(
            verify(&format!("{}.{foreign}", unsigned(&header, CLAIMS))),
            None,
            "{algorithm}"
        );
    }
    let long = r#"{"alg":"HS384","typ":"JWT"}"#;
    assert_eq!(
        verify(&format!(
            "{}.{}",
            unsigned(long, CLAIMS),
            mac::<Hmac<Sha384>>(&unsigned(long, CLAIMS), SECRET)
        )),
        None
    );
    let longer = r#"{"alg":"HS512","typ":"JWT"}"#;
    assert_eq!(
        verify(&format!(
            "{}.{}",
            unsigned(longer, CLAIMS),
            mac::<Hmac<Sha512>>(&unsigned(longer, CLAIMS), SECRET)
        )),
        None
    );
    // The right algorithm named, another one used.
    assert_eq!(
        verify(&format!(
            "{}.{}",
            unsigned(HEADER, CLAIMS),
            mac::<Hmac<Sha512>>(&unsigned(HEADER, CLAIMS), SECRET)
        )),
        None
    );
}

#[test]
fn claims_are_as_the_contract_has_them() {
    let key = |claims: &str| verify(&signed(HEADER, claims, SECRET));
    let id = "07070707-0707-0707-0707-070707070707";
    for claims in [
        "{}".into(),
        "[]".into(),
        "not json".into(),
        format!(r#"{{"instanceId":"{id}"}}"#),
        format!(r#"{{"instanceId":"{id}","iat":"1"}}"#),
        format!(r#"{{"instanceId":"{id}","iat":-1}}"#),
        format!(r#"{{"instanceId":"{id}","iat":1,"gen":-1}}"#),
        format!(r#"{{"instanceId":"{id}","iat":1,"gen":"1"}}"#),
        format!(r#"{{"instanceId":"{id}","iat":1,"gen":4294967296}}"#),
        format!(r#"{{"instanceId":"{id}","instanceId":"{id}","iat":1}}"#),
        r#"{"instanceId":"0707070707070707070707070707070707","iat":1}"#.into(),
        r#"{"instanceId":"07070707070707070707070707070707","iat":1}"#.into(),
        format!(r#"{{"instanceId":"{{{id}}}","iat":1}}"#),
        format!(r#"{{"instanceId":"urn:uuid:{id}","iat":1}}"#),
        r#"{"instanceId":"../../etc/passwd","iat":1}"#.into(),
        r#"{"instanceId":7,"iat":1}"#.into(),
        r#"{"sub":"07070707-0707-0707-0707-070707070707","iat":1}"#.into(),
    ] {
        assert_eq!(key(&claims), None, "{claims}");
    }
    let more = format!(r#"{{"instanceId":"{id}","iat":1,"exp":1,"aud":"x","gen":4294967295}}"#);
    assert_eq!(
        key(&more),
        Some(Caller {
            instance: instance(),
            generation: Some(u32::MAX)
        }),
        "keys don't expire"
    );
}

#[test]
fn a_header_that_demands_what_is_not_understood_is_refused() {
    for header in [
        r#"{"alg":"HS256","typ":"JWT","crit":["exp"],"exp":1}"#,
        r#"{"alg":"HS256","typ":"JWT","crit":[]}"#,
        r#"{"alg":"HS256","typ":"JWT","b64":false,"crit":["b64"]}"#,
        r#"{"alg":"HS256","alg":"HS256"}"#,
        r#"{"typ":"JWT"}"#,
    ] {
        assert_eq!(verify(&signed(header, CLAIMS, SECRET)), None, "{header}");
    }
}

#[test]
fn a_huge_key_is_refused_before_it_is_looked_at() {
    let padded = format!(r#"{{"alg":"HS256","typ":"JWT","x":"{}"}}"#, "x".repeat(900));
    let key = signed(&padded, CLAIMS, SECRET);
    assert!(key.len() > KEY_BYTES);
    assert_eq!(verify(&key), None);
    assert_eq!(verify(&"A".repeat(10_000_000)), None);
    let fits = format!(r#"{{"alg":"HS256","typ":"JWT","x":"{}"}}"#, "x".repeat(500));
    assert!(verify(&signed(&fits, CLAIMS, SECRET)).is_some());
}

#[test]
fn a_previous_secret_verifies_and_never_signs() {
    let new = "the secret that came after it, longer";
    let ring = KeyRing::new(&secrets(new, &[SECRET]));
    assert!(ring.verify(&Redacted::new(KEY)).is_some());
    assert!(ring.verify(&Redacted::new(EARLIER_KEY)).is_some());
    let key = ring.sign(instance(), 3, 1_800_000_000).unwrap();
    assert_eq!(verify(key.expose()), None);
    assert!(KeyRing::new(&secrets(new, &[])).verify(&key).is_some());
    assert!(
        KeyRing::new(&secrets(new, &[]))
            .verify(&Redacted::new(KEY))
            .is_none(),
        "retired"
    );
    assert_eq!(ring.kids().len(), 2);
    assert!(ring.kids().contains(&Kid::parse("u4diNHVK").unwrap()));
}

#[test]
fn a_secret_that_can_be_guessed_stops_the_start() {
    let of = |current: &str, previous: &[&str]| {
        let previous = previous.iter().map(|secret| Redacted::new(*secret)).collect();
        Secrets::new(Redacted::new(current), previous)
    };
    let (good, bad) = ("x".repeat(32), "x".repeat(15));
    assert!(of(&"x".repeat(16), &[&"x".repeat(16)]).is_ok());
    assert_eq!(of(&bad, &[]).err(), Some(SecretError::TooShort));
    assert_eq!(of(&good, &[&bad]).err(), Some(SecretError::TooShort));
    assert_eq!(of("", &[]).err(), Some(SecretError::TooShort));
    assert_eq!(
        of(&good, &[good.as_str(); 9]).err(),
        Some(SecretError::TooManyPrevious)
    );
    assert!(!format!("{:?}", of(&good, &[&good])).contains("xxx"));
}

proptest! {
    #[test]
    fn any_text_is_verified_or_refused(key in "\\PC{0,300}") {
        prop_assert_eq!(verify(&key), None);
    }

    #[test]
    fn a_signed_key_names_its_instance_and_generation(
        id in any::<[u8; 16]>(), generation in any::<u32>(), issued_at in any::<u64>(),
    ) {
        let instance = InstanceId::from_bytes(id);
        let key = ring().sign(instance, generation, issued_at).unwrap();
        prop_assert!(key.len() < 300);
        prop_assert_eq!(ring().verify(&key), Some(Caller { instance, generation: Some(generation) }));
    }
}
