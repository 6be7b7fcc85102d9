//! `/api/account/push-device-token`: the native devices of the signed-in user.
//!
//! ```text
//! GET            -> {"relayEnabled": true, "devices": [{"id", "platform", "createdAt", "lastUsedAt"}]}
//! POST           {"platform", "deviceToken", "publicKey", "environment"?} -> {"ok": true}
//! DELETE /{id}   -> {"ok": true}, or 404 when this user has no such device
//! ```
//! `environment` is Apple's (`production` or `sandbox`), for an app that knows which it was built for; without it the relay
//! decides. Tokens and keys come in and never go out. Times are Unix seconds.

use actix_web::{
    HttpResponse,
    web::{Data, Json, Path},
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sovereign_relay_protocol::{
    platform::{Environment, Platform},
    redacted::Redacted,
    seal::DevicePublicKey,
    token::{ChannelRule, TargetToken},
};
use uuid::Uuid;

use super::{Registration, error::ApiError, gate::Caller, ok};
use crate::{
    store::{Device, NewDevice},
    user::User,
};

/// What providers give is a tenth of it; PostgreSQL refuses what is longer than a third of a page in an index.
const LONGEST_TOKEN_BYTES: usize = 2048;

/// What an app sends. Fields of later versions are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Body {
    platform: String,
    device_token: Redacted,
    public_key: String,
    environment: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View<'a> {
    id: Uuid,
    platform: &'a str,
    created_at: u64,
    last_used_at: Option<u64>,
}

pub(crate) async fn list(
    registration: Data<Registration>,
    Caller(user): Caller,
) -> Result<HttpResponse, ApiError> {
    let devices = registration.store.devices_of(&user).await?;
    let views: Vec<_> = devices.iter().map(view).collect();
    let relay_enabled = (registration.relay)().is_some();
    Ok(HttpResponse::Ok().json(json!({ "relayEnabled": relay_enabled, "devices": views })))
}

pub(crate) async fn register(
    registration: Data<Registration>,
    Caller(user): Caller,
    Json(body): Json<Body>,
) -> Result<HttpResponse, ApiError> {
    let relay_url = (registration.relay)().ok_or(ApiError::RelayOff)?;
    let device = body.parse(&registration.channels, user, relay_url)?;
    registration.take_turn(&device.user)?;
    let (limit, now) = (registration.limits.devices_per_user, registration.clock.seconds());
    let registered = registration.store.register_device(&device, limit, now).await?;
    // Refusing instead would let the remains of old phones, which nobody can tell apart in a list, keep a new phone out.
    for device_id in registered.removed {
        tracing::info!(%device_id, "a user has too many devices, the one unused longest is removed");
    }
    Ok(ok())
}

pub(crate) async fn remove(
    registration: Data<Registration>,
    Caller(user): Caller,
    id: Path<String>,
) -> Result<HttpResponse, ApiError> {
    // What is no id is nobody's.
    let id = Uuid::try_parse(&id).map_err(|_| ApiError::NotFound)?;
    if registration.store.remove_device(&user, id).await? {
        Ok(ok())
    } else {
        Err(ApiError::NotFound)
    }
}

impl Body {
    fn parse(self, channels: &[ChannelRule], user: User, relay_url: String) -> Result<NewDevice, ApiError> {
        let platform = Platform::parse(&self.platform).ok_or(ApiError::Invalid(
            "platform must be ios, android, macos or windows",
        ))?;
        let shaped = |rule| TargetToken::parse(platform, &self.device_token, rule).is_ok();
        if !channels.iter().any(shaped) {
            return Err(ApiError::Invalid("deviceToken is no token of this platform"));
        }
        if self.device_token.len() > LONGEST_TOKEN_BYTES {
            return Err(ApiError::Invalid("deviceToken is longer than 2048 characters"));
        }
        let public_key = DevicePublicKey::from_base64(&self.public_key).map_err(|_| {
            ApiError::Invalid("publicKey must be a P-256 point, 65 bytes uncompressed, in standard base64")
        })?;
        Ok(NewDevice {
            user,
            platform,
            token: one_spelling(platform, self.device_token),
            public_key: public_key.to_base64(),
            relay_url,
            environment: environment(platform, self.environment.as_deref())?,
        })
    }
}

/// Apple's alone: on other platforms it says nothing, here as at the relay.
fn environment(platform: Platform, named: Option<&str>) -> Result<Option<Environment>, ApiError> {
    let Some(named) = named.filter(|_| platform.is_apple()) else {
        return Ok(None);
    };
    Environment::parse(named)
        .map(Some)
        .ok_or(ApiError::Invalid("environment must be production or sandbox"))
}

/// Apple's tokens are hexadecimal: in two spellings, one device would be two and hear everything twice.
fn one_spelling(platform: Platform, token: Redacted) -> Redacted {
    if platform.is_apple() {
        Redacted::new(token.expose().to_ascii_lowercase())
    } else {
        token
    }
}

fn view(device: &Device) -> View<'_> {
    View {
        id: device.id,
        platform: device.platform.as_str(),
        created_at: device.created_at,
        last_used_at: device.last_used_at,
    }
}
