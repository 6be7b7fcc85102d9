//! `GET /openapi.json`: OpenAPI 3.1 of the public routes, made from the handlers' own annotations.
//!
//! The annotations name the good answers. The errors are added here from one table, since they all have the same
//! body: an operation lists each status with the codes it can carry.

use std::sync::LazyLock;

use actix_web::{HttpResponse, http::header};
use sovereign_relay_protocol::error::{ErrorBody, ErrorCode};
use utoipa::{
    Modify, OpenApi, PartialSchema,
    openapi::{
        self, ContentBuilder, HeaderBuilder, Ref, RefOr, Response, ResponseBuilder,
        path::{Operation, PathItem},
        schema::{ObjectBuilder, Type},
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

use crate::http::{batch, capabilities, enroll, health, push, sessions, signal};

pub(crate) mod schema;

use ErrorCode::{
    Draining, EnrollmentClosed, IdempotencyConflict, InternalError, InvalidRequest, NotConfigured, NotFound,
    OriginNotAllowed, Overloaded, PayloadTooLarge, PlatformNotConfigured, RateLimited, RequestTimeout,
    Revoked, SendFailed, SessionFull, SettingsConflict, Suspended, Unauthorized, UnsupportedMediaType,
};

/// What can go wrong with each operation, beside a wrong path or method.
const ERRORS: [(&str, &[ErrorCode]); 12] = [
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
            InternalError,
            NotConfigured,
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
];

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sovereign Relay",
        description = "Forwards what it cannot read: sealed push notifications to APNs, FCM and WNS, and sealed WebRTC \
                       offers, answers and candidates between the two peers of a signaling session. Every error has the \
                       body {\"error\", \"message\"}; unknown paths are 404 not_found, other methods 405 \
                       method_not_allowed."
    ),
    paths(
        enroll::enroll,
        enroll::rotate,
        enroll::withdraw,
        capabilities::capabilities,
        push::push,
        batch::push_batch,
        signal::refuse,
        sessions::create,
        sessions::show,
        sessions::end,
        health::api_health,
        health::livez,
        health::readyz,
        document,
    ),
    components(schemas(ErrorBody)),
    tags(
        (name = "instances", description = "Enrolling, and what follows from it"),
        (name = "push", description = "Notifications"),
        (name = "signaling", description = "Sessions in which two peers find each other"),
        (name = "relay", description = "What this relay is"),
        (name = "health", description = "For load balancers and orchestrators"),
    ),
    modifiers(&Errors, &Security)
)]
pub(crate) struct PublicApi;

/// This document
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "relay",
    responses((status = 200, description = "OpenAPI 3.1", content_type = "application/json"))
)]
pub(crate) async fn document() -> HttpResponse {
    static TEXT: LazyLock<String> = LazyLock::new(|| PublicApi::openapi().to_json().unwrap_or_default());
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .body(TEXT.as_str())
}

struct Errors;

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

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut openapi::OpenApi) {
        let Some(components) = document.components.as_mut() else {
            return;
        };
        for name in ["instanceKey", "invite"] {
            components.add_security_scheme(name, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        }
        // The list of codes, by itself, so that generated clients get the whole set.
        components
            .schemas
            .entry("ErrorCode".to_owned())
            .or_insert_with(ErrorCode::schema);
    }
}
