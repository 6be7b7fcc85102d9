//! The provider token: a JWT that proves to APNs whose push it is.
//!
//! Called for every push. Apple counts how often a connection is shown a new token (an error when that is more
//! than once in 20 minutes) and refuses one whose `iat` is an hour away, so time is cut into slots of 45 minutes:
//! `iat` is the start of the slot, and ECDSA by RFC 6979 gives the same signature for the same claims. All
//! replicas that share a key so send the same bytes without talking to each other, and a restart changes nothing.
//!
//! Invariant: the token is a pure function of (key, slot); one signature per slot, whatever the load.
//! <https://developer.apple.com/documentation/usernotifications/establishing-a-token-based-connection-to-apns>

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::HeaderValue;
use metrics::counter;
use p256::{
    ecdsa::{Signature, SigningKey, signature::Signer as _},
    pkcs8::DecodePrivateKey as _,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use sovereign_relay_protocol::time::UnixMillis;
use thiserror::Error;

/// Length of a slot: over Apple's 20 minutes between changes, and a quarter of an hour under its limit of an hour,
/// which is what a relay's clock may be off.
pub(super) const SLOT_SECONDS: u64 = 45 * 60;
/// A clock that steps back over a slot's start keeps the slot it had: changing twice is what Apple counts.
const BACKWARD_STEP_SECONDS: u64 = 120;
/// Key ids and team ids have this many letters and digits.
const ID_CHARS: usize = 10;

/// A token-signing key of an Apple developer team.
#[derive(Clone, Debug)]
pub struct ApnsKey {
    /// Text of the `.p8` file: a PKCS#8 private key on P-256 in PEM.
    pub pem: SecretString,
    /// Ten characters, from the developer account.
    pub key_id: String,
    /// Ten characters, from the developer account.
    pub team_id: String,
}

/// The key can't be used. Prints nothing of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum KeyError {
    /// Not PEM, not PKCS#8, or not on P-256.
    #[error("the APNs key is not a P-256 private key in PKCS#8 PEM: use the whole text of the .p8 file")]
    Key,
    /// The key id is not ten letters and digits.
    #[error(
        "the APNs key id must be the ten letters and digits shown beside the key in the developer account"
    )]
    KeyId,
    /// The team id is not ten letters and digits.
    #[error("the APNs team id must be the ten letters and digits of the developer team")]
    TeamId,
}

/// Makes and keeps the token of the current slot.
pub(super) struct TokenSource {
    key: SigningKey,
    key_id: String,
    team_id: String,
    current: Mutex<Option<Slot>>,
}

struct Slot {
    issued_at: u64,
    authorization: HeaderValue,
}

impl TokenSource {
    /// Reads the key.
    pub(super) fn new(key: &ApnsKey) -> Result<Self, KeyError> {
        let signing =
            SigningKey::from_pkcs8_pem(key.pem.expose_secret().trim()).map_err(|_| KeyError::Key)?;
        Ok(Self {
            key: signing,
            key_id: checked_id(&key.key_id).ok_or(KeyError::KeyId)?,
            team_id: checked_id(&key.team_id).ok_or(KeyError::TeamId)?,
            current: Mutex::new(None),
        })
    }

    /// The `authorization` value of this moment, marked so that it stays out of logs and of HPACK's table.
    pub(super) fn authorization(&self, now: UnixMillis) -> HeaderValue {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let issued_at = slot_start(now);
        if let Some(slot) = current.as_ref().filter(|slot| slot.serves(issued_at, now)) {
            return slot.authorization.clone();
        }
        let authorization = self.sign(issued_at);
        *current = Some(Slot {
            issued_at,
            authorization: authorization.clone(),
        });
        authorization
    }

    fn sign(&self, issued_at: u64) -> HeaderValue {
        let header = encode(&Header {
            alg: "ES256",
            kid: &self.key_id,
        });
        let claims = encode(&Claims {
            iss: &self.team_id,
            iat: issued_at,
        });
        let signature: Signature = self.key.sign(format!("{header}.{claims}").as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.to_bytes());
        counter!("relay_apns_tokens_signed_total").increment(1);
        // Base64url characters, dots and a space are always a header value.
        let mut value = HeaderValue::try_from(format!("bearer {header}.{claims}.{signature}"))
            .unwrap_or_else(|_| HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }
}

impl Slot {
    fn serves(&self, issued_at: u64, now: UnixMillis) -> bool {
        let stepped_back = self.issued_at.saturating_sub(now.seconds());
        issued_at == self.issued_at || (1..=BACKWARD_STEP_SECONDS).contains(&stepped_back)
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenSource")
    }
}

/// Start of the slot that `now` is in, in seconds since the epoch.
fn slot_start(now: UnixMillis) -> u64 {
    now.seconds() - now.seconds() % SLOT_SECONDS
}

fn checked_id(id: &str) -> Option<String> {
    let shaped = id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    shaped.then(|| id.to_owned())
}

fn encode(part: &impl Serialize) -> String {
    // Serializing strings and a number into memory has no way to fail.
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(part).unwrap_or_default())
}

/// Apple documents these two and no `typ`.
#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    kid: &'a str,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    iat: u64,
}

#[cfg(test)]
mod tests;
