//! Provider JWTs: who signed, whether it is fresh, and how often a connection changes it.
//!
//! Called once per request. A signature is verified once per distinct text and simulator, later requests look the text
//! up; freshness is judged each time. Rules of "Establishing a token-based connection to APNs": ES256, `kid`, `iss`,
//! `iat` within an hour, one key per connection, no more than one change in 20 minutes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use rcgen::KeyPair;
use serde::{Deserialize, Serialize};

use crate::{apns::rules::Refusal, entropy::random_hex, error::SimulatorError, sync::lock};

/// `iat` may be this far from now, either way.
const MAX_AGE_SECONDS: i64 = 3600;
/// Two changes on one connection must be this far apart.
const MIN_UPDATE_INTERVAL_MILLIS: i64 = 20 * 60 * 1000;
/// Distinct verified JWTs kept; a relay uses one per 45 minutes. When full all are verified anew.
const MAX_VERIFIED: usize = 64;

/// A signing key as the developer account shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApnsKey {
    /// `kid`, ten characters.
    pub key_id: String,
    /// PKCS#8 PEM, the content of the `.p8` file.
    pub pem: String,
}

/// The first use of a JWT on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JwtUse {
    /// Number of the connection.
    pub connection: u64,
    /// Its text.
    pub jwt: String,
    /// `iat`
    pub issued_at: i64,
    /// When, by the simulator's clock.
    pub first_seen_unix_millis: i64,
}

/// Keys of the team, shared by both environments.
#[derive(Clone)]
pub(crate) struct Keys {
    shared: Arc<Shared>,
}

struct Shared {
    team_id: String,
    first: ApnsKey,
    known: Mutex<HashMap<String, DecodingKey>>,
    verified: Mutex<HashMap<String, Verified>>,
}

/// A JWT whose signature, issuer and key are good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verified {
    pub(crate) text: Arc<str>,
    pub(crate) key_id: Arc<str>,
    pub(crate) issued_at: i64,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    iat: i64,
}

impl Keys {
    pub(crate) fn generate(team_id: &str) -> Result<Self, SimulatorError> {
        let (first, decoding) = generate_key()?;
        let known = HashMap::from([(first.key_id.clone(), decoding)]);
        let shared = Shared {
            team_id: team_id.to_owned(),
            first,
            known: Mutex::new(known),
            verified: Mutex::new(HashMap::new()),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    pub(crate) fn first(&self) -> ApnsKey {
        self.shared.first.clone()
    }

    pub(crate) fn new_key(&self) -> Result<ApnsKey, SimulatorError> {
        let (key, decoding) = generate_key()?;
        lock(&self.shared.known).insert(key.key_id.clone(), decoding);
        Ok(key)
    }

    pub(crate) fn revoke(&self, key_id: &str) {
        lock(&self.shared.known).remove(key_id);
        lock(&self.shared.verified).clear();
    }

    /// The JWT of an `authorization` field, if it is good at `now_seconds`.
    pub(crate) fn check(&self, authorization: Option<&str>, now_seconds: i64) -> Result<Verified, Refusal> {
        let value = authorization.ok_or(Refusal::MISSING_PROVIDER_TOKEN)?;
        let (scheme, text) = value.split_once(' ').ok_or(Refusal::MISSING_PROVIDER_TOKEN)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Refusal::MISSING_PROVIDER_TOKEN);
        }
        let verified = self.verified(text).ok_or(Refusal::INVALID_PROVIDER_TOKEN)?;
        if verified.issued_at.saturating_sub(now_seconds).saturating_abs() > MAX_AGE_SECONDS {
            return Err(Refusal::EXPIRED_PROVIDER_TOKEN);
        }
        Ok(verified)
    }

    fn verified(&self, text: &str) -> Option<Verified> {
        if let Some(verified) = lock(&self.shared.verified).get(text) {
            return Some(verified.clone());
        }
        let verified = self.verify(text)?;
        let mut all = lock(&self.shared.verified);
        if all.len() >= MAX_VERIFIED {
            all.clear();
        }
        all.insert(text.to_owned(), verified.clone());
        Some(verified)
    }

    fn verify(&self, text: &str) -> Option<Verified> {
        let key_id = jsonwebtoken::decode_header(text).ok()?.kid?;
        let key = lock(&self.shared.known).get(&key_id)?.clone();
        let mut validation = Validation::new(Algorithm::ES256);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        let claims = jsonwebtoken::decode::<Claims>(text, &key, &validation)
            .ok()?
            .claims;
        (claims.iss == self.shared.team_id).then(|| Verified {
            text: Arc::from(text),
            key_id: Arc::from(key_id),
            issued_at: claims.iat,
        })
    }
}

/// The JWTs of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionJwts {
    current: Option<Verified>,
    seen: Vec<Arc<str>>,
    last_change_millis: Option<i64>,
    raised: bool,
}

/// What a request's JWT means on its connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum JwtStep {
    /// The one in use.
    Same,
    /// The first on this connection.
    First,
    /// Another one than before.
    Changed {
        /// Not seen on this connection before.
        fresh: bool,
    },
}

/// Distinct JWTs remembered per connection: days of use at one per 20 minutes.
const MAX_SEEN: usize = 256;

impl ConnectionJwts {
    /// Takes the JWT as the one in use, or says what is wrong with changing to it now.
    pub(crate) fn step(
        &mut self,
        jwt: &Verified,
        now_millis: i64,
        enforce: bool,
    ) -> Result<JwtStep, Refusal> {
        let Some(current) = &self.current else {
            self.take(jwt);
            return Ok(JwtStep::First);
        };
        if current.text == jwt.text {
            return Ok(JwtStep::Same);
        }
        if current.key_id != jwt.key_id {
            return Err(Refusal::UNRELATED_KEY_ID_IN_TOKEN);
        }
        let too_soon = self
            .last_change_millis
            .is_some_and(|last| now_millis < last.saturating_add(MIN_UPDATE_INTERVAL_MILLIS));
        if enforce && too_soon {
            return Err(Refusal::TOO_MANY_PROVIDER_TOKEN_UPDATES);
        }
        self.last_change_millis = Some(now_millis);
        Ok(JwtStep::Changed {
            fresh: self.take(jwt),
        })
    }

    /// Whether this is the first time, so that the stream limit is to be raised.
    pub(crate) fn raise_once(&mut self) -> bool {
        !std::mem::replace(&mut self.raised, true)
    }

    /// Whether it is new here.
    fn take(&mut self, jwt: &Verified) -> bool {
        self.current = Some(jwt.clone());
        let fresh = !self.seen.contains(&jwt.text);
        if fresh && self.seen.len() < MAX_SEEN {
            self.seen.push(Arc::clone(&jwt.text));
        }
        fresh
    }
}

fn generate_key() -> Result<(ApnsKey, DecodingKey), SimulatorError> {
    let pair = KeyPair::generate()?;
    let decoding = DecodingKey::from_ec_pem(pair.public_key_pem().as_bytes())?;
    let key_id = random_hex::<5>().to_ascii_uppercase();
    Ok((
        ApnsKey {
            key_id,
            pem: pair.serialize_pem(),
        },
        decoding,
    ))
}

#[cfg(test)]
mod tests;
