//! Instance keys: JWTs (RFC 7519) signed with HS256 (RFC 7518, 3.2) under the enrollment secret.
//!
//! Called by `authority.rs` for every request. A key of this relay names the secret that signed it (`kid`) and its
//! generation (`gen`); keys of the earlier relay have neither and stay valid under the same secret. Keys don't
//! expire: what is no longer accepted is on the revocation list.
//!
//! Invariant: HS256 only, whatever the header says; nothing of a key is believed before its signature.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted};

use super::{
    authority::Caller,
    derived::derive,
    hs256::{signer, validation, verifier},
};
use crate::store::revocation::Kid;

/// Longest key that is looked at. Ours have about 220 bytes; the rest is room for other makers' headers.
const KEY_BYTES: usize = 1024;
/// Shortest secret. RFC 7518 asks for 32 bytes; deployed relays may have less, but nothing that can be guessed.
const SHORTEST_SECRET_BYTES: usize = 16;
/// Most previous secrets: a rotation needs one, and each costs every foreign key a signature check.
const PREVIOUS_SECRETS: usize = 8;

/// A secret that can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecretError {
    /// It could be guessed offline from any key.
    #[error("the enrollment secret must have at least 16 bytes")]
    TooShort,
    /// More than a rotation needs.
    #[error("at most 8 previous enrollment secrets can be configured")]
    TooManyPrevious,
}

/// The enrollment secret, and earlier ones that verify but never sign.
#[derive(Clone, Debug)]
pub struct Secrets {
    current: Redacted,
    previous: Vec<Redacted>,
}

impl Secrets {
    /// Checks the secrets.
    pub fn new(current: Redacted, previous: Vec<Redacted>) -> Result<Self, SecretError> {
        if previous.len() > PREVIOUS_SECRETS {
            return Err(SecretError::TooManyPrevious);
        }
        let secrets = Self { current, previous };
        if secrets.shortest() < SHORTEST_SECRET_BYTES {
            return Err(SecretError::TooShort);
        }
        Ok(secrets)
    }

    /// The one that signs, and that keys are derived from.
    pub(super) fn current(&self) -> &Redacted {
        &self.current
    }

    /// Those that only verify.
    pub(super) fn previous(&self) -> &[Redacted] {
        &self.previous
    }

    fn all(&self) -> impl Iterator<Item = &Redacted> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    fn shortest(&self) -> usize {
        self.all().map(Redacted::len).min().unwrap_or(0)
    }
}

/// Claims of an instance key. Others are ignored.
#[derive(Serialize, Deserialize)]
struct Claims {
    #[serde(rename = "instanceId")]
    instance_id: String,
    iat: u64,
    #[serde(rename = "gen", default, skip_serializing_if = "Option::is_none")]
    generation: Option<u32>,
}

/// Signs and verifies instance keys.
pub(super) struct KeyRing {
    header: Header,
    signer: EncodingKey,
    verifiers: Vec<DecodingKey>,
    kids: Vec<Kid>,
    validation: Validation,
}

impl KeyRing {
    /// Prepares the keys.
    pub(super) fn new(secrets: &Secrets) -> Self {
        let verifiers = secrets
            .all()
            .map(|secret| verifier(secret.expose().as_bytes()))
            .collect();
        let mut kids: Vec<Kid> = secrets.all().map(kid_of).collect();
        kids.sort_unstable();
        kids.dedup();
        let header = Header {
            kid: Some(kid_of(secrets.current()).to_string()),
            ..Header::new(Algorithm::HS256)
        };
        Self {
            header,
            signer: signer(secrets.current().expose().as_bytes()),
            verifiers,
            kids,
            validation: validation(),
        }
    }

    /// Fingerprints of all secrets, sorted.
    pub(super) fn kids(&self) -> &[Kid] {
        &self.kids
    }

    /// Makes a key. The same instance, generation and time give the same key.
    pub(super) fn sign(
        &self,
        instance: InstanceId,
        generation: u32,
        issued_at: u64,
    ) -> Result<Redacted, StoreError> {
        let claims = Claims {
            instance_id: instance.to_string(),
            iat: issued_at,
            generation: Some(generation),
        };
        jsonwebtoken::encode(&self.header, &claims, &self.signer)
            .map(Redacted::new)
            .map_err(|error| StoreError(format!("the key could not be signed: {error}")))
    }

    /// Whose key this is; `None` when none of the secrets signed it or it isn't an instance key.
    pub(super) fn verify(&self, key: &Redacted) -> Option<Caller> {
        if key.len() > KEY_BYTES {
            return None;
        }
        self.verifiers
            .iter()
            .find_map(|verifier| self.verify_with(verifier, key))
    }

    fn verify_with(&self, verifier: &DecodingKey, key: &Redacted) -> Option<Caller> {
        let claims = jsonwebtoken::decode::<Claims>(key.expose(), verifier, &self.validation)
            .ok()?
            .claims;
        let instance = InstanceId::parse(&claims.instance_id)?;
        Some(Caller {
            instance,
            generation: claims.generation,
        })
    }
}

fn kid_of(secret: &Redacted) -> Kid {
    Kid(derive(secret.expose().as_bytes(), "key fingerprint"))
}

#[cfg(test)]
mod tests;
