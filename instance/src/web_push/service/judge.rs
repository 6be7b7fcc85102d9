//! Whether a push service may take a message: RFC 8030 (5), 8188 (2), 8291 (4), 8292 (2 to 4).

use actix_web::{
    HttpResponse,
    http::{
        StatusCode,
        header::{self, HeaderMap},
    },
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;

use super::Stored;
use crate::web_push::{seal::LONGEST_BODY_BYTES, vapid::Contact};

/// RFC 8292, 2.
const LONGEST_TOKEN_SECONDS: u64 = 24 * 3600;
/// RFC 8030, 5.4.
const LONGEST_TOPIC: usize = 32;
const URGENCIES: [&str; 4] = ["very-low", "low", "normal", "high"];
/// Salt, record size, length of the key id, and the sender's key as the key id.
const HEAD_BYTES: usize = 16 + 4 + 1 + 65;

/// Not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refusal(pub(super) u16, pub(super) &'static str);

impl From<Refusal> for HttpResponse {
    fn from(Refusal(status, reason): Refusal) -> Self {
        Self::build(StatusCode::from_u16(status).unwrap_or_default()).body(reason)
    }
}

#[derive(Deserialize)]
struct Claims {
    aud: String,
    exp: u64,
    sub: String,
}

/// Judges one message for a browser that subscribed with `key`.
pub(super) fn judge(
    headers: &HeaderMap,
    body: &[u8],
    origin: &str,
    key: &str,
    now: u64,
) -> Result<Stored, Refusal> {
    check_sender(headers, origin, key, now)?;
    check_body(headers, body)?;
    let ttl = text(headers, "TTL").and_then(|ttl| ttl.parse().ok());
    let urgency = text(headers, "Urgency");
    if urgency.is_some_and(|urgency| !URGENCIES.contains(&urgency)) {
        return Err(Refusal(400, "no such urgency"));
    }
    let topic = text(headers, "Topic");
    if topic.is_some_and(|topic| !is_topic(topic)) {
        return Err(Refusal(400, "the topic is not up to 32 characters of base64url"));
    }
    Ok(Stored {
        ttl_seconds: ttl.ok_or(Refusal(400, "no TTL"))?,
        urgency: urgency.map(str::to_owned),
        topic: topic.map(str::to_owned),
        body: body.to_vec(),
    })
}

fn check_sender(headers: &HeaderMap, origin: &str, key: &str, now: u64) -> Result<(), Refusal> {
    let authorization = text(headers, header::AUTHORIZATION.as_str()).ok_or(Refusal(401, "no VAPID"))?;
    let (token, named) = parameters(authorization).ok_or(Refusal(401, "not VAPID"))?;
    if named != key {
        return Err(Refusal(403, "the subscription belongs to another key"));
    }
    let claims = verify(token, named).ok_or(Refusal(403, "not signed by the key"))?;
    if claims.aud != origin {
        return Err(Refusal(403, "made out to another origin"));
    }
    if claims.exp <= now || claims.exp > now.saturating_add(LONGEST_TOKEN_SECONDS) {
        return Err(Refusal(403, "over, or longer than a day"));
    }
    Contact::parse(&claims.sub).map_err(|_| Refusal(403, "no contact"))?;
    Ok(())
}

/// `t` and `k`, in either order.
fn parameters(authorization: &str) -> Option<(&str, &str)> {
    let parameters = authorization.strip_prefix("vapid ")?;
    let find = |name: &str| {
        parameters
            .split(',')
            .find_map(|parameter| parameter.trim().strip_prefix(name)?.strip_prefix('='))
    };
    Some((find("t")?, find("k")?))
}

fn verify(token: &str, key: &str) -> Option<Claims> {
    let point = URL_SAFE_NO_PAD.decode(key).ok()?;
    let (x, y) = point.strip_prefix(&[0x04])?.split_at_checked(32)?;
    let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
    let verifier = DecodingKey::from_ec_components(&x, &y).ok()?;
    let mut validation = Validation::new(Algorithm::ES256);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let decoded = jsonwebtoken::decode::<Claims>(token, &verifier, &validation);
    decoded.ok().map(|decoded| decoded.claims)
}

fn check_body(headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    if text(headers, header::CONTENT_ENCODING.as_str()) != Some("aes128gcm") {
        return Err(Refusal(415, "not aes128gcm"));
    }
    if body.len() > LONGEST_BODY_BYTES {
        return Err(Refusal(413, "over 4096 bytes"));
    }
    if body.len() <= HEAD_BYTES || body.get(20) != Some(&65) {
        return Err(Refusal(400, "not a message of RFC 8291"));
    }
    Ok(())
}

fn is_topic(topic: &str) -> bool {
    let is_base64url = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !topic.is_empty() && topic.len() <= LONGEST_TOPIC && topic.bytes().all(is_base64url)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests;
