use jsonwebtoken::{EncodingKey, Header};
use serde_json::json;

use super::*;

const NOW: i64 = 1_800_000_000;

fn sign(key: &ApnsKey, team: &str, issued_at: i64) -> String {
    let header = Header {
        kid: Some(key.key_id.clone()),
        typ: None,
        ..Header::new(Algorithm::ES256)
    };
    let encoding = EncodingKey::from_ec_pem(key.pem.as_bytes()).unwrap();
    jsonwebtoken::encode(&header, &json!({ "iss": team, "iat": issued_at }), &encoding).unwrap()
}

fn check(keys: &Keys, jwt: &str) -> Result<Verified, Refusal> {
    keys.check(Some(&format!("bearer {jwt}")), NOW)
}

#[test]
fn a_good_jwt_passes_and_an_hour_either_way_is_the_limit() {
    let keys = Keys::generate("TEAM").unwrap();
    for (issued_at, wanted) in [
        (NOW, Ok(())),
        (NOW - 3600, Ok(())),
        (NOW + 3600, Ok(())),
        (NOW - 3601, Err(Refusal::EXPIRED_PROVIDER_TOKEN)),
        (NOW + 3601, Err(Refusal::EXPIRED_PROVIDER_TOKEN)),
    ] {
        let jwt = sign(&keys.first(), "TEAM", issued_at);
        assert_eq!(check(&keys, &jwt).map(|_| ()), wanted, "{issued_at}");
    }
}

#[test]
fn a_jwt_of_a_stranger_another_team_or_a_revoked_key_is_invalid() {
    let keys = Keys::generate("TEAM").unwrap();
    let stranger = Keys::generate("TEAM").unwrap();
    let mut forged = stranger.first();
    forged.key_id = keys.first().key_id;
    for jwt in [
        sign(&stranger.first(), "TEAM", NOW),
        sign(&forged, "TEAM", NOW),
        sign(&keys.first(), "OTHER", NOW),
        "a.b.c".to_owned(),
    ] {
        assert_eq!(check(&keys, &jwt), Err(Refusal::INVALID_PROVIDER_TOKEN));
    }
    let second = keys.new_key().unwrap();
    let jwt = sign(&second, "TEAM", NOW);
    assert!(check(&keys, &jwt).is_ok());
    keys.revoke(&second.key_id);
    assert_eq!(check(&keys, &jwt), Err(Refusal::INVALID_PROVIDER_TOKEN));
}

#[test]
fn no_bearer_token_is_a_missing_one() {
    let keys = Keys::generate("TEAM").unwrap();
    for authorization in [None, Some("bearer"), Some("basic abc")] {
        assert_eq!(
            keys.check(authorization, NOW),
            Err(Refusal::MISSING_PROVIDER_TOKEN)
        );
    }
}

fn verified(text: &str, key_id: &str) -> Verified {
    Verified {
        text: Arc::from(text),
        key_id: Arc::from(key_id),
        issued_at: NOW,
    }
}

#[test]
fn a_second_change_within_twenty_minutes_is_one_too_many() {
    let mut jwts = ConnectionJwts::default();
    let minute = 60_000;
    assert_eq!(jwts.step(&verified("a", "k"), 0, true), Ok(JwtStep::First));
    assert_eq!(jwts.step(&verified("a", "k"), 0, true), Ok(JwtStep::Same));
    assert_eq!(
        jwts.step(&verified("b", "k"), minute, true),
        Ok(JwtStep::Changed { fresh: true })
    );
    let too_soon = jwts.step(&verified("a", "k"), 2 * minute, true);
    assert_eq!(too_soon, Err(Refusal::TOO_MANY_PROVIDER_TOKEN_UPDATES));
    assert_eq!(
        jwts.step(&verified("a", "k"), 21 * minute, true),
        Ok(JwtStep::Changed { fresh: false })
    );
}

#[test]
fn a_connection_stays_with_its_key() {
    let mut jwts = ConnectionJwts::default();
    assert_eq!(jwts.step(&verified("a", "k"), 0, true), Ok(JwtStep::First));
    assert_eq!(
        jwts.step(&verified("b", "other"), 0, true),
        Err(Refusal::UNRELATED_KEY_ID_IN_TOKEN)
    );
}
