//! Reads one request and judges it by the rules.
//!
//! The reading never fails, so that a refused request is on record with what it said; the judgement is the first rule
//! that is broken, in the order method and path, JWT, header fields, body, device.

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use http::{HeaderMap, request::Parts};

use crate::{
    apns::{
        ApnsDelivery,
        auth::{JwtStep, Verified},
        connection::ConnectionContext,
        rules::{self, Refusal},
    },
    entropy::random_uuid,
};

/// Bytes of a body that are kept: enough to see that it is too large. The rest is read and dropped.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// The device token that `:path` names, whatever else is wrong.
pub(crate) fn token_in_path(parts: &Parts) -> &str {
    parts.uri.path().rsplit('/').next().unwrap_or_default()
}

/// The whole body, or `None` if the stream ended early.
pub(crate) async fn read_body(mut stream: RecvStream) -> Option<Bytes> {
    let mut body = BytesMut::new();
    while let Some(data) = stream.data().await {
        let data = data.ok()?;
        // The flow control of a stream that is gone needs nothing back.
        let _ = stream.flow_control().release_capacity(data.len());
        let room = MAX_BODY_BYTES.saturating_sub(body.len());
        body.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
    }
    Some(body.freeze())
}

/// What the request said, as far as it can be read.
pub(crate) fn read(parts: &Parts, body: &[u8], order: u64, connection: u64) -> ApnsDelivery {
    let headers = &parts.headers;
    let message_id = rules::message_id(headers).ok().flatten();
    ApnsDelivery {
        order,
        connection,
        token: token_in_path(parts).to_owned(),
        apns_id: message_id.unwrap_or_else(|| random_uuid().to_string()),
        topic: text(headers, "apns-topic").unwrap_or_default(),
        push_type: text(headers, "apns-push-type").unwrap_or_default(),
        priority: text(headers, "apns-priority").and_then(|priority| priority.parse().ok()),
        expiration: text(headers, "apns-expiration").and_then(|expiration| expiration.parse().ok()),
        collapse_id: text(headers, "apns-collapse-id"),
        jwt: text(headers, "authorization")
            .and_then(|value| value.split_once(' ').map(|(_, jwt)| jwt.to_owned()))
            .unwrap_or_default(),
        payload: String::from_utf8_lossy(body).into_owned(),
    }
}

/// The first rule that the request breaks.
pub(crate) fn judge(context: &ConnectionContext, parts: &Parts, body: &[u8]) -> Result<(), Refusal> {
    let apns = &context.shared.provider;
    let token = rules::device_token(&parts.method, parts.uri.path())?;
    rules::single_headers(&parts.headers)?;
    authenticate(context, &parts.headers)?;
    rules::message_id(&parts.headers)?;
    rules::check_fields(&parts.headers, &apns.options)?;
    rules::payload(body)?;
    if apns.devices.knows(token) {
        Ok(())
    } else {
        Err(Refusal::BAD_DEVICE_TOKEN)
    }
}

/// A valid JWT raises the connection's stream limit.
fn authenticate(context: &ConnectionContext, headers: &HeaderMap) -> Result<(), Refusal> {
    let apns = &context.shared.provider;
    let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
    let clock = &context.shared.clock;
    let jwt = apns.keys.check(authorization, clock.unix_seconds())?;
    let now_millis = clock.unix_millis();
    let step = context.step_jwt(&jwt, now_millis, apns.options.enforce_jwt_updates)?;
    note(context, &step, &jwt, now_millis);
    context.authenticated();
    Ok(())
}

fn note(context: &ConnectionContext, step: &JwtStep, jwt: &Verified, now_millis: i64) {
    let registry = &context.shared.provider.registry;
    match step {
        JwtStep::Same => {}
        JwtStep::First => registry.note_jwt(context.connection.number, jwt, now_millis),
        JwtStep::Changed { fresh } => {
            registry.note_jwt_change();
            if *fresh {
                registry.note_jwt(context.connection.number, jwt, now_millis);
            }
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
