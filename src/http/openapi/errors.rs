//! What can go wrong with each operation: one table, put into the document as a response for each status, which names
//! the codes that it can carry.
//!
//! It can't be derived: a code comes from wherever a handler asks. The kits of the tests hold every refusal that any
//! test sees against the document instead, so that a code which is missing here fails the test that brings it about.

use sovereign_relay_protocol::error::ErrorCode;
use utoipa::{
    Modify,
    openapi::{
        self, ContentBuilder, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder,
        path::{Operation, PathItem},
        schema::{ObjectBuilder, Type},
    },
};

use ErrorCode::{
    Draining, EnrollmentClosed, IdempotencyConflict, InternalError, InvalidRequest, NotConfigured, NotFound,
    OriginNotAllowed, Overloaded, PayloadTooLarge, PlatformNotConfigured, RateLimited, RequestTimeout,
    Revoked, SendFailed, SessionFull, SettingsConflict, Suspended, Unauthorized, UnsupportedMediaType,
};

/// By path, beside a wrong path or method. In the order of their status.
const ERRORS: [(&str, &[ErrorCode]); 13] = [
    (
        "/v1/enroll",
        &[
            InvalidRequest,
            Unauthorized,
            EnrollmentClosed,
            RequestTimeout,
            PayloadTooLarge,
            UnsupportedMediaType,
            RateLimited,
            InternalError,
            NotConfigured,
            Overloaded,
            Draining,
        ],
    ),
    (
        "/v1/keys/rotate",
        &[
            InvalidRequest,
            Unauthorized,
            Revoked,
            RequestTimeout,
            PayloadTooLarge,
            UnsupportedMediaType,
            RateLimited,
            InternalError,
            NotConfigured,
            Overloaded,
            Draining,
        ],
    ),
    (
        "/v1/enrollment",
        &[
            Unauthorized,
            Revoked,
            RateLimited,
            InternalError,
            NotConfigured,
            Overloaded,
            Draining,
        ],
    ),
    (
        "/v1/push",
        &[
            InvalidRequest,
            Unauthorized,
            Revoked,
            Suspended,
            RequestTimeout,
            IdempotencyConflict,
            PayloadTooLarge,
            UnsupportedMediaType,
            RateLimited,
            InternalError,
            SendFailed,
            NotConfigured,
            PlatformNotConfigured,
            Overloaded,
            Draining,
        ],
    ),
    (
        "/v1/push/batch",
        &[
            InvalidRequest,
            Unauthorized,
            Revoked,
            RequestTimeout,
            PayloadTooLarge,
            UnsupportedMediaType,
            RateLimited,
            InternalError,
            NotConfigured,
            Overloaded,
            Draining,
        ],
    ),
    ("/v1/signal", &[InvalidRequest, OriginNotAllowed, InternalError]),
    (
        "/v1/signal/sessions",
        &[
            InvalidRequest,
            Unauthorized,
            Revoked,
            Suspended,
            RequestTimeout,
            SessionFull,
            SettingsConflict,
            PayloadTooLarge,
            UnsupportedMediaType,
            RateLimited,
            InternalError,
            NotConfigured,
            Overloaded,
            Draining,
        ],
    ),
    (
        "/v1/signal/sessions/{id}",
        &[
            Unauthorized,
            Revoked,
            NotFound,
            InternalError,
            NotConfigured,
            Overloaded,
        ],
    ),
    ("/v1/capabilities", &[InternalError]),
    ("/api/health", &[InternalError]),
    ("/livez", &[InternalError]),
    ("/readyz", &[InternalError]),
    ("/openapi.json", &[InternalError]),
];

/// Adds the table.
pub(super) struct Errors;

impl Modify for Errors {
    fn modify(&self, document: &mut openapi::OpenApi) {
        for (path, codes) in ERRORS {
            let Some(item) = document.paths.paths.get_mut(path) else {
                continue;
            };
            for operation in operations(item) {
                add_errors(operation, codes);
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.delete]
        .into_iter()
        .filter_map(Option::as_mut)
}

/// Codes of one status share its response.
fn add_errors(operation: &mut Operation, codes: &[ErrorCode]) {
    let mut statuses: Vec<u16> = codes.iter().map(|code| code.status()).collect();
    statuses.dedup();
    for status in statuses {
        let of_status: Vec<_> = codes
            .iter()
            .copied()
            .filter(|code| code.status() == status)
            .collect();
        let responses = &mut operation.responses.responses;
        responses
            .entry(status.to_string())
            .or_insert_with(|| RefOr::T(error_response(status, &of_status)));
    }
}

fn error_response(status: u16, codes: &[ErrorCode]) -> Response {
    let names: Vec<_> = codes.iter().map(|code| code.as_str()).collect();
    let body = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("ErrorBody")))
        .build();
    let response = ResponseBuilder::new()
        .description(names.join(", "))
        .content("application/json", body);
    if !matches!(status, 403 | 429 | 502 | 503) {
        return response.build();
    }
    let seconds = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .build();
    let header = HeaderBuilder::new()
        .schema(Some(seconds))
        .description(Some(
            "Whole seconds until a retry is useful; absent where no time is known",
        ))
        .build();
    response.header("Retry-After", header).build()
}
