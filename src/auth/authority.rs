//! The one door to keys: verifies them, hands them out, replaces them, takes them back.
use std::{net::IpAddr, sync::Arc};

use sovereign_relay_actors::{
    now::Now,
    ports::{Entropy, StoreError},
};
use sovereign_relay_protocol::{
    enroll::{EnrollAnswer, EnrollRequest, RotateAnswer, RotateRequest},
    error::ErrorCode,
    id::InstanceId,
    redacted::Redacted,
};

use super::{derived::DerivedKeys, keys::Secrets};
use crate::store::Store;

/// Who may enroll: `RELAY_ENROLLMENT`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EnrollmentMode {
    /// Anyone, within the limits.
    #[default]
    Open,
    /// Who has an invite.
    Invite,
    /// Nobody.
    Closed,
}

/// The holder of a valid key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Who.
    pub instance: InstanceId,
    /// `None`: a key of the earlier relay, which had no generations.
    pub generation: Option<u32>,
}

/// A key that is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// 401: not signed by this relay.
    #[error("the instance key is not valid here")]
    Unauthorized,
    /// 401: the instance was withdrawn or revoked, or this key was rotated away.
    #[error("the instance key was revoked")]
    Revoked,
    /// 503: this relay has no enrollment secret.
    #[error("this relay has no enrollment secret")]
    NotConfigured,
}

/// An enrollment as the HTTP layer hands it in.
#[derive(Clone, Debug)]
pub struct Enrollment {
    /// The body.
    pub request: EnrollRequest,
    /// `Authorization: Bearer <invite>`, if any.
    pub invite: Option<Redacted>,
    /// The client's address.
    pub address: IpAddr,
}

/// Why an enrollment was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EnrollError {
    /// 401: no invite, or one that is unknown, used or expired.
    #[error("this relay needs an invite that was not used yet")]
    InviteRefused,
    /// 403.
    #[error("this relay takes no new instances")]
    Closed,
    /// 503: this relay has no enrollment secret.
    #[error("this relay has no enrollment secret")]
    NotConfigured,
    /// 503: nothing was enrolled.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a rotation was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RotateError {
    /// As for any call.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// 401 `unauthorized`: the key is valid, but a newer one is in use, and only the newest rotates.
    #[error("only the newest instance key can be rotated")]
    NotNewest,
    /// 503: the revocation list is full.
    #[error("the revocation list is full")]
    ListFull,
    /// 503: whether it was written is not known; asking again is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a withdrawal was refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WithdrawError {
    /// 503: the revocation list is full.
    #[error("the revocation list is full")]
    ListFull,
    /// 503: whether it was written is not known; asking again is safe.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl KeyError {
    /// The public code.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Unauthorized => ErrorCode::Unauthorized,
            Self::Revoked => ErrorCode::Revoked,
            Self::NotConfigured => ErrorCode::NotConfigured,
        }
    }
}

impl EnrollError {
    /// The public code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::InviteRefused => ErrorCode::Unauthorized,
            Self::Closed => ErrorCode::EnrollmentClosed,
            Self::NotConfigured => ErrorCode::NotConfigured,
            Self::Store(_) => ErrorCode::Overloaded,
        }
    }
}

impl RotateError {
    /// The public code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Key(error) => error.code(),
            Self::NotNewest => ErrorCode::Unauthorized,
            Self::ListFull | Self::Store(_) => ErrorCode::Overloaded,
        }
    }
}

impl WithdrawError {
    /// The public code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::ListFull | Self::Store(_) => ErrorCode::Overloaded,
        }
    }
}

/// What an [`Authority`] is made of.
pub struct Parts {
    /// Records and the revocation list.
    pub store: Arc<dyn Store>,
    /// `None`: no secret is configured; keys and enrollments answer `not_configured`.
    pub secrets: Option<Secrets>,
    /// Who may enroll.
    pub mode: EnrollmentMode,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}

/// Verifies keys, hands them out, replaces them, takes them back. One for the process, in an `Arc`.
pub struct Authority {
    pub(super) store: Arc<dyn Store>,
}

impl Authority {
    /// Loads the revocation list: no key is verified before it is in memory.
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        Ok(Self { store: parts.store })
    }

    /// Verifies a key, without I/O.
    pub fn verify(&self, _key: &Redacted, _now: Now) -> Result<Caller, KeyError> {
        unimplemented!()
    }

    /// Enrolls an instance.
    pub async fn enroll(&self, _enrollment: Enrollment, _now: Now) -> Result<EnrollAnswer, EnrollError> {
        unimplemented!()
    }

    /// Replaces an instance's key.
    pub async fn rotate(
        &self,
        _key: &Redacted,
        _request: RotateRequest,
        _now: Now,
    ) -> Result<RotateAnswer, RotateError> {
        unimplemented!()
    }

    /// The instance leaves: its keys are revoked, its record is erased. Tell the registry to refresh it.
    pub async fn withdraw(&self, _caller: Caller, _now: Now) -> Result<(), WithdrawError> {
        unimplemented!()
    }

    /// Who may enroll.
    pub fn mode(&self) -> EnrollmentMode {
        unimplemented!()
    }

    /// Whether there is an enrollment secret; without one `/readyz` says so.
    pub fn is_configured(&self) -> bool {
        unimplemented!()
    }

    /// The keys derived from the enrollment secret (from a random one where there is none).
    pub fn derived(&self) -> &DerivedKeys {
        unimplemented!()
    }

    /// One bounded step of upkeep: writes which new keys were used, forgets what has lapsed. Every minute.
    pub async fn maintain(&self, _now: Now) {
        unimplemented!()
    }
}
