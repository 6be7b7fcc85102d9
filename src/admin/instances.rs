//! `/admin/v1/instances`: what the operator sees of instances and does to them.
//!
//! Every change ends with the instance's actor having read its new standing: it holds for all pushes that begin
//! after the answer.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Path, Payload, Query},
};
use serde::{Deserialize, Deserializer, Serialize};
use sovereign_relay_actors::ports::Suspension;
use sovereign_relay_protocol::{error::ErrorCode, id::InstanceId, limits};

use super::{Admin, parse};
use crate::{
    auth::InstanceView,
    defaults::{INSTANCE_PER_MINUTE_MAX, SUSPENSION_MAX, SUSPENSION_REASON_CHARS},
    http::{context::RequestNotes, error::ApiError},
    store::RECORDS_PAGE,
};

const EXPECTED_SUSPENSION: &str =
    "send {\"reason\": 1 to 200 characters, \"seconds\": 1 to 316224000 (absent: until resumed)}";
const EXPECTED_LIMIT: &str = "send {\"perMinute\": 1 to 10000000, or null for the default}";
const EXPECTED_TURN: &str = "send {\"turn\": true, false, or null to take the word back}";
const EXPECTED_PAGE: &str = "after must be an instance id and limit 1 to 500";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Serialize)]
struct Listed {
    instances: Vec<InstanceView>,
    /// Where the next page starts; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<InstanceId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedSuspension {
    reason: String,
    #[serde(default)]
    seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedLimit {
    /// Null is the default; absent is a mistake.
    #[serde(deserialize_with = "present")]
    per_minute: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedTurn {
    /// Null takes the operator's word back; absent is a mistake.
    #[serde(deserialize_with = "present")]
    turn: Option<bool>,
}

fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

pub(super) async fn list(request: HttpRequest, admin: Data<Admin>) -> Result<HttpResponse, ApiError> {
    let page =
        Query::<Page>::from_query(request.query_string()).map_err(|_| ApiError::invalid(EXPECTED_PAGE))?;
    let after = page
        .after
        .as_deref()
        .map(|id| InstanceId::parse(id).ok_or_else(|| ApiError::invalid(EXPECTED_PAGE)));
    let limit = page.limit.unwrap_or(RECORDS_PAGE);
    if !(1..=RECORDS_PAGE).contains(&limit) {
        return Err(ApiError::invalid(EXPECTED_PAGE));
    }
    let instances = admin.services.authority.list(after.transpose()?, limit).await?;
    let next = (instances.len() == limit)
        .then(|| instances.last().map(|view| view.instance_id))
        .flatten();
    Ok(HttpResponse::Ok().json(Listed { instances, next }))
}

pub(super) async fn show(
    request: HttpRequest,
    id: Path<String>,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let instance = parse_id(&request, &id)?;
    answer(&admin, instance).await
}

pub(super) async fn suspend(
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let instance = parse_id(&request, &id)?;
    let body = admin.body(&request, payload, limits::BODY_BYTES).await?;
    let suspension = suspension(parse(&body, EXPECTED_SUSPENSION)?, &admin)?;
    admin.services.authority.suspend(instance, suspension).await?;
    refreshed(&admin, instance).await
}

pub(super) async fn resume(
    request: HttpRequest,
    id: Path<String>,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let instance = parse_id(&request, &id)?;
    admin.services.authority.resume(instance).await?;
    refreshed(&admin, instance).await
}

pub(super) async fn revoke(
    request: HttpRequest,
    id: Path<String>,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let instance = parse_id(&request, &id)?;
    admin
        .services
        .authority
        .revoke(instance, admin.services.now())
        .await?;
    admin.services.signaling.end_instance(instance).await;
    refreshed(&admin, instance).await
}

pub(super) async fn limit(
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let instance = parse_id(&request, &id)?;
    let body = admin.body(&request, payload, limits::BODY_BYTES).await?;
    let WantedLimit { per_minute } = parse(&body, EXPECTED_LIMIT)?;
    if per_minute.is_some_and(|limit| !(1..=INSTANCE_PER_MINUTE_MAX).contains(&limit)) {
        return Err(ApiError::invalid(EXPECTED_LIMIT));
    }
    admin.services.authority.set_limit(instance, per_minute).await?;
    refreshed(&admin, instance).await
}

pub(super) async fn turn(
    request: HttpRequest,
    id: Path<String>,
    payload: Payload,
    admin: Data<Admin>,
) -> Result<HttpResponse, ApiError> {
    let instance = parse_id(&request, &id)?;
    let body = admin.body(&request, payload, limits::BODY_BYTES).await?;
    let WantedTurn { turn } = parse(&body, EXPECTED_TURN)?;
    admin.services.authority.set_turn(instance, turn).await?;
    refreshed(&admin, instance).await
}

fn parse_id(request: &HttpRequest, id: &str) -> Result<InstanceId, ApiError> {
    let instance =
        InstanceId::parse(id).ok_or_else(|| ApiError::invalid("the path must name an instance by its id"))?;
    RequestNotes::of(request).instance(instance);
    Ok(instance)
}

fn suspension(wanted: WantedSuspension, admin: &Admin) -> Result<Suspension, ApiError> {
    let said = (1..=SUSPENSION_REASON_CHARS).contains(&wanted.reason.chars().count())
        && !wanted.reason.chars().any(char::is_control);
    let ends = wanted
        .seconds
        .is_none_or(|seconds| (1..=SUSPENSION_MAX.as_secs()).contains(&seconds));
    if !said || !ends {
        return Err(ApiError::invalid(EXPECTED_SUSPENSION));
    }
    let now = admin.services.now().unix;
    let until = wanted.seconds.map(|seconds| now.plus_millis(seconds * 1000));
    Ok(Suspension {
        until,
        reason: wanted.reason,
    })
}

/// Answers with the new state, once the instance's actor works by it.
async fn refreshed(admin: &Admin, instance: InstanceId) -> Result<HttpResponse, ApiError> {
    admin.services.pushes.refresh(instance).await;
    answer(admin, instance).await
}

async fn answer(admin: &Admin, instance: InstanceId) -> Result<HttpResponse, ApiError> {
    let view = admin.services.authority.show(instance).await?;
    let view = view.ok_or_else(|| ApiError::new(ErrorCode::NotFound, "no instance is known by this id"))?;
    Ok(HttpResponse::Ok().json(view))
}
