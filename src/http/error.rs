//! The one form every error answer has: status, JSON body, and the headers that belong to it.
//!
//! Handlers and extractors return [`ApiError`]; the conversions below say which refusal of which part becomes
//! which stable code. Invariant: whatever goes wrong on a route, its answer is made here. RFC 9110, 10.2.1 (Allow),
//! 10.2.3 (Retry-After), 11.6.1 (WWW-Authenticate).

use std::{borrow::Cow, fmt, time::Duration};

use actix_web::{
    HttpResponse, HttpResponseBuilder, ResponseError,
    http::{StatusCode, header},
};
use sovereign_relay_actors::{instance::signal::SessionRefusal, ports::StoreError};
use sovereign_relay_protocol::{
    batch::{BatchResult, InvalidBatch},
    enroll::{InvalidEnroll, InvalidRotate},
    error::{ErrorBody, ErrorCode},
    push::InvalidPush,
    signal::session::SessionRequestError,
};

use crate::{
    auth::{EnrollError, ImportError, KeyError, OperatorError, RotateError, WithdrawError},
    limit::bodies::NoRoom,
    signaling::CreateError,
};

/// Hint where nothing better is known: a caller that comes back then does no harm.
const SHORTEST_RETRY: Duration = Duration::from_secs(1);

/// A refusal on its way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ApiError {
    code: ErrorCode,
    message: Cow<'static, str>,
    retry_after: Option<Duration>,
    allow: Option<&'static str>,
    closes_connection: bool,
}

impl ApiError {
    /// A refusal with one sentence for the person who reads it. The sentence names fields, never their content.
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        let passes = match code {
            ErrorCode::RateLimited | ErrorCode::SendFailed | ErrorCode::Overloaded | ErrorCode::Draining => {
                true
            }
            ErrorCode::InvalidRequest
            | ErrorCode::Unauthorized
            | ErrorCode::Revoked
            | ErrorCode::Suspended
            | ErrorCode::EnrollmentClosed
            | ErrorCode::OriginNotAllowed
            | ErrorCode::NotFound
            | ErrorCode::MethodNotAllowed
            | ErrorCode::RequestTimeout
            | ErrorCode::SessionFull
            | ErrorCode::SettingsConflict
            | ErrorCode::IdempotencyConflict
            | ErrorCode::PayloadTooLarge
            | ErrorCode::UnsupportedMediaType
            | ErrorCode::InternalError
            | ErrorCode::NotConfigured
            | ErrorCode::PlatformNotConfigured => false,
        };
        let retry_after = passes.then_some(SHORTEST_RETRY);
        Self {
            code,
            message: message.into(),
            retry_after,
            allow: None,
            closes_connection: false,
        }
    }

    /// 400.
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    /// 401 without a word on what exactly was wrong with the key: that would help only a forger.
    pub(crate) fn unauthorized(message: &'static str) -> Self {
        Self::new(ErrorCode::Unauthorized, message)
    }

    /// 404 of a path that no route has.
    pub(crate) fn no_route() -> Self {
        Self::new(
            ErrorCode::NotFound,
            "there is no such route; GET /openapi.json lists them",
        )
    }

    /// 405 with what would work.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let error = Self::new(
            ErrorCode::MethodNotAllowed,
            format!("this route answers {allow} only"),
        );
        Self {
            allow: Some(allow),
            ..error
        }
    }

    /// 500. The cause belongs in the log.
    pub(crate) fn internal() -> Self {
        Self::new(
            ErrorCode::InternalError,
            "the relay failed on this request; its log has the cause",
        )
    }

    /// 503 of a relay that stops.
    pub(crate) fn draining() -> Self {
        Self::new(
            ErrorCode::Draining,
            "this relay is stopping; try again, another one may answer",
        )
        .closing()
    }

    /// 503 of a store that failed. Its cause was logged where it happened.
    fn store(code: ErrorCode) -> Self {
        Self::new(
            code,
            "the relay could not reach its records; asking again is safe",
        )
    }

    /// With the moment from which a retry is useful.
    pub(crate) fn retry_after(self, after: impl Into<Option<Duration>>) -> Self {
        Self {
            retry_after: after.into().or(self.retry_after),
            ..self
        }
    }

    /// The rest of the request is not worth reading: the answer ends the connection.
    pub(crate) fn closing(self) -> Self {
        Self {
            closes_connection: true,
            ..self
        }
    }

    /// Stable code.
    pub(crate) fn code(&self) -> ErrorCode {
        self.code
    }

    /// Status and headers, without a body.
    pub(crate) fn head(&self) -> HttpResponseBuilder {
        let mut response = HttpResponse::build(self.status_code());
        if let Some(after) = self.retry_after {
            response.insert_header((header::RETRY_AFTER, whole_seconds(after).to_string()));
        }
        if let Some(allow) = self.allow {
            response.insert_header((header::ALLOW, allow));
        }
        if self.status_code() == StatusCode::UNAUTHORIZED {
            response.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
        }
        if self.closes_connection {
            response.force_close();
        }
        response
    }

    /// The same refusal as one place of a batch's results.
    pub(crate) fn into_batch_result(self) -> BatchResult {
        BatchResult::Refused {
            error: self.code,
            retry_after_seconds: self.retry_after.map(whole_seconds),
            message: self.message.into_owned(),
        }
    }
}

