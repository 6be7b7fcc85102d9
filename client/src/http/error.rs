//! Why a call failed: never reached the relay, no usable answer, or refused with a stable code.

use std::time::Duration;

use serde::Deserialize;
use sovereign_relay_protocol::error::ErrorCode;
use thiserror::Error;

use crate::trust::AddressError;

/// A sentence for a person; what is longer is not one.
const MESSAGE_CHARS: usize = 300;

/// A client could not be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The address is not one that a key may be sent to.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The HTTP library refused.
    #[error("the HTTP client could not be made: {0}")]
    Client(#[source] reqwest::Error),
}

/// A call failed. It quotes no content.
#[derive(Debug, Error)]
pub enum CallError {
    /// There was no connection: the relay never saw the call.
    #[error("the relay could not be reached: {0}")]
    NotSent(#[source] reqwest::Error),
    /// The connection was lost or too slow: the relay may have done what it was asked.
    #[error("the relay did not answer: {0}")]
    NoAnswer(#[source] reqwest::Error),
    /// The relay, or something in front of it, answered with something that is no answer of a relay.
    #[error("an answer with status {0} that can't be read")]
    Unreadable(u16),
    /// The relay said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// The relay said no.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("refused with {status}: {message}")]
pub struct Refusal {
    /// Stable; `None` for a code of a later version.
    pub code: Option<ErrorCode>,
    /// HTTP status; of a batch's place, the one that a single call would have had, or 0 with an unknown code.
    pub status: u16,
    /// One sentence for a person.
    pub message: String,
    /// When to try again, where the relay says so.
    pub retry_after: Option<Duration>,
}

impl CallError {
    /// Whether the same call may succeed later. A push needs an idempotency key to be repeated without a risk.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::NoAnswer(_) => true,
            Self::Unreadable(status) => *status >= 500,
            Self::Refused(refusal) => refusal.is_retryable(),
        }
    }

    /// When to try again, where the relay says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::NotSent(_) | Self::NoAnswer(_) | Self::Unreadable(_) => None,
        }
    }

    pub(super) fn of_transport(error: reqwest::Error) -> Self {
        // An address names a session or an instance's relay; whoever logs this doesn't need it.
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            Self::NotSent(error)
        } else {
            Self::NoAnswer(error)
        }
    }
}

impl Refusal {
    /// Whether the same call may succeed later: what the relay puts a time on, and its own faults.
    pub fn is_retryable(&self) -> bool {
        self.retry_after.is_some() || matches!(self.status, 408 | 429 | 500..)
    }

    pub(super) fn new(wire: WireRefusal, status: Option<u16>, header: Option<Duration>) -> Self {
        let code = ErrorCode::ALL
            .into_iter()
            .find(|code| code.as_str() == wire.error);
        Self {
            code,
            status: status.unwrap_or_else(|| code.map_or(0, ErrorCode::status)),
            message: sentence(&wire.message),
            retry_after: wire.retry_after_seconds.map(Duration::from_secs).or(header),
        }
    }
}

/// The relay's words go to logs and terminals, where lines and escapes of its own would be taken for this side's.
fn sentence(text: &str) -> String {
    let shown = text.chars().filter(|character| !character.is_control());
    shown.take(MESSAGE_CHARS).collect()
}

/// As on the wire, with codes that may be of a later version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireRefusal {
    error: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retry_after_seconds: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str, status: Option<u16>, header: Option<Duration>) -> Refusal {
        Refusal::new(serde_json::from_str(json).unwrap(), status, header)
    }

    #[test]
    fn codes_are_typed_and_those_of_a_later_version_are_not_lost() {
        for code in ErrorCode::ALL {
            let json = format!(r#"{{"error":"{}","message":"a sentence"}}"#, code.as_str());
            let refusal = refusal(&json, None, None);
            assert_eq!((refusal.code, refusal.status), (Some(code), code.status()));
        }
        let later = refusal(r#"{"error":"later","message":"m"}"#, Some(418), None);
        assert_eq!(
            (later.code, later.status, later.is_retryable()),
            (None, 418, false)
        );
    }

    #[test]
    fn a_message_is_one_line_of_bounded_length_whatever_the_relay_says() {
        let hostile =
            serde_json::json!({"error": "x", "message": format!("\u{1b}[2Ja\nb{}", "c".repeat(9000))});
        let message = refusal(&hostile.to_string(), None, None).message;
        assert!(message.starts_with("[2Jabc"), "{message}");
        assert_eq!(message.len(), MESSAGE_CHARS);
    }

    #[test]
    fn what_has_a_time_or_is_the_relays_fault_may_be_tried_again() {
        let wait = Some(Duration::from_secs(7));
        let suspended = refusal(r#"{"error":"suspended"}"#, Some(403), wait);
        assert!(suspended.is_retryable());
        assert_eq!(CallError::from(suspended).retry_after(), wait);
        assert!(refusal(r#"{"error":"draining"}"#, Some(503), None).is_retryable());
        assert!(!refusal(r#"{"error":"unauthorized"}"#, Some(401), None).is_retryable());
        assert!(CallError::Unreadable(502).is_retryable() && !CallError::Unreadable(404).is_retryable());
    }
}
