//! Instances of the relay without enrolling: whoever starts the relay has its secret and signs keys with it.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;

/// The key of a grown instance: the earlier relay's form, which needs no enrollment.
pub(crate) fn key(secret: &str) -> anyhow::Result<String> {
    let mut id = [0; 16];
    random(&mut id);
    let id = uuid::Builder::from_random_bytes(id).into_uuid();
    let claims = json!({ "instanceId": id, "iat": unix_seconds() });
    Ok(jsonwebtoken::encode(
        &Header::new(Algorithm::HS256),
        &claims,
        &EncodingKey::from_secret(secret.as_bytes())?,
    )?)
}

/// A secret for a relay of one run.
pub(crate) fn random_secret() -> String {
    let mut bytes = [0; 32];
    random(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Random bytes.
#[allow(clippy::disallowed_methods, reason = "a load generator has no entropy port")]
#[allow(clippy::expect_used, reason = "nothing can be measured without")]
pub(crate) fn random(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system gives randomness");
}

/// The time for a token.
#[allow(clippy::disallowed_methods, reason = "a load generator has no clock port")]
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
