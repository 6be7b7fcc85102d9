//! Why a request was refused, in words for the app and in words for the log.
//!
//! Every answer of the routes that is no success has the body `{"error": "<stable code>", "message": "<a sentence>"}`.
//! The codes are those that the relay uses for the same things, so that an app needs to know one list.

use actix_web::{
    HttpResponse, ResponseError,
    error::JsonPayloadError,
    http::{StatusCode, header},
};
use serde_json::json;
use thiserror::Error;

use super::{authenticate::AuthenticationError, body_time};
use crate::{notification::InvalidNotification, store::StoreError, web_push::SubscriptionError};

/// A request was refused. Its text is the sentence that goes out.
#[derive(Debug, Error)]
pub(crate) enum ApiError {
    /// A field is missing, or is not what it should be.
    #[error("{0}")]
    Invalid(&'static str),
    /// A subscription is not what it should be.
    #[error(transparent)]
    Subscription(#[from] SubscriptionError),
    /// A notification can't be sent to anyone.
    #[error(transparent)]
    Notification(#[from] InvalidNotification),
    /// The body is not the JSON object that the route takes.
    #[error("the body must be a JSON object with the fields of this route")]
    NotJson,
    /// Nobody is signed in.
    #[error("sign in first")]
    Unauthorized,
    /// A page of another site sent it with this browser's cookies.
    #[error("a page of another site may not change your devices")]
    CrossSite,
    /// No such route, or nothing of this user's with that id.
    #[error("there is nothing here")]
    NotFound,
    /// The route exists, the method doesn't.
    #[error("this route doesn't take that method")]
    MethodNotAllowed(&'static str),
    /// The body is too large.
    #[error("the body is larger than 16 KiB")]
    TooLarge,
    /// The body did not arrive.
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The body is something else than JSON.
    #[error("send JSON, with content-type: application/json")]
    NotJsonType,
    /// This user registers faster than anybody's devices do.
    #[error("too many registrations; try again later")]
    RateLimited {
        /// Seconds until one would pass.
        retry_after: u64,
    },
    /// The administrator turned native push off.
    #[error("native push notifications are turned off on this server")]
    RelayOff,
    /// The administrator turned Web Push off.
    #[error("browser notifications are turned off on this server")]
    WebPushOff,
    /// The host could not say who asks: an answer of 401 would sign people out.
    #[error("who you are can't be checked right now; try again")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The database.
    #[error("something is wrong on this server; its log says what")]
    Store(#[from] StoreError),
}

impl ApiError {
    fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) | Self::Subscription(_) | Self::Notification(_) | Self::NotJson => {
                "invalid_request"
            }
            Self::Unauthorized => "unauthorized",
            Self::CrossSite => "origin_not_allowed",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed(_) => "method_not_allowed",
            Self::TooLarge => "payload_too_large",
            Self::TooSlow => "request_timeout",
            Self::NotJsonType => "unsupported_media_type",
            Self::RateLimited { .. } => "rate_limited",
            Self::RelayOff | Self::WebPushOff => "not_configured",
            Self::Unavailable(_) => "unavailable",
            Self::Store(StoreError::OutboxFull) => "overloaded",
            Self::Store(_) => "internal_error",
        }
    }

    /// The inward half, once, at the boundary.
    fn log(&self) {
        match self {
            Self::Store(error) => tracing::error!(%error, "a request failed"),
            Self::Unavailable(error) => tracing::warn!(%error, "the host can't authenticate"),
            Self::Invalid(_)
            | Self::Subscription(_)
            | Self::Notification(_)
            | Self::NotJson
            | Self::Unauthorized
            | Self::CrossSite
            | Self::NotFound
            | Self::MethodNotAllowed(_)
            | Self::TooLarge
            | Self::TooSlow
            | Self::NotJsonType
            | Self::RateLimited { .. }
            | Self::RelayOff
            | Self::WebPushOff => {}
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Invalid(_) | Self::Subscription(_) | Self::Notification(_) | Self::NotJson => {
                StatusCode::BAD_REQUEST
            }
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::CrossSite => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::NotJsonType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::RelayOff
            | Self::WebPushOff
            | Self::Unavailable(_)
            | Self::Store(StoreError::OutboxFull) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Store(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        self.log();
        let mut answer = HttpResponse::build(self.status_code());
        if let Self::RateLimited { retry_after } = self {
            answer.insert_header((header::RETRY_AFTER, retry_after.to_string()));
        }
        if let Self::TooSlow = self {
            answer.force_close();
        }
        if let Self::MethodNotAllowed(allowed) = self {
            answer.insert_header((header::ALLOW, *allowed));
        }
        answer.json(json!({ "error": self.code(), "message": self.to_string() }))
    }
}

impl From<AuthenticationError> for ApiError {
    fn from(error: AuthenticationError) -> Self {
        match error {
            AuthenticationError::Unauthenticated => Self::Unauthorized,
            AuthenticationError::Unavailable(cause) => Self::Unavailable(cause),
        }
    }
}

/// What the parser says of the content stays inside: it may quote it.
impl From<JsonPayloadError> for ApiError {
    fn from(error: JsonPayloadError) -> Self {
        match error {
            JsonPayloadError::OverflowKnownLength { .. } | JsonPayloadError::Overflow { .. } => {
                Self::TooLarge
            }
            JsonPayloadError::ContentType => Self::NotJsonType,
            JsonPayloadError::Payload(error) if body_time::is_over(&error) => Self::TooSlow,
            // The enum of the library is open; all the rest is about a body that can't be read.
            _ => Self::NotJson,
        }
    }
}
