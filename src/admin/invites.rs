//! `/admin/v1/invites`: made once, shown once.

use std::time::Duration;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Payload},
};
use serde::{Deserialize, Serialize};
use sovereign_relay_protocol::{limits, time::UnixMillis};

use super::{Admin, parse};
use crate::{auth::InviteView, defaults::INVITE_MAX, http::error::ApiError};

const EXPECTED: &str = "send {\"ttlSeconds\": 1 to 31622400}";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wanted {
    ttl_seconds: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Created<'a> {
    invite: &'a str,
    expires_at: UnixMillis,
    /// Who may enroll here: but for `invite`, nobody needs it.
    enrollment: &'static str,
}

#[derive(Serialize)]
struct Outstanding {
    invites: Vec<InviteView>,
}

pub(super) async fn create(
    request: HttpRequest,
    payload: Payload,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let services = &admin.services;
    let body = admin.body(&request, payload, limits::BODY_BYTES).await?;
    let Wanted { ttl_seconds } = parse(&body, EXPECTED)?;
    if !(1..=INVITE_MAX.as_secs()).contains(&ttl_seconds) {
        return Err(ApiError::invalid(EXPECTED));
    }
    let (invite, view) = services
        .authority
        .create_invite(Duration::from_secs(ttl_seconds), services.now())
        .await?;
    Ok(HttpResponse::Ok().json(Created {
        invite: invite.expose(),
        expires_at: view.expires_at,
        enrollment: services.authority.mode().as_str(),
    }))
}

pub(super) async fn list(admin: Data<Admin>) -> Result<HttpResponse, ApiError> {
    let invites = admin
        .services
        .authority
        .list_invites(admin.services.now())
        .await?;
    Ok(HttpResponse::Ok().json(Outstanding { invites }))
}
