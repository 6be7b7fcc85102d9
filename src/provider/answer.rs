//! What FCM and WNS answered, and the outcomes that both use.
//!
//! [`super::call`] makes an [`Answer`]; the `error` module of each provider turns it into a [`Reading`].

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::HeaderMap;
use sovereign_relay_actors::ports::{Certainty, Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::{push::Reason, time::UnixMillis};

use super::{alarm::Refusal, retry_after::retry_after};

/// An answer, whole.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// `Retry-After`, if it could be read.
    pub(crate) retry_after: Option<Duration>,
    /// When the call began: a device that is gone was so by then, and may have registered again since.
    pub(crate) began: UnixMillis,
}

impl Answer {
    /// An answer that came at `now` to a call that began at `began`.
    pub(crate) fn new(
        (status, headers, body): (u16, HeaderMap, Bytes),
        began: UnixMillis,
        now: UnixMillis,
    ) -> Self {
        Self {
            status,
            retry_after: retry_after(&headers, now),
            headers,
            body,
            began,
        }
    }

    /// The device seems to be gone.
    pub(crate) fn gone(&self, certainty: Certainty, reason: Reason) -> Outcome {
        Outcome::Gone {
            certainty,
            reason,
            since: self.began,
        }
    }

    /// Too many pushes for whomever `hold` names; without a hint they wait for `default`.
    pub(crate) fn throttled(&self, reason: Reason, hold: Hold, default: Duration) -> Outcome {
        Outcome::Failed(Failure {
            reason,
            retryable: true,
            retry_after: Some(self.retry_after.unwrap_or(default)),
            hold,
            health: Health::Answered,
        })
    }

    /// A 5xx: the provider's own trouble. With a hint everybody waits for it.
    pub(crate) fn unavailable(&self) -> Outcome {
        Outcome::Failed(Failure {
            reason: Reason::ProviderUnavailable,
            retryable: true,
            retry_after: self.retry_after,
            hold: self.retry_after.map_or(Hold::Nothing, |_| Hold::Provider),
            health: Health::Faulty,
        })
    }
}

/// What an answer means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    /// This.
    Outcome(Outcome),
    /// The relay itself is refused, for good.
    RelayRefused(Refusal),
    /// It reads like that and is not in the provider's form: the operator is told, and the push may do better later.
    PerhapsRelayRefused(Refusal),
    /// The access token is refused: the relay is, if a fresh one is refused too.
    TokenRefused(Refusal),
}

/// A failure that concerns nobody but this push.
pub(crate) fn failed(reason: Reason, retryable: bool, health: Health) -> Outcome {
    Outcome::Failed(Failure {
        reason,
        retryable,
        retry_after: None,
        hold: Hold::Nothing,
        health,
    })
}

/// The relay's own fault: it is refused, or the lane asked for a platform that is off.
pub(crate) fn misconfigured() -> Outcome {
    failed(Reason::RelayMisconfigured, false, Health::Answered)
}

/// A success in a form that the provider does not document: perhaps taken.
pub(crate) fn perhaps_taken() -> Outcome {
    failed(Reason::UnknownOutcome, true, Health::Answered)
}

/// Some proxy's answer, or a redirect that is not followed: nothing about the device, and not the provider's health.
pub(crate) fn not_the_providers() -> Outcome {
    failed(Reason::ProviderUnavailable, true, Health::Answered)
}

/// An outcome at a host that was never heard of as the provider: it is this push's alone.
pub(crate) fn of_an_unknown_host(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Unreachable => Outcome::HostUnreachable,
        Outcome::Failed(failure) => Outcome::Failed(Failure {
            hold: match failure.hold {
                Hold::Provider => Hold::Token,
                Hold::Token | Hold::Nothing => failure.hold,
            },
            health: Health::Unknown,
            ..failure
        }),
        Outcome::Sent { .. }
        | Outcome::Gone { .. }
        | Outcome::HostUnreachable
        | Outcome::Overloaded { .. } => outcome,
    }
}

#[cfg(test)]
impl Reading {
    /// What the instance would be told if it came to that.
    pub(crate) fn outcome(self) -> Outcome {
        match self {
            Self::Outcome(outcome) => outcome,
            Self::PerhapsRelayRefused(_) => not_the_providers(),
            Self::RelayRefused(_) | Self::TokenRefused(_) => misconfigured(),
        }
    }
}