/// Rounded up, so that the moment named is one at which a call passes, and at least 1.
fn whole_seconds(after: Duration) -> u64 {
    let started = u64::from(after.subsec_nanos() > 0);
    after.as_secs().saturating_add(started).max(1)
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for ApiError {}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        self.head().json(ErrorBody {
            error: self.code,
            message: self.message.clone().into_owned(),
        })
    }
}

impl From<InvalidPush> for ApiError {
    fn from(invalid: InvalidPush) -> Self {
        let code = match invalid {
            InvalidPush::TooLong => ErrorCode::PayloadTooLarge,
            InvalidPush::NotJson
            | InvalidPush::NotAnObject
            | InvalidPush::FieldTwice
            | InvalidPush::DeviceToken
            | InvalidPush::Platform
            | InvalidPush::EncryptedPayload
            | InvalidPush::InstanceKey
            | InvalidPush::Priority
            | InvalidPush::Ttl
            | InvalidPush::CollapseId
            | InvalidPush::Environment
            | InvalidPush::IdempotencyKey => ErrorCode::InvalidRequest,
        };
        Self::new(code, invalid.to_string())
    }
}

impl From<InvalidBatch> for ApiError {
    fn from(invalid: InvalidBatch) -> Self {
        Self::invalid(invalid.to_string())
    }
}

impl From<InvalidEnroll> for ApiError {
    fn from(invalid: InvalidEnroll) -> Self {
        Self::invalid(invalid.to_string())
    }
}

impl From<InvalidRotate> for ApiError {
    fn from(invalid: InvalidRotate) -> Self {
        Self::invalid(invalid.to_string())
    }
}

impl From<NoRoom> for ApiError {
    fn from(refused: NoRoom) -> Self {
        let code = match refused {
            NoRoom::Relay => ErrorCode::Overloaded,
            NoRoom::Instance => ErrorCode::RateLimited,
        };
        Self::new(code, refused.to_string()).closing()
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<EnrollError> for ApiError {
    fn from(error: EnrollError) -> Self {
        match error {
            EnrollError::Store(_) => Self::store(error.code()),
            EnrollError::InviteRefused | EnrollError::Closed | EnrollError::NotConfigured => {
                Self::new(error.code(), error.to_string())
            }
        }
    }
}

impl From<RotateError> for ApiError {
    fn from(error: RotateError) -> Self {
        match error {
            RotateError::Store(_) => Self::store(error.code()),
            RotateError::Key(_) | RotateError::NotNewest | RotateError::ListFull => {
                Self::new(error.code(), error.to_string())
            }
        }
    }
}

impl From<WithdrawError> for ApiError {
    fn from(error: WithdrawError) -> Self {
        match error {
            WithdrawError::Store(_) => Self::store(error.code()),
            WithdrawError::ListFull => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<OperatorError> for ApiError {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::TooManyInvites => Self::new(ErrorCode::Overloaded, error.to_string()),
            OperatorError::Store(_) => Self::store(ErrorCode::Overloaded),
        }
    }
}

impl From<ImportError> for ApiError {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Malformed(_) => Self::invalid(error.to_string()),
            ImportError::Store(_) => Self::store(ErrorCode::Overloaded),
        }
    }
}

impl From<SessionRequestError> for ApiError {
    fn from(error: SessionRequestError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// A session store that failed. Its cause was logged where it happened.
impl From<StoreError> for ApiError {
    fn from(_: StoreError) -> Self {
        Self::store(ErrorCode::Overloaded)
    }
}

impl From<SessionRefusal> for ApiError {
    fn from(refusal: SessionRefusal) -> Self {
        match refusal {
            SessionRefusal::Suspended { retry_after } => {
                Self::new(ErrorCode::Suspended, refusal.to_string()).retry_after(retry_after)
            }
            SessionRefusal::TooOften { retry_after } => {
                Self::new(ErrorCode::RateLimited, refusal.to_string()).retry_after(retry_after)
            }
            SessionRefusal::Draining => Self::draining(),
            SessionRefusal::Unavailable => Self::new(ErrorCode::Overloaded, refusal.to_string()),
        }
    }
}

impl From<CreateError> for ApiError {
    fn from(error: CreateError) -> Self {
        let code = match error {
            CreateError::Refused(refusal) => return refusal.into(),
            CreateError::Store(error) => return error.into(),
            CreateError::Ticket(cause) => {
                tracing::error!(%cause, "a ticket could not be signed");
                return Self::internal();
            }
            CreateError::Full => ErrorCode::SessionFull,
            CreateError::Conflict => ErrorCode::SettingsConflict,
            CreateError::TooMany => ErrorCode::RateLimited,
            CreateError::Overloaded => ErrorCode::Overloaded,
        };
        Self::new(code, error.to_string())
    }
}

mod refusal;
#[cfg(test)]
mod tests;
