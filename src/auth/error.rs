//! Why a key, an enrollment, a rotation or a withdrawal is refused, and the public code of each.

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::error::ErrorCode;

/// A key that is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyError {
    /// 401: not signed by this relay.
    #[error("the instance key is not valid here")]
    Unauthorized,
    /// 401: the instance was withdrawn or revoked, or this key was rotated away.
    #[error("the instance key was revoked")]
    Revoked,
    /// 503: what the revocation list says of the instance is in a form of a newer relay.
    #[error("this replica is older than the others and can't tell whether the key holds; ask again")]
    Unreadable,
    /// 503: this relay has no enrollment secret.
    #[error("this relay has no enrollment secret")]
    NotConfigured,
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
            Self::Unreadable => ErrorCode::Overloaded,
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
