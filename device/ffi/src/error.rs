//! Errors in the form that crosses: the same cases as in `sovereign_device`, with their sentence.
//!
//! Where a case has nothing but its sentence, that is all that crosses (`flat_error`).

use sovereign_device::{instance, store, token};
use thiserror::Error;

/// A store did not do what it was asked. What to do stands with each in `sovereign_device::StoreError`.
#[derive(Debug, Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum StoreError {
    /// There is no credential store here, or it can't be reached: try later, or use another place.
    #[error("{0}")]
    Unavailable(String),
    /// Locked, or the user refused: ask again when the user is there.
    #[error("{0}")]
    Locked(String),
    /// What is kept there is of another program.
    #[error("{0}")]
    Foreign(String),
    /// What was kept is no longer whole: forget it and register anew.
    #[error("{0}")]
    Damaged(String),
    /// Written by a later version.
    #[error("{0}")]
    Newer(String),
    /// A file is never kept without one.
    #[error("{0}")]
    NoPassphrase(String),
    /// Ask for it again.
    #[error("{0}")]
    WrongPassphrase(String),
    /// The file may be read by others than its owner.
    #[error("{0}")]
    Exposed(String),
    /// The store took the key and does not hold it.
    #[error("{0}")]
    NotKept(String),
    /// The file system.
    #[error("{0}")]
    Io(String),
    /// The operating system gives no randomness.
    #[error("{0}")]
    Randomness(String),
    /// The app's own store.
    #[error("{0}")]
    Host(String),
}

/// An app's own store failed.
#[derive(Debug, Error, uniffi::Error)]
pub enum KeyStoreError {
    /// In its own words, which must not hold the entry.
    #[error("{reason}")]
    Failed {
        /// For the log.
        reason: String,
    },
}

/// A payload could not be opened.
#[derive(Debug, Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum OpenError {
    /// Longer than any push can be.
    #[error("{0}")]
    TooLarge(String),
    /// Cut short, or changed on the way.
    #[error("{0}")]
    Damaged(String),
    /// Sealed for another key, or changed on the way.
    #[error("{0}")]
    NotForThisKey(String),
    /// It opened, but holds no notification.
    #[error("{0}")]
    NotANotification(String),
}

/// What was given can't be a token.
#[derive(Debug, Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum TokenError {
    /// Not APNs'.
    #[error("{0}")]
    Apns(String),
    /// Not FCM's.
    #[error("{0}")]
    Fcm(String),
    /// Not a WNS channel.
    #[error("{0}")]
    Channel(String),
}

/// The calls to an instance could not be set up.
#[derive(Debug, Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum SetupError {
    /// Not an instance's address.
    #[error("{0}")]
    Address(String),
    /// The session would travel in plain text.
    #[error("{0}")]
    Plaintext(String),
    /// A header can't carry the session.
    #[error("{0}")]
    Session(String),
    /// The extra certificates can't be read.
    #[error("{0}")]
    Certificates(String),
    /// There is none among the extra certificates.
    #[error("{0}")]
    NoCertificate(String),
    /// The HTTP library refused.
    #[error("{0}")]
    Client(String),
}

/// A call to an instance failed.
#[derive(Debug, Error, uniffi::Error)]
pub enum CallError {
    /// The session is over or was never one: sign in, then register.
    #[error("nobody is signed in")]
    Unauthenticated,
    /// The instance's administrator turned native push off.
    #[error("native push is turned off on this instance")]
    PushOff,
    /// The instance said no.
    #[error("refused with {status}: {reason}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Stable, such as `invalid_request`.
        code: String,
        /// One sentence for a person.
        reason: String,
        /// When to try again, where the instance says so.
        retry_after_seconds: Option<u64>,
        /// Whether that makes sense.
        is_retryable: bool,
    },
    /// No answer; a repeat is harmless.
    #[error("{reason}")]
    Unreachable {
        /// For the log.
        reason: String,
    },
    /// Something answered that is no instance: a captive portal, a proxy's page, a redirect.
    #[error("an answer with status {status} that is not an instance's")]
    Unreadable {
        /// HTTP status.
        status: u16,
    },
    /// A fault of this library.
    #[error("{reason}")]
    Internal {
        /// For the log.
        reason: String,
    },
}

