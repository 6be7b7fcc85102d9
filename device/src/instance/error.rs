//! Why a call failed: nobody is signed in, push is off, refused, or no usable answer.

use std::time::Duration;

use thiserror::Error;

/// The calls could not be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// Not an address, or one with a user name, a query or a fragment.
    #[error("not an instance's address: https, a host, and at most a path")]
    Address,
    /// The session would travel in plain text.
    #[error("an instance is called by https; http is for loopback in development, and must be allowed")]
    Plaintext,
    /// A header can't carry it.
    #[error("the session must be visible ASCII characters, at least one")]
    Session,
    /// The extra certificates are not PEM.
    #[error("the extra certificates can't be read: {0}")]
    Certificates(#[source] reqwest::Error),
    /// There is none in the text.
    #[error("there is no certificate in the extra certificates")]
    NoCertificate,
    /// The HTTP library refused.
    #[error("the HTTP client could not be made: {0}")]
    Client(#[source] reqwest::Error),
}

/// A call failed. It quotes no session, token or key.
#[derive(Debug, Error)]
pub enum CallError {
    /// The session is over or was never one: sign in, then register.
    #[error("nobody is signed in")]
    Unauthenticated,
    /// The instance's administrator turned native push off. Ask again at the next start.
    #[error("native push is turned off on this instance")]
    PushOff,
    /// The instance said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No answer: no network, no instance there, or too slow. It may have done what it was asked; a repeat is harmless.
    #[error("the instance can't be reached: {0}")]
    Unreachable(#[source] reqwest::Error),
    /// Something answered that is no instance: a captive portal, a proxy's page, a redirect.
    #[error("an answer with status {0} that is not an instance's")]
    Unreadable(u16),
}

/// The instance said no.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("refused with {status}: {message}")]
pub struct Refusal {
    /// HTTP status.
    pub status: u16,
    /// Stable, such as `invalid_request`.
    pub code: String,
    /// One sentence for a person.
    pub message: String,
    /// When to try again, where the instance says so.
    pub retry_after: Option<Duration>,
}

impl CallError {
    /// Whether the same call may succeed later, without anything else being done.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unauthenticated | Self::PushOff => false,
            Self::Refused(refusal) => refusal.status == 429 || refusal.status >= 500,
            Self::Unreachable(_) | Self::Unreadable(_) => true,
        }
    }

    /// How long to wait before that, where the instance says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::Unauthenticated | Self::PushOff | Self::Unreachable(_) | Self::Unreadable(_) => None,
        }
    }
}
