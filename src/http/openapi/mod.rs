//! `GET /openapi.json`: OpenAPI 3.1 of the public routes, made from the handlers' own annotations.
//!
//! The annotations name the good answers, [`errors`] the others, since those all have the same body.

use std::sync::LazyLock;

use actix_web::{HttpResponse, http::header};
use sovereign_relay_protocol::error::{ErrorBody, ErrorCode};
use utoipa::{
    Modify, OpenApi, PartialSchema,
    openapi::{
        self,
        security::{Http, HttpAuthScheme, SecurityScheme},
    },
};

use crate::http::{batch, capabilities, enroll, health, push, sessions, signal};

mod errors;
pub(crate) mod schema;

use self::errors::Errors;

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
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "application/json"))
        .body(text())
}

/// What `GET /openapi.json` answers.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| PublicApi::openapi().to_json().unwrap_or_default());
    TEXT.as_str()
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
