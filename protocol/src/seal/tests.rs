use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../../vectors/sealed-payload.json")).unwrap()
}

fn hex(text: &Value) -> Vec<u8> {
    let text = text.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
        .collect()
}

fn device(vector: &Value) -> DeviceKey {
    DeviceKey::from_scalar(&hex(&vector["devicePrivateKeyHex"])).unwrap()
}

/// Deterministic bytes that are good enough to be keys in tests.
fn filler(mut seed: u64) -> impl FnMut(&mut [u8]) {
    move |bytes| {
        for byte in bytes {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (seed >> 33) as u8;
        }
    }
}

#[test]
fn every_right_vector_opens_to_its_plaintext() {
    let vectors = vectors();
    let right = vectors["open"].as_array().unwrap();
    assert_eq!(right.len(), 5);
    for vector in right {
        let sealed = vector["encryptedPayloadBase64"].as_str().unwrap();
        assert_eq!(
            open(sealed, &device(vector)).unwrap(),
            vector["plaintextUtf8"].as_str().unwrap()
        );
    }
}

#[test]
fn every_right_vector_is_made_again_byte_for_byte() {
    for vector in vectors()["open"].as_array().unwrap() {
        let public = DevicePublicKey::from_base64(vector["devicePublicKeyBase64"].as_str().unwrap()).unwrap();
        assert_eq!(device(vector).public_key(), public);
        assert_eq!(
            public.to_base64(),
            vector["devicePublicKeyBase64"].as_str().unwrap()
        );
        let ephemeral = SecretKey::from_slice(&hex(&vector["ephemeralPrivateKeyHex"])).unwrap();
        let iv: [u8; IV_BYTES] = hex(&vector["ivHex"]).try_into().unwrap();
        let sealed = seal_with(vector["plaintextUtf8"].as_str().unwrap(), &public, &ephemeral, iv);
        assert_eq!(sealed, vector["encryptedPayloadBase64"].as_str().unwrap());
    }
}

#[test]
fn every_wrong_vector_is_refused() {
    let vectors = vectors();
    let wrong = vectors["reject"].as_array().unwrap();
    assert_eq!(wrong.len(), 8);
    for vector in wrong {
        let sealed = vector["encryptedPayload"].as_str().unwrap();
        assert!(open(sealed, &device(vector)).is_err(), "{}", vector["name"]);
    }
}

#[test]
fn a_notification_is_padded_to_one_of_five_lengths_and_still_parses() {
    let key = DeviceKey::generate(filler(1)).unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    for body in [0, 1, 240, 300, 900, 1500, 2500] {
        let json = serde_json::json!({ "body": "x".repeat(body) }).to_string();
        let sealed = seal(&json, &key.public_key(), filler(7)).unwrap();
        let opened = open(&sealed, &key).unwrap();
        assert!(PADDED_BYTES.contains(&opened.len()));
        assert_eq!(opened.trim_end(), json);
        assert_eq!(
            serde_json::from_str::<Value>(&opened).unwrap()["body"]
                .as_str()
                .unwrap()
                .len(),
            body
        );
        lengths.insert(sealed.len());
    }
    assert_eq!(lengths.len(), PADDED_BYTES.len());
}

#[test]
fn the_longest_sealed_payload_fits_every_provider_and_one_byte_more_is_refused() {
    use crate::{envelope, platform::Platform, redacted::Redacted};
    let key = DeviceKey::generate(filler(3)).unwrap();
    let longest = format!("\"{}\"", "x".repeat(2558));
    let sealed = Redacted::new(seal(&longest, &key.public_key(), filler(4)).unwrap());
    for platform in Platform::ALL {
        assert_eq!(
            envelope::check_size(platform, &sealed, &envelope::AlertTitles::default()),
            Ok(())
        );
    }
    let too_long = format!("\"{}\"", "x".repeat(2559));
    assert_eq!(
        seal(&too_long, &key.public_key(), filler(4)),
        Err(SealError::TooLarge)
    );
}

#[test]
fn what_is_not_json_is_not_sealed() {
    let key = DeviceKey::generate(filler(5)).unwrap();
    assert_eq!(
        seal("hello", &key.public_key(), filler(6)),
        Err(SealError::NotJson)
    );
}

#[test]
fn broken_randomness_is_an_error_and_not_an_endless_loop() {
    assert_eq!(
        DeviceKey::generate(|bytes| bytes.fill(0)).unwrap_err(),
        SealError::Randomness
    );
}

#[test]
fn keys_and_errors_print_no_secret() {
    let key = DeviceKey::generate(filler(8)).unwrap();
    assert_eq!(format!("{key:?}"), "REDACTED");
}

#[test]
fn a_device_key_that_is_no_uncompressed_point_is_refused() {
    for wrong in [vec![], vec![4; 65], vec![2; 33], vec![0; 65], vec![4; 64]] {
        assert!(DevicePublicKey::from_base64(&STANDARD.encode(wrong)).is_err());
    }
    assert_eq!(
        DevicePublicKey::from_base64("not base64!"),
        Err(OpenError::NotBase64)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_sealed_opens_for_its_device_alone(text in "[ -~]{0,400}", seed in 1u64..u64::MAX) {
        let json = serde_json::json!({ "body": text }).to_string();
        let key = DeviceKey::generate(filler(seed)).unwrap();
        let other = DeviceKey::generate(filler(seed ^ 0x5555_0000_aaaa)).unwrap();
        let sealed = seal(&json, &key.public_key(), filler(seed.rotate_left(17))).unwrap();
        let opened = open(&sealed, &key).unwrap();
        prop_assert_eq!(opened.trim_end(), json);
        prop_assert_eq!(open(&sealed, &other), Err(OpenError::NotAuthentic));
    }

    #[test]
    fn one_changed_bit_anywhere_is_refused(bit in 0usize..8 * (65 + 12 + 16 + 256)) {
        let key = DeviceKey::generate(filler(9)).unwrap();
        let sealed = seal("{\"title\":\"hello\"}", &key.public_key(), filler(10)).unwrap();
        let mut bytes = STANDARD.decode(&sealed).unwrap();
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(open(&STANDARD.encode(bytes), &key).is_err());
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,300}") {
        let key = DeviceKey::generate(filler(11)).unwrap();
        prop_assert!(open(&text, &key).is_err());
    }
}
