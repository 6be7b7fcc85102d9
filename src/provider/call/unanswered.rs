//! What a push comes to that got no answer, or not all of one.

use std::time::Duration;

use reqwest::StatusCode;
use sovereign_relay_actors::ports::{Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::push::Reason;

use crate::provider::{
    answer::{failed, misconfigured, not_the_providers},
    http::SendError,
    oauth::{NoToken, TokenError},
};

/// How long a device is left alone whose provider took the access token neither before nor after a fresh one.
const REFUSED_REST: Duration = Duration::from_secs(10);

/// The last of the tries that the provider surely did not see: it is away, or there and takes no streams.
pub(super) fn not_taken(last: SendError) -> Outcome {
    match last {
        SendError::Refused => failed(Reason::ProviderUnavailable, true, Health::Faulty),
        SendError::NotSent
        | SendError::Unsendable
        | SendError::TimedOut
        | SendError::Reset
        | SendError::Lost => Outcome::Unreachable,
    }
}

/// A 4xx whose body was lost. Whom a 429 concerns was in it, so it holds nobody but this push.
pub(super) fn without_body(status: StatusCode, hint: Option<Duration>) -> Outcome {
    match status {
        StatusCode::TOO_MANY_REQUESTS => passing(Reason::ProviderThrottled, hint, Health::Answered),
        _ => not_the_providers(),
    }
}

/// There was no access token to send it with. Final is only what the token endpoint itself says.
pub(super) fn without_token(none: NoToken) -> Outcome {
    let (error, wait) = match none {
        NoToken::NotIssued { error, wait } => (error, wait),
        NoToken::Doubted { wait } => {
            return passing(Reason::RelayMisconfigured, Some(wait), Health::Answered);
        }
    };
    match error {
        TokenError::Unreachable => Outcome::Unreachable,
        TokenError::Unavailable => passing(Reason::ProviderUnavailable, wait, Health::Faulty),
        TokenError::Unusable => passing(Reason::ProviderUnavailable, wait, Health::Answered),
        TokenError::Throttled { wait: asked } => passing(
            Reason::ProviderThrottled,
            Some(wait.unwrap_or(asked)),
            Health::Answered,
        ),
        TokenError::Refused => misconfigured(),
    }
}

/// Its access token was refused, and no other is to be had for it now. Where others are accepted with the same it is
/// something about this device's address; else perhaps the relay.
pub(super) fn token_refused(others_are_accepted: bool) -> Outcome {
    let reason = match others_are_accepted {
        true => Reason::ProviderUnavailable,
        false => Reason::RelayMisconfigured,
    };
    Outcome::Failed(Failure {
        reason,
        retryable: true,
        retry_after: Some(REFUSED_REST),
        hold: Hold::Token,
        health: Health::Answered,
    })
}

/// It may do better after a while, which concerns nobody else.
fn passing(reason: Reason, retry_after: Option<Duration>, health: Health) -> Outcome {
    Outcome::Failed(Failure {
        reason,
        retryable: true,
        retry_after,
        hold: Hold::Nothing,
        health,
    })
}
