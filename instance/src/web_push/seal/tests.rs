use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ece::EcKeyComponents;
use proptest::prelude::*;

use super::*;
use crate::web_push::address::Addresses;

/// RFC 8291, appendix A.
const RFC_PLAINTEXT: &str = "When I grow up, I want to be a watermelon";
const RFC_AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";
const RFC_RECEIVER_PUBLIC: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const RFC_RECEIVER_PRIVATE: &str = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";
const RFC_BODY: &str = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6Tlz\
     AC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

fn bytes(text: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text).unwrap()
}

struct Browser {
    components: EcKeyComponents,
    auth: Vec<u8>,
    subscription: Subscription,
}

impl Browser {
    fn new() -> Self {
        let subscription = Subscription::parse(
            "https://push.example/send/1",
            RFC_RECEIVER_PUBLIC,
            RFC_AUTH,
            Addresses::Public,
        );
        Self {
            components: EcKeyComponents::new(bytes(RFC_RECEIVER_PRIVATE), bytes(RFC_RECEIVER_PUBLIC)),
            auth: bytes(RFC_AUTH),
            subscription: subscription.unwrap(),
        }
    }

    fn open(&self, body: &[u8]) -> ece::Result<String> {
        let plaintext = ece::decrypt(&self.components, &self.auth, body)?;
        Ok(String::from_utf8(plaintext).unwrap())
    }
}

fn json_of(length: usize) -> String {
    format!("\"{}\"", "x".repeat(length - 2))
}

#[test]
fn the_message_of_rfc_8291_opens() {
    crypto::install();
    assert_eq!(Browser::new().open(&bytes(RFC_BODY)).unwrap(), RFC_PLAINTEXT);
}

#[test]
fn the_head_is_salt_record_size_and_an_ephemeral_key_that_differ_each_time() {
    let browser = Browser::new();
    let first = seal(&browser.subscription, "{}").unwrap();
    let second = seal(&browser.subscription, "{}").unwrap();
    for body in [&first, &second] {
        assert_eq!(body[16..20], 4096_u32.to_be_bytes());
        assert_eq!((body[20], body[21]), (65, 4));
    }
    assert_ne!(first[..16], second[..16]);
    assert_ne!(first[21..86], second[21..86]);
}

#[test]
fn lengths_tell_one_of_six_steps_and_the_longest_fits_what_services_take() {
    let browser = Browser::new();
    let body_bytes = |length| seal(&browser.subscription, &json_of(length)).unwrap().len();
    let (mut shortest, mut seen) = (2, Vec::new());
    for step in PADDED_BYTES {
        assert_eq!(body_bytes(shortest), body_bytes(step));
        seen.push(body_bytes(step));
        shortest = step + 1;
    }
    seen.dedup();
    assert_eq!(seen.len(), PADDED_BYTES.len());
    assert!(seen.iter().all(|length| *length <= LONGEST_BODY_BYTES));
    assert_eq!(
        seal(&browser.subscription, &json_of(LONGEST_JSON_BYTES + 1)),
        Err(SealError::TooLarge)
    );
}

#[test]
fn letters_of_several_bytes_are_counted_in_bytes() {
    let browser = Browser::new();
    let ascii = seal(&browser.subscription, &json_of(256)).unwrap();
    let wide = format!("\"{}\"", "é".repeat(127));
    assert_eq!(seal(&browser.subscription, &wide).unwrap().len(), ascii.len());
}

#[test]
fn what_is_not_json_is_not_sealed() {
    for text in ["", "hello", "{", "{} {}"] {
        assert_eq!(seal(&Browser::new().subscription, text), Err(SealError::NotJson));
    }
}

#[test]
fn another_browser_can_not_open_it_nor_this_one_with_another_secret() {
    let browser = Browser::new();
    let body = seal(&browser.subscription, "{}").unwrap();
    let mut other = Browser::new();
    other.auth[0] ^= 1;
    assert!(other.open(&body).is_err());
    let key = crypto::random_key().unwrap();
    let stranger = EcKeyComponents::new(key.to_bytes().to_vec(), key.public_key().to_sec1_bytes().to_vec());
    assert!(ece::decrypt(&stranger, &browser.auth, &body).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_sealed_opens_to_the_same_json(text in any::<String>()) {
        let json = serde_json::json!({ "body": text }).to_string();
        prop_assume!(json.len() <= LONGEST_JSON_BYTES);
        let browser = Browser::new();
        let opened = browser.open(&seal(&browser.subscription, &json).unwrap()).unwrap();
        prop_assert_eq!(opened.trim_end_matches(' '), json);
    }

    #[test]
    fn one_changed_bit_anywhere_does_not_open_to_anything_else(bit in 0usize..8 * (86 + 384 + 16)) {
        let browser = Browser::new();
        let mut body = seal(&browser.subscription, "{}").unwrap();
        prop_assert_eq!(body.len(), 86 + 384 + 16);
        body[bit / 8] ^= 1 << (bit % 8);
        // The record size is not authenticated (RFC 8188): one record in a larger frame is the same record.
        match browser.open(&body) {
            Err(_) => {}
            Ok(json) => {
                prop_assert!((16..20).contains(&(bit / 8)));
                prop_assert_eq!(json.trim_end(), "{}");
            }
        }
    }
}
