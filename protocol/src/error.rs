//! The stable error codes and the body that every error of every route has.

use serde::{Deserialize, Serialize};

/// Why a request was refused. The text form is public and stable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ErrorCode {
    /// 400: the body or a parameter is malformed.
    InvalidRequest,
    /// 401: no key, or one this relay did not sign.
    Unauthorized,
    /// 401: the instance was withdrawn or revoked, or this key was rotated away.
    Revoked,
    /// 403: the operator or the abuse policy stopped the instance for a while.
    Suspended,
    /// 403: this relay takes no new instances.
    EnrollmentClosed,
    /// 403: browser pages of this origin may not open signaling connections here.
    OriginNotAllowed,
    /// 404: no such route or thing.
    NotFound,
    /// 405: the route exists, the method doesn't.
    MethodNotAllowed,
    /// 408: the body did not arrive in time.
    RequestTimeout,
    /// 409: the signaling session has both peers.
    SessionFull,
    /// 409: the session was made with other settings.
    SettingsConflict,
    /// 409: the idempotency key was used for another message.
    IdempotencyConflict,
    /// 413: the body, or the payload in the provider's envelope, is too large.
    PayloadTooLarge,
    /// 415: not JSON.
    UnsupportedMediaType,
    /// 429: a limit; `Retry-After` says when.
    RateLimited,
    /// 500: a fault of the relay.
    InternalError,
    /// 502: the provider could not be reached in time.
    SendFailed,
    /// 503: the relay lacks the configuration for this.
    NotConfigured,
    /// 503: the relay has no credentials for this platform.
    PlatformNotConfigured,
    /// 503: too much work in front of this provider.
    Overloaded,
    /// 503: the relay is stopping.
    Draining,
}

impl ErrorCode {
    /// All codes, for documentation and tests.
    pub const ALL: [Self; 21] = [
        Self::InvalidRequest,
        Self::Unauthorized,
        Self::Revoked,
        Self::Suspended,
        Self::EnrollmentClosed,
        Self::OriginNotAllowed,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::SessionFull,
        Self::SettingsConflict,
        Self::IdempotencyConflict,
        Self::PayloadTooLarge,
        Self::UnsupportedMediaType,
        Self::RateLimited,
        Self::InternalError,
        Self::SendFailed,
        Self::NotConfigured,
        Self::PlatformNotConfigured,
        Self::Overloaded,
        Self::Draining,
    ];

    /// HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Unauthorized | Self::Revoked => 401,
            Self::Suspended | Self::EnrollmentClosed | Self::OriginNotAllowed => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::SessionFull | Self::SettingsConflict | Self::IdempotencyConflict => 409,
            Self::PayloadTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::RateLimited => 429,
            Self::InternalError => 500,
            Self::SendFailed => 502,
            Self::NotConfigured | Self::PlatformNotConfigured | Self::Overloaded | Self::Draining => 503,
        }
    }

    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthorized => "unauthorized",
            Self::Revoked => "revoked",
            Self::Suspended => "suspended",
            Self::EnrollmentClosed => "enrollment_closed",
            Self::OriginNotAllowed => "origin_not_allowed",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::SessionFull => "session_full",
            Self::SettingsConflict => "settings_conflict",
            Self::IdempotencyConflict => "idempotency_conflict",
            Self::PayloadTooLarge => "payload_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::RateLimited => "rate_limited",
            Self::InternalError => "internal_error",
            Self::SendFailed => "send_failed",
            Self::NotConfigured => "not_configured",
            Self::PlatformNotConfigured => "platform_not_configured",
            Self::Overloaded => "overloaded",
            Self::Draining => "draining",
        }
    }
}

/// The body of every error answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// Stable code.
    pub error: ErrorCode,
    /// One sentence for the person who reads it. It names fields, never their content.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_text_form_and_it_is_the_wire_form() {
        let texts: std::collections::BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!((400..=503).contains(&code.status()));
        }
    }
}
