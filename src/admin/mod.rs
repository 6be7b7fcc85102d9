//! The admin listener: metrics, and the API behind the CLI.
//!
//! It is bound to loopback unless the operator says otherwise. `/metrics` is open there; `/admin/v1` needs the admin
//! token, and without one there is no admin API. What an operator does to an instance is durable, in memory and
//! known to the instance's actor before the answer says so.

use std::{io, net::SocketAddr, sync::Arc};

use actix_web::{
    Error, HttpRequest, HttpResponse,
    body::BoxBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header,
    middleware::{Next, from_fn},
    web::{self, Data, Payload, ServiceConfig},
};
use sovereign_relay_protocol::{error::ErrorCode, redacted::Redacted};
use subtle::ConstantTimeEq;

use crate::{
    http::{
        self, ListenerLimits,
        error::ApiError,
        extract::{bearer::bearer, body::Body},
        get, only, post, readable,
        server::Bound,
        services::Services,
    },
    limit::{BodyBudget, bodies::BodyKind},
};

mod instances;
mod invites;
mod revocations;

/// What the admin routes need beside the relay's parts.
pub(crate) struct Admin {
    /// The relay's parts.
    pub(crate) services: Data<Services>,
    /// `None`: there is no admin API.
    pub(crate) token: Option<Redacted>,
    /// Memory for the operator's request bodies, out of reach of a flood on the public side.
    pub(crate) bodies: Arc<BodyBudget>,
    /// Renders the metrics.
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
}

impl Admin {
    /// The whole body, at most `bytes` long.
    async fn body(&self, request: &HttpRequest, payload: Payload, bytes: usize) -> Result<Body, ApiError> {
        let share = self.bodies.share(BodyKind::Single(None));
        self.services.read(request, payload, bytes, share).await
    }
}

/// Binds the admin listener.
pub(crate) fn bind(address: SocketAddr, limits: ListenerLimits, admin: Data<Admin>) -> io::Result<Bound> {
    let observer = http::observer(&admin.services, "admin");
    http::server::bind(address, limits, observer, None, None, move |config| {
        config.app_data(admin.clone());
        routes(config);
    })
}

fn routes(config: &mut ServiceConfig) {
    let (_, invites) = only("GET, HEAD, POST", "/invites", readable().to(invites::list));
    let (_, revocations) = only(
        "GET, HEAD, PUT",
        "/revocations",
        readable().to(revocations::export),
    );
    let api = web::scope("/admin/v1")
        .service(invites.route(web::post().to(invites::create)))
        .service(revocations.route(web::put().to(revocations::import)))
        .service(get("/instances", readable().to(instances::list)).1)
        .service(get("/instances/{id}", readable().to(instances::show)).1)
        .service(post("/instances/{id}/suspend", web::post().to(instances::suspend)).1)
        .service(post("/instances/{id}/resume", web::post().to(instances::resume)).1)
        .service(post("/instances/{id}/revoke", web::post().to(instances::revoke)).1)
        .service(post("/instances/{id}/limit", web::post().to(instances::limit)).1)
        .service(post("/instances/{id}/turn", web::post().to(instances::turn)).1)
        .wrap(from_fn(authorize));
    config
        .service(get("/metrics", readable().to(metrics)).1)
        .service(api)
        .default_service(web::to(no_route));
}

/// Before anything else under `/admin/v1`, also before a 404.
async fn authorize(request: ServiceRequest, next: Next<BoxBody>) -> Result<ServiceResponse<BoxBody>, Error> {
    check_token(request.request())?;
    next.call(request).await
}

fn check_token(request: &HttpRequest) -> Result<(), ApiError> {
    let admin = request.app_data::<Data<Admin>>().ok_or_else(ApiError::internal)?;
    let Some(token) = &admin.token else {
        return Err(ApiError::new(
            ErrorCode::NotConfigured,
            "there is no admin API: set RELAY_ADMIN_TOKEN",
        ));
    };
    let given = bearer(request.headers())?;
    let equal = given.is_some_and(|given| given.expose().as_bytes().ct_eq(token.expose().as_bytes()).into());
    equal
        .then_some(())
        .ok_or_else(|| ApiError::unauthorized("the admin token is needed: Authorization: Bearer <token>"))
}

async fn no_route() -> Result<HttpResponse, ApiError> {
    Err(ApiError::new(
        ErrorCode::NotFound,
        "this is the admin listener: it has /metrics and /admin/v1; the public API has a listener of its own",
    ))
}

async fn metrics(admin: Data<Admin>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"))
        .body((admin.metrics)())
}

/// A JSON body of the admin API. Unlike the public API it refuses unknown fields: a misspelled one would quietly
/// undo what the operator meant.
fn parse<T: serde::de::DeserializeOwned>(body: &[u8], expected: &'static str) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|_| ApiError::invalid(expected))
}
