//! HS256 (RFC 7518, 3.2), the only algorithm of instance keys and tickets.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation};

/// HS256 alone, and none of the registered claims. Where something ends, its caller compares: the library would ask the
/// system for the time.
pub(super) fn validation() -> Validation {
    let mut validation = Validation::new(Algorithm::HS256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
}

/// Verifies under `secret`, which is not empty: `Secrets` lets no short one through, and derived keys have 32 bytes.
#[allow(clippy::expect_used, reason = "only an empty secret is refused")]
pub(super) fn verifier(secret: &[u8]) -> DecodingKey {
    DecodingKey::from_secret(secret).expect("the secret is not empty")
}

/// Signs under `secret`, of which the same holds.
#[allow(clippy::expect_used, reason = "only an empty secret is refused")]
pub(super) fn signer(secret: &[u8]) -> EncodingKey {
    EncodingKey::from_secret(secret).expect("the secret is not empty")
}
