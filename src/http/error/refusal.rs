//! What a refused push is told.
//!
//! Invariant: a sentence speaks of this request alone. Under an idempotency key, an earlier one may have sent the push.

use std::borrow::Cow;

use sovereign_relay_actors::{push::Refusal, wait::Limit};
use sovereign_relay_protocol::{
    error::ErrorCode,
    limits::{CONCURRENT_PUSHES, TOKEN_PER_INSTANCE_PER_MINUTE, TOKEN_PER_MINUTE, YOUNG_GROUP_PER_MINUTE},
};

use super::ApiError;

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Suspended { retry_after } => Self::new(
                ErrorCode::Suspended,
                "this instance is suspended; ask the relay's operator",
            )
            .retry_after(retry_after),
            Refusal::PayloadTooLarge => Self::new(
                ErrorCode::PayloadTooLarge,
                "encryptedPayload is larger than this platform's provider takes",
            ),
            Refusal::RateLimited(wait) => {
                Self::new(ErrorCode::RateLimited, limited(wait.limit)).retry_after(wait.time)
            }
            Refusal::IdempotencyConflict => Self::new(
                ErrorCode::IdempotencyConflict,
                "this idempotency key was used for another message; use a new one",
            ),
            Refusal::PlatformNotConfigured => Self::new(
                ErrorCode::PlatformNotConfigured,
                "this relay has no credentials for this platform; GET /v1/capabilities lists what it has",
            ),
            Refusal::SendFailed { retry_after } => Self::new(
                ErrorCode::SendFailed,
                "the provider could not be reached; this request sent nothing",
            )
            .retry_after(retry_after),
            Refusal::Overloaded { retry_after } => Self::new(
                ErrorCode::Overloaded,
                "too much is waiting for this provider; this request sent nothing",
            )
            .retry_after(retry_after),
            Refusal::Draining => Self::draining(),
            Refusal::Internal => Self::internal(),
        }
    }
}

/// Which limit it is: a caller waits for each in another way.
fn limited(limit: Limit) -> Cow<'static, str> {
    match limit {
        Limit::UnderWay => format!(
            "this instance has {CONCURRENT_PUSHES} pushes under way, as many as it may; wait for the answer to one"
        )
        .into(),
        Limit::Instance => "this instance has sent as many pushes a minute as it may".into(),
        Limit::Group => format!(
            "instances that were enrolled lately from one address share {YOUNG_GROUP_PER_MINUTE} pushes a minute, which \
             are sent"
        )
        .into(),
        Limit::Device => format!(
            "a device gets {TOKEN_PER_INSTANCE_PER_MINUTE} pushes a minute of one instance and {TOKEN_PER_MINUTE} of \
             all, and this one has had them"
        )
        .into(),
        Limit::Slowed => "this instance keeps pushing to devices that it was told are gone, and has a tenth of its \
                          limit until it deletes them"
            .into(),
        Limit::Strangers => "too many devices to which this instance never sent anything were gone; pushes to more of \
                             them wait"
            .into(),
    }
}
