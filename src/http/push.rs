//! `POST /v1/push`: one notification to one device.
//!
//! ```text
//! key in the header -> body -> key in the body -> hashes -> the instance's actor -> answer
//! ```
//!
//! A bad key in the header is refused before the body is read; everything after the key is the actor's.

use std::net::IpAddr;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{HeaderMap, HeaderName, HeaderValue},
    web::{Data, Payload},
};
use sovereign_relay_actors::push::{Answered, Newcomer, Push, Refusal};
use sovereign_relay_protocol::{
    error::ErrorCode,
    id::IdempotencyKey,
    platform::{Environment, Platform},
    push::{InvalidPush, PushAnswer, PushBody, PushMessage},
};

use crate::{
    auth::Caller,
    http::{context::RequestNotes, error::ApiError, extract::caller, openapi::schema, services::Services},
};

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Send one notification
///
/// `result` says what became of it. `invalid_token` is said only when the device is really gone: delete a
/// registration that is older than `invalidSince`, nothing else.
#[utoipa::path(
    post,
    path = "/v1/push",
    tag = "push",
    params(("Idempotency-Key" = Option<String>, Header, description = "As idempotencyKey in the body")),
    request_body = schema::PushRequest,
    security(("instanceKey" = []), ()),
    responses((
        status = 200,
        description = "The provider was asked, or the answer was known without asking",
        body = PushAnswer,
        headers(("Idempotent-Replayed" = Option<String>, description = "true: the answer of an earlier request"))
    ))
)]
pub(crate) async fn push(
    request: HttpRequest,
    payload: Payload,
    services: Data<Services>,
) -> Result<HttpResponse, ApiError> {
    services.take_work()?;
    let header = caller::from_header(&request, &services)?;
    let body = services.body(&request, payload, header.as_ref()).await?;
    let PushBody {
        message,
        instance_key,
    } = PushBody::parse(&body)?;
    let message = with_header_key(message, request.headers())?;
    let holder = caller::from_header_or_body(header, instance_key, &request, &services)?;
    let address = services.address(&request)?;
    let answered = send(&services, holder.caller, address, message).await?;
    RequestNotes::of(&request).answered(&answered.answer);
    Ok(respond(answered))
}

/// One push through the instance's actor, for a single request and for a place in a batch.
pub(crate) async fn send(
    services: &Services,
    caller: Caller,
    address: IpAddr,
    message: PushMessage,
) -> Result<Answered, ApiError> {
    services.take_work()?;
    services.authority.still_holds(caller, services.now())?;
    let message = with_environment(message, services.providers.default_environment);
    let platform = message.platform;
    let push = prepare(services, caller, address, message);
    let answered = services.pushes.push(caller.instance, push).await;
    answered.map_err(|refusal| refused(refusal, platform))
}

/// The environment that an Apple push is for may lack the credentials that the other one has.
fn refused(refusal: Refusal, platform: Platform) -> ApiError {
    if refusal == Refusal::PlatformNotConfigured && platform.is_apple() {
        return ApiError::new(
            ErrorCode::PlatformNotConfigured,
            "this relay has no credentials for this platform in this environment; GET /v1/capabilities lists what works \
             where none is named",
        );
    }
    refusal.into()
}

/// Says what the caller has left unsaid, so that a default and the same spelled out are one message to its repeats.
fn with_environment(message: PushMessage, default: Environment) -> PushMessage {
    let environment = message
        .platform
        .is_apple()
        .then(|| message.environment.unwrap_or(default));
    PushMessage {
        environment,
        ..message
    }
}

/// Adds the keyed hashes that everything behind the edge works with.
fn prepare(services: &Services, caller: Caller, address: IpAddr, message: PushMessage) -> Push {
    let keys = services.authority.derived();
    let newcomer = match caller.generation {
        None => Newcomer::EarlierRelay,
        Some(_) => Newcomer::Young {
            group: keys.address_hash(address).host,
        },
    };
    Push {
        token: keys.token_hash(message.platform, &message.device_token),
        collapse: message
            .collapse_id
            .as_ref()
            .map(|id| keys.collapse_tag(caller.instance, id)),
        idempotency: message
            .idempotency_key
            .as_ref()
            .map(|key| keys.idempotency(caller.instance, key, &message)),
        newcomer,
        message,
    }
}

/// The header is another way to give `idempotencyKey`; both must say the same.
fn with_header_key(message: PushMessage, headers: &HeaderMap) -> Result<PushMessage, ApiError> {
    let mut lines = headers.get_all(IDEMPOTENCY_KEY);
    let Some(line) = lines.next() else {
        return Ok(message);
    };
    let given = line
        .to_str()
        .ok()
        .and_then(IdempotencyKey::parse)
        .ok_or(InvalidPush::IdempotencyKey)?;
    let differs = message.idempotency_key.as_ref().is_some_and(|key| *key != given) || lines.next().is_some();
    if differs {
        return Err(ApiError::invalid(
            "the Idempotency-Key header and idempotencyKey differ",
        ));
    }
    Ok(PushMessage {
        idempotency_key: Some(given),
        ..message
    })
}

fn respond(answered: Answered) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    if answered.replayed {
        response.insert_header((IDEMPOTENT_REPLAYED, HeaderValue::from_static("true")));
    }
    response.json(answered.answer)
}