impl From<store::StoreError> for StoreError {
    fn from(error: store::StoreError) -> Self {
        let text = error.to_string();
        match error {
            store::StoreError::Unavailable(_) => Self::Unavailable(text),
            store::StoreError::Locked(_) => Self::Locked(text),
            store::StoreError::Foreign => Self::Foreign(text),
            store::StoreError::Damaged => Self::Damaged(text),
            store::StoreError::Newer => Self::Newer(text),
            store::StoreError::NoPassphrase => Self::NoPassphrase(text),
            store::StoreError::WrongPassphrase => Self::WrongPassphrase(text),
            store::StoreError::Exposed => Self::Exposed(text),
            store::StoreError::NotKept => Self::NotKept(text),
            store::StoreError::Io(_) => Self::Io(text),
            store::StoreError::Randomness => Self::Randomness(text),
            store::StoreError::Host(_) => Self::Host(text),
        }
    }
}

impl From<sovereign_device::KeysError> for StoreError {
    fn from(error: sovereign_device::KeysError) -> Self {
        match error {
            sovereign_device::KeysError::Store(error) => error.into(),
            sovereign_device::KeysError::Randomness => Self::Randomness(error.to_string()),
        }
    }
}

/// An exception that the app's store did not declare.
impl From<uniffi::UnexpectedUniFFICallbackError> for KeyStoreError {
    fn from(error: uniffi::UnexpectedUniFFICallbackError) -> Self {
        Self::Failed { reason: error.reason }
    }
}

impl From<sovereign_device::OpenError> for OpenError {
    fn from(error: sovereign_device::OpenError) -> Self {
        let text = error.to_string();
        match error {
            sovereign_device::OpenError::TooLarge => Self::TooLarge(text),
            sovereign_device::OpenError::Damaged => Self::Damaged(text),
            sovereign_device::OpenError::NotForThisKey => Self::NotForThisKey(text),
            sovereign_device::OpenError::NotANotification(_) => Self::NotANotification(text),
        }
    }
}

impl From<token::TokenError> for TokenError {
    fn from(error: token::TokenError) -> Self {
        let text = error.to_string();
        match error {
            token::TokenError::Apns => Self::Apns(text),
            token::TokenError::Fcm => Self::Fcm(text),
            token::TokenError::Channel => Self::Channel(text),
        }
    }
}

impl From<instance::SetupError> for SetupError {
    fn from(error: instance::SetupError) -> Self {
        let text = error.to_string();
        match error {
            instance::SetupError::Address => Self::Address(text),
            instance::SetupError::Plaintext => Self::Plaintext(text),
            instance::SetupError::Session => Self::Session(text),
            instance::SetupError::Certificates(_) => Self::Certificates(text),
            instance::SetupError::NoCertificate => Self::NoCertificate(text),
            instance::SetupError::Client(_) => Self::Client(text),
        }
    }
}

impl From<instance::CallError> for CallError {
    fn from(error: instance::CallError) -> Self {
        let is_retryable = error.is_retryable();
        match error {
            instance::CallError::Unauthenticated => Self::Unauthenticated,
            instance::CallError::PushOff => Self::PushOff,
            instance::CallError::Refused(refusal) => Self::Refused {
                status: refusal.status,
                code: refusal.code,
                reason: refusal.message,
                retry_after_seconds: refusal.retry_after.map(|wait| wait.as_secs()),
                is_retryable,
            },
            instance::CallError::Unreachable(_) => Self::Unreachable {
                reason: error.to_string(),
            },
            instance::CallError::Unreadable(status) => Self::Unreadable { status },
        }
    }
}
