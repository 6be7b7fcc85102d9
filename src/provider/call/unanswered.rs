//! What a push comes to that got no answer, or not all of one.

use std::time::Duration;

use reqwest::StatusCode;
use sovereign_relay_actors::ports::{Failure, Health, Hold, Outcome};
use sovereign_relay_protocol::push::Reason;

use crate::provider::{
    answer::{failed, misconfigured, not_the_providers},
    http::SendError,
    oauth::TokenError,
};

/// The last of the tries that the provider surely did not see: it is away, or there and takes no streams.
pub(super) fn not_taken(last: SendError) -> Outcome {
    match last {
        SendError::Refused => failed(Reason::ProviderUnavailable, true, Health::Faulty),
        SendError::NotSent | SendError::Unsendable | SendError::TimedOut | SendError::Lost => {
            Outcome::Unreachable
        }
    }
}

/// A 4xx whose body was lost. Whom a 429 concerns was in it, so it holds nobody but this push.
pub(super) fn without_body(status: StatusCode, hint: Option<Duration>) -> Outcome {
    match status {
        StatusCode::TOO_MANY_REQUESTS => throttled(hint),
        _ => not_the_providers(),
    }
}

/// There was no access token to send it with.
pub(super) fn without_token(error: TokenError) -> Outcome {
    match error {
        TokenError::Unreachable => Outcome::Unreachable,
        TokenError::Unavailable => failed(Reason::ProviderUnavailable, true, Health::Faulty),
        TokenError::Unusable => not_the_providers(),
        TokenError::Throttled { wait } => throttled(Some(wait)),
        TokenError::Refused => misconfigured(),
    }
}

/// Too many of something that is not known to be this device's or everybody's pushes.
fn throttled(retry_after: Option<Duration>) -> Outcome {
    Outcome::Failed(Failure {
        reason: Reason::ProviderThrottled,
        retryable: true,
        retry_after,
        hold: Hold::Nothing,
        health: Health::Answered,
    })
}
