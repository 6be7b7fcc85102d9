//! Why a relay can't be used, in words for the caller, the delivery log and the admin.

use sovereign_relay_client::{
    http::error::{CallError, SetupError},
    protocol::error::ErrorCode,
};
use thiserror::Error;

use crate::store::StoreError;

/// How often a relay that is off or has revoked this instance is looked at again, in seconds.
const STOPPED_SECONDS: u64 = 300;

/// There is no key to use.
#[derive(Debug, Error)]
pub enum RelayUnavailable {
    /// The operator has turned the relay off.
    #[error("the relay is turned off")]
    Off,
    /// The relay did not enroll this instance, or refuses its keys.
    #[error("the relay could not be used lately, and is tried again later")]
    BackingOff {
        /// Unix seconds.
        until: u64,
    },
    /// The relay has withdrawn this instance. The admin has to decide.
    #[error("the relay has revoked this instance")]
    Revoked,
    /// Its address is none that a key may be sent to.
    #[error("the relay's address can't be used: {0}")]
    Address(#[from] SetupError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A call to a relay did not succeed.
#[derive(Debug, Error)]
pub enum RelayCallError {
    /// It was not made.
    #[error(transparent)]
    Unavailable(#[from] RelayUnavailable),
    /// It failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A key could not be rotated. The old one goes on working for a day: the relay may have given a new one that was lost on
/// its way, and gives the same to whoever asks again. Later it says that this instance is revoked.
#[derive(Debug, Error)]
pub enum RotateError {
    /// The call.
    #[error(transparent)]
    Call(#[from] RelayCallError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Other processes have changed it meanwhile.
    #[error("another process has changed the key meanwhile")]
    Outrun,
}

impl RelayUnavailable {
    /// When to look again, in Unix seconds.
    pub(crate) fn until(&self, now: u64) -> u64 {
        match self {
            Self::BackingOff { until } => *until,
            Self::Off | Self::Revoked | Self::Address(_) => now.saturating_add(STOPPED_SECONDS),
            Self::Store(_) => now.saturating_add(1),
        }
    }

    /// For the delivery log.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Off => "relay_off",
            Self::BackingOff { .. } => "relay_not_enrolled",
            Self::Revoked => "relay_revoked",
            Self::Address(_) => "relay_address",
            Self::Store(_) => "store",
        }
    }
}

/// Nothing of it comes from the relay: the admin's page shows it.
pub(super) fn not_enrolled(error: &CallError) -> &'static str {
    match error {
        CallError::NotSent(_) => "the relay could not be reached",
        CallError::NoAnswer(_) => "the relay did not answer",
        CallError::Unreadable(_) => "there is no relay at this address",
        CallError::Refused(refusal) => match refusal.code {
            Some(ErrorCode::EnrollmentClosed) => "the relay takes no new instances",
            Some(ErrorCode::Unauthorized) => "the relay takes new instances by invitation only",
            Some(ErrorCode::RateLimited) => "the relay takes no more instances from this address for now",
            Some(ErrorCode::InvalidRequest) => {
                "the relay does not take the name or the contact of this instance"
            }
            Some(_) | None => "the relay refused to enroll this instance",
        },
    }
}
