//! What became of a push, as callers are told.
//!
//! Invariant: the words stay the same; callers act on them. Only `invalid_token` makes a caller delete something.

use serde::{Deserialize, Serialize};

use crate::time::UnixMillis;

/// What became of a push.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum PushResult {
    /// The provider took it.
    Sent,
    /// The device is gone: callers delete the registration. Said only when that is really so.
    InvalidToken,
    /// Anything else.
    Failed,
}

impl PushResult {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::InvalidToken => "invalid_token",
            Self::Failed => "failed",
        }
    }
}

/// Why, in words that stay the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Reason {
    /// invalid_token: the app was removed or the registration ended.
    Unregistered,
    /// invalid_token: the token or channel expired.
    ExpiredToken,
    /// invalid_token: the provider doesn't know the token.
    BadToken,
    /// invalid_token: a token of another app.
    WrongApp,
    /// invalid_token: it can't be a token of this platform.
    MalformedToken,
    /// failed: this token was called gone less than a minute ago.
    RecentlyInvalid,
    /// failed: the provider calls the token bad, but nothing yet proves that the fault is not the relay's, or that it
    /// was the provider who spoke.
    UnconfirmedToken,
    /// failed: too many pushes to this device.
    DeviceThrottled,
    /// failed: the provider asks everybody to slow down.
    ProviderThrottled,
    /// failed: the provider answers with an error of its own.
    ProviderUnavailable,
    /// failed: no answer in time.
    ProviderTimeout,
    /// failed: it may have been delivered.
    UnknownOutcome,
    /// failed: the provider refuses this payload.
    PayloadRejected,
    /// failed: the provider dropped it, the device being offline.
    Dropped,
    /// failed: the provider refuses the relay (credentials, topic, clock). The operator is alarmed.
    RelayMisconfigured,
}

impl Reason {
    /// All of them, for documentation and tests.
    pub const ALL: [Self; 15] = [
        Self::Unregistered,
        Self::ExpiredToken,
        Self::BadToken,
        Self::WrongApp,
        Self::MalformedToken,
        Self::RecentlyInvalid,
        Self::UnconfirmedToken,
        Self::DeviceThrottled,
        Self::ProviderThrottled,
        Self::ProviderUnavailable,
        Self::ProviderTimeout,
        Self::UnknownOutcome,
        Self::PayloadRejected,
        Self::Dropped,
        Self::RelayMisconfigured,
    ];

    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unregistered => "unregistered",
            Self::ExpiredToken => "expired_token",
            Self::BadToken => "bad_token",
            Self::WrongApp => "wrong_app",
            Self::MalformedToken => "malformed_token",
            Self::RecentlyInvalid => "recently_invalid",
            Self::UnconfirmedToken => "unconfirmed_token",
            Self::DeviceThrottled => "device_throttled",
            Self::ProviderThrottled => "provider_throttled",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::ProviderTimeout => "provider_timeout",
            Self::UnknownOutcome => "unknown_outcome",
            Self::PayloadRejected => "payload_rejected",
            Self::Dropped => "dropped",
            Self::RelayMisconfigured => "relay_misconfigured",
        }
    }
}

/// 200 of `POST /v1/push`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PushAnswer {
    /// The outcome.
    pub result: PushResult,
    /// Why, unless `sent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// With `failed`: whether the same push may succeed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Earliest useful retry, in seconds from now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
    /// With `invalid_token`: delete only a registration older than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub invalid_since: Option<UnixMillis>,
    /// The provider's name of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
}

impl PushAnswer {
    /// The provider took it.
    pub fn sent(message_id: Option<String>) -> Self {
        Self {
            message_id,
            ..Self::bare(PushResult::Sent, None)
        }
    }

    /// The device is gone since `since`.
    pub fn invalid_token(reason: Reason, since: UnixMillis) -> Self {
        Self {
            invalid_since: Some(since),
            ..Self::bare(PushResult::InvalidToken, Some(reason))
        }
    }

    /// Something else.
    pub fn failed(reason: Reason, retryable: bool, retry_after_seconds: Option<u64>) -> Self {
        Self {
            retryable: Some(retryable),
            retry_after_seconds,
            ..Self::bare(PushResult::Failed, Some(reason))
        }
    }

    /// Whether a repeat under the same idempotency key gets this answer again: all but what may succeed later, and
    /// what says nothing about the push itself. A relay's own fault may be mended long before the key is forgotten.
    pub fn is_final(&self) -> bool {
        self.retryable != Some(true) && self.reason != Some(Reason::RelayMisconfigured)
    }

    fn bare(result: PushResult, reason: Option<Reason>) -> Self {
        Self {
            result,
            reason,
            retryable: None,
            retry_after_seconds: None,
            invalid_since: None,
            message_id: None,
        }
    }
}
