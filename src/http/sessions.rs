//! Signaling sessions: `POST /v1/signal/sessions`, `GET` and `DELETE /v1/signal/sessions/{id}`.
//!
//! The decisions are [`crate::signaling`]'s. An instance without a place in a session is told the same as of one that
//! does not exist.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Path, Payload},
};
use sovereign_relay_protocol::{
    error::ErrorCode,
    signal::{
        id::SessionId,
        session::{SessionBody, SessionCreated, SessionRequest, SessionView},
    },
};

use crate::http::{
    error::ApiError,
    extract::{caller, own_url},
    services::Services,
};

/// Make a session, or meet at a rendezvous
///
/// The creator keeps one ticket and hands the other to its peer. Two instances that name the same rendezvous get one
/// ticket each: 201 to the first, 200 to the second and to whoever asks again. Where TURN is off, or not allowed to the
/// instance, `turn` is no error: `iceServers` in the peers' `welcome` is `[]`.
#[utoipa::path(
    post,
    path = "/v1/signal/sessions",
    tag = "signaling",
    request_body = Option<SessionBody>,
    security(("instanceKey" = [])),
    responses(
        (status = 201, description = "Made", body = SessionCreated),
        (status = 200, description = "It was there, and the caller has a place in it", body = SessionCreated)
    )
)]
pub(crate) async fn create(
    request: HttpRequest,
    payload: Payload,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    services.take_work()?;
    let holder = caller::required(&request, &services)?;
    let body = services.body(&request, payload, Some(&holder)).await?;
    let wanted = SessionRequest::parse(&body)?;
    let url = own_url::signal_url(&request, &services)?;
    let opened = services.signaling.create(holder.caller.instance, wanted).await?;
    let status = if opened.is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(HttpResponse::build(status).json(SessionCreated {
        session_id: opened.id,
        expires_at: opened.expires_at,
        url,
        tickets: opened.tickets,
        limits: services.signaling.sessions.limits(),
    }))
}

/// Look at a session
///
/// Who is there and how many messages wait. Never content.
#[utoipa::path(
    get,
    path = "/v1/signal/sessions/{id}",
    tag = "signaling",
    params(("id" = String, Path, description = "The session")),
    security(("instanceKey" = [])),
    responses((status = 200, description = "The session now", body = SessionView))
)]
pub(crate) async fn show(
    request: HttpRequest,
    id: Path<String>,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    let holder = caller::required(&request, &services)?;
    let id = SessionId::parse(&id).ok_or_else(not_found)?;
    let view = services.signaling.view(id, holder.caller.instance).await?;
    Ok(HttpResponse::Ok().json(view.ok_or_else(not_found)?))
}

/// End a session
///
/// Both connections are closed; none of its messages is delivered after the answer.
#[utoipa::path(
    delete,
    path = "/v1/signal/sessions/{id}",
    tag = "signaling",
    params(("id" = String, Path, description = "The session")),
    security(("instanceKey" = [])),
    responses((status = 204, description = "Over"))
)]
pub(crate) async fn end(
    request: HttpRequest,
    id: Path<String>,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    let holder = caller::required(&request, &services)?;
    let id = SessionId::parse(&id).ok_or_else(not_found)?;
    let was_there = services.signaling.end(id, holder.caller.instance).await?;
    was_there
        .then(|| HttpResponse::NoContent().finish())
        .ok_or_else(not_found)
}

fn not_found() -> ApiError {
    ApiError::new(ErrorCode::NotFound, "no session of this instance has this id")
}
