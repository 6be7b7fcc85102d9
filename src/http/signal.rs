//! `GET /v1/signal` for requests that became no WebSocket: what is wrong with them.
//!
//! The ones with nothing wrong never come here ([`crate::ws::upgrade`]).

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{self, HeaderValue},
    web::Data,
};

use super::error::ApiError;
use crate::ws::{
    handshake::{self, NOT_UPGRADED},
    upgrade::Upgrades,
};

/// Connect for signaling
///
/// A WebSocket with the subprotocol `sovereign.signal.v1`. What follows is told by its frames and close codes.
#[utoipa::path(
    get,
    path = "/v1/signal",
    tag = "signaling",
    responses((status = 101, description = "The WebSocket"))
)]
pub(crate) async fn refuse(request: HttpRequest) -> HttpResponse {
    let endpoint = request.app_data::<Data<Upgrades>>();
    let origins = endpoint.map_or(&[][..], |endpoint| &endpoint.allowed_origins);
    let refused = handshake::judge(request.head(), origins)
        .err()
        .unwrap_or(NOT_UPGRADED);
    let mut response = HttpResponse::from_error(ApiError::new(refused.code, refused.message));
    // What is spoken here: RFC 9110, 7.8; RFC 6455, 4.4.
    let headers = response.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}
