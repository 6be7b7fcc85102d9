//! What the page and scripts may ask for themselves: who am I, tell me something, what became of it.
//!
//! ```text
//! POST   /api/session           {"token"}: the page signs in, and gets a cookie     DELETE: it signs out
//! GET    /api/me                -> {"user"}
//! POST   /api/me/notifications  {"title", "body", "url"?, "tag"?, "data"?, "priority"?, "ttlSeconds"?} -> the report
//! GET    /api/me/log?limit=50   -> {"entries": [...]}
//! GET    /healthz               -> {"ok": true}, or 503 while the database is away
//! ```
//! Everybody acts on their own account alone: whoever sends to others does so on the server, by `notify`.

use std::sync::Arc;

use actix_web::{
    Error, HttpRequest, HttpResponse,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::header,
    middleware::{Next, from_fn},
    web::{self, Data, Json, JsonConfig, Query, QueryConfig, ServiceConfig},
};
use serde::Deserialize;
use serde_json::{Value, json};
use sovereign_relay_protocol::{platform::Priority, redacted::Redacted};
use tracing::{debug, info};

use super::{accounts::Accounts, log, notify, parts::Parts, session};
use crate::{
    fan_out::FanOutError,
    notification::Notification,
    routes::{self, ApiError, Caller},
};

/// A notification's JSON has 2,560 bytes at most once it is sealed; escapes and blanks may make it longer on the way.
const BODY_BYTES: usize = 16 * 1024;
/// Most entries of the log in one answer.
const LOG_ENTRIES: u32 = 200;

#[derive(Deserialize)]
struct SignIn {
    token: Redacted,
}

/// A notification on the wire.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    title: String,
    #[serde(default)]
    body: String,
    url: Option<String>,
    tag: Option<String>,
    data: Option<Value>,
    #[serde(default)]
    priority: Priority,
    ttl_seconds: Option<u32>,
}

#[derive(Deserialize)]
struct LogQuery {
    limit: Option<u32>,
}

/// Mounts the routes.
pub(crate) fn mount(accounts: Arc<Accounts>) -> impl FnOnce(&mut ServiceConfig) {
    move |services| {
        let json = JsonConfig::default()
            .limit(BODY_BYTES)
            .error_handler(|error, _| ApiError::from(error).into());
        let query = QueryConfig::default()
            .error_handler(|_, _| ApiError::Invalid("limit must be a whole number").into());
        let own = web::scope("/api/me")
            .app_data(json.clone())
            .app_data(query)
            .route("", web::get().to(me))
            .route("/notifications", web::post().to(send))
            .route("/log", web::get().to(show_log));
        let session = web::resource("/api/session")
            .app_data(json)
            .route(web::post().to(sign_in))
            .route(web::delete().to(sign_out))
            .default_service(web::to(nothing_here))
            .wrap(from_fn(routes::body_time::limit));
        services
            .service(routes::framed(own, accounts))
            .service(session)
            .route("/healthz", web::get().to(health));
    }
}

/// A line for each request that was no look at a file. Paths hold ids at most; the query and all headers stay out.
pub(crate) async fn log_request(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let (method, path) = (request.method().clone(), request.path().to_owned());
    let answered = next.call(request).await?;
    let status = answered.status().as_u16();
    if path.starts_with("/api/") {
        info!(%method, path, status, "request");
    } else {
        debug!(%method, path, status, "request");
    }
    Ok(answered)
}

/// 404 in JSON.
pub(crate) async fn nothing_here() -> Result<HttpResponse, ApiError> {
    Err(ApiError::NotFound)
}

async fn sign_in(
    parts: Data<Parts>,
    request: HttpRequest,
    Json(body): Json<SignIn>,
) -> Result<HttpResponse, ApiError> {
    let found = parts.accounts.of_token(body.token.expose()).await;
    let user = found
        .map_err(|error| ApiError::Unavailable(Box::new(error)))?
        .ok_or(ApiError::Unauthorized)?;
    let secure = request.connection_info().scheme() == "https";
    let cookie = session::set_cookie(body.token.expose(), secure);
    Ok(HttpResponse::Ok()
        .insert_header((header::SET_COOKIE, cookie))
        .json(json!({ "user": user.id })))
}

async fn sign_out() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::SET_COOKIE, session::unset_cookie()))
        .json(json!({ "ok": true }))
}

async fn me(Caller(user): Caller) -> HttpResponse {
    HttpResponse::Ok().json(json!({ "user": user.id }))
}

async fn send(
    parts: Data<Parts>,
    Caller(user): Caller,
    Json(wanted): Json<Wanted>,
) -> Result<HttpResponse, ApiError> {
    let sent = parts.fan_out.send(&user, &wanted.into()).await;
    let report = sent.map_err(|error| match error {
        FanOutError::Invalid(error) => ApiError::from(error),
        FanOutError::Store(error) => error.into(),
    })?;
    Ok(HttpResponse::Ok().json(notify::Told::of(&report)))
}

async fn show_log(
    parts: Data<Parts>,
    Caller(user): Caller,
    query: Query<LogQuery>,
) -> Result<HttpResponse, ApiError> {
    let limit = query.limit.unwrap_or(LOG_ENTRIES).min(LOG_ENTRIES);
    let entries = parts.store.log_of(&user, limit).await?;
    let views: Vec<_> = entries.iter().map(log::View::of).collect();
    Ok(HttpResponse::Ok().json(json!({ "entries": views })))
}

async fn health(parts: Data<Parts>) -> Result<HttpResponse, ApiError> {
    let looked = parts.store.setting("health").await;
    looked.map_err(|error| ApiError::Unavailable(Box::new(error)))?;
    Ok(HttpResponse::Ok().json(json!({ "ok": true })))
}

impl From<Wanted> for Notification {
    fn from(wanted: Wanted) -> Self {
        let plain = Self::new(wanted.title, wanted.body);
        Self {
            url: wanted.url,
            tag: wanted.tag,
            data: wanted.data,
            priority: wanted.priority,
            ttl_seconds: wanted.ttl_seconds.unwrap_or(plain.ttl_seconds),
            ..plain
        }
    }
}
