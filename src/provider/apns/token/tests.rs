use std::sync::{Arc, Barrier};

use p256::{
    ecdsa::{VerifyingKey, signature::Verifier as _},
    pkcs8::EncodePrivateKey as _,
};
use proptest::prelude::*;

use super::*;

const START: u64 = 1_800_000_000;

fn pem() -> String {
    let key = SigningKey::from_slice(&[7; 32]).unwrap();
    key.to_pkcs8_pem(p256::pkcs8::LineEnding::LF).unwrap().to_string()
}

fn key() -> ApnsKey {
    ApnsKey {
        pem: pem().into(),
        key_id: "ABC123DEFG".to_owned(),
        team_id: "TEAM567890".to_owned(),
    }
}

fn source() -> TokenSource {
    TokenSource::new(&key()).unwrap()
}

fn at(seconds: u64) -> UnixMillis {
    UnixMillis(seconds * 1000)
}

fn part(value: &HeaderValue, index: usize) -> Vec<u8> {
    let token = value.to_str().unwrap().strip_prefix("bearer ").unwrap();
    URL_SAFE_NO_PAD
        .decode(token.split('.').nth(index).unwrap())
        .unwrap()
}

#[test]
fn four_replicas_through_two_hours_show_one_token_per_slot_and_never_change_twice_within_twenty_minutes() {
    let replicas = [source(), source(), source(), source()];
    let mut changes: Vec<(u64, HeaderValue)> = Vec::new();
    for second in (START..START + 2 * 3600).step_by(7) {
        let values = replicas
            .each_ref()
            .map(|replica| replica.authorization(at(second)));
        assert!(
            values
                .iter()
                .all(|value| value.as_bytes() == values[0].as_bytes())
        );
        if changes.last().is_none_or(|(_, last)| last != values[0]) {
            changes.push((second, values[0].clone()));
        }
    }
    assert_eq!(changes.len(), 4, "two hours touch four slots of 45 minutes");
    assert!(
        changes[1..]
            .windows(2)
            .all(|pair| pair[1].0 - pair[0].0 > 20 * 60)
    );
}

#[test]
fn a_restart_in_the_middle_of_a_slot_shows_the_same_bytes() {
    assert_eq!(
        source().authorization(at(START + 11)),
        source().authorization(at(START + 500))
    );
}

#[test]
fn a_thousand_callers_at_the_change_of_a_slot_cost_one_signature() {
    let source = Arc::new(source());
    let _ = source.authorization(at(START - START % SLOT_SECONDS - 1));
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let barrier = Arc::new(Barrier::new(8));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                metrics::with_local_recorder(&recorder, || {
                    barrier.wait();
                    for _ in 0..125 {
                        let _ = source.authorization(at(START));
                    }
                });
            });
        }
    });
    assert!(
        handle.render().contains("relay_apns_tokens_signed_total 1\n"),
        "{}",
        handle.render()
    );
}

#[test]
fn the_token_says_what_apple_documents_and_its_signature_verifies() {
    let value = source().authorization(at(START));
    assert_eq!(part(&value, 0), br#"{"alg":"ES256","kid":"ABC123DEFG"}"#);
    let issued_at = START - START % SLOT_SECONDS;
    assert_eq!(
        part(&value, 1),
        format!(r#"{{"iss":"TEAM567890","iat":{issued_at}}}"#).into_bytes()
    );
    let token = value.to_str().unwrap().strip_prefix("bearer ").unwrap();
    let (signed, _) = token.rsplit_once('.').unwrap();
    let signature = Signature::from_slice(&part(&value, 2)).unwrap();
    let verifying = VerifyingKey::from(&SigningKey::from_slice(&[7; 32]).unwrap());
    verifying.verify(signed.as_bytes(), &signature).unwrap();
}

#[test]
fn the_value_is_marked_sensitive_and_prints_nothing() {
    let value = source().authorization(at(START));
    assert!(value.is_sensitive());
    assert_eq!(format!("{value:?} {:?}", source()), "Sensitive TokenSource");
}

#[test]
fn a_clock_that_steps_back_a_little_over_the_start_of_a_slot_keeps_the_token() {
    let start = START - START % SLOT_SECONDS;
    let source = source();
    let token = source.authorization(at(start));
    assert_eq!(source.authorization(at(start - 90)), token);
    let older = source.authorization(at(start - 300));
    assert_ne!(
        older, token,
        "a clock that was far ahead and is set right must not keep a future token"
    );
}

#[test]
fn a_bad_key_is_refused_with_a_sentence_that_holds_nothing_of_it() {
    let cases = [
        ApnsKey {
            pem: "-----BEGIN PRIVATE KEY-----\nSECRETSECRET\n-----END PRIVATE KEY-----".into(),
            ..key()
        },
        ApnsKey {
            pem: "SECRETSECRET".into(),
            ..key()
        },
        ApnsKey {
            pem: "".into(),
            ..key()
        },
    ];
    for case in cases {
        let error = TokenSource::new(&case).unwrap_err();
        assert_eq!(error, KeyError::Key);
        assert!(!format!("{error} {error:?} {case:?}").contains("SECRET"));
    }
    let short = ApnsKey {
        key_id: "short".to_owned(),
        ..key()
    };
    assert_eq!(TokenSource::new(&short).unwrap_err(), KeyError::KeyId);
    let odd = ApnsKey {
        team_id: "TEAM 67890".to_owned(),
        ..key()
    };
    assert_eq!(TokenSource::new(&odd).unwrap_err(), KeyError::TeamId);
}

proptest! {
    #[test]
    fn issue_time_is_never_in_the_future_and_never_near_an_hour_old(seconds in 0_u64..4_000_000_000) {
        let start = slot_start(at(seconds));
        prop_assert!(start <= seconds && seconds - start < SLOT_SECONDS);
    }
}
