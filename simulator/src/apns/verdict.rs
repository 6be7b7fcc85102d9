//! The answers of "Handling notification responses from APNs", for scripts.

use crate::behaviour::Behaviour;

/// A refusal: `{"reason": reason}` under `status`. Any pair, known or not.
pub fn refused(status: u16, reason: &str) -> Behaviour {
    json(status, &serde_json::json!({ "reason": reason }))
}

/// 410 with the moment, in milliseconds, at which APNs found the token dead.
pub fn gone(reason: &str, timestamp_millis: i64) -> Behaviour {
    json(
        410,
        &serde_json::json!({ "reason": reason, "timestamp": timestamp_millis }),
    )
}

/// 410 `Unregistered` with the moment, in milliseconds, at which APNs found the token dead.
pub fn unregistered(timestamp_millis: i64) -> Behaviour {
    gone("Unregistered", timestamp_millis)
}

/// 410 `ExpiredToken` with the moment, in milliseconds, at which APNs found the token dead.
pub fn expired_token(timestamp_millis: i64) -> Behaviour {
    gone("ExpiredToken", timestamp_millis)
}

/// 400 `BadDeviceToken`: malformed, or a token of the other environment.
pub fn bad_device_token() -> Behaviour {
    refused(400, "BadDeviceToken")
}

/// 400 `DeviceTokenNotForTopic`: a token of another app.
pub fn device_token_not_for_topic() -> Behaviour {
    refused(400, "DeviceTokenNotForTopic")
}

/// 403 `ExpiredProviderToken`: the JWT's `iat` is more than an hour off.
pub fn expired_provider_token() -> Behaviour {
    refused(403, "ExpiredProviderToken")
}

/// 429 `TooManyProviderTokenUpdates`.
pub fn too_many_provider_token_updates() -> Behaviour {
    refused(429, "TooManyProviderTokenUpdates")
}

/// 429 `TooManyRequests` to the same device.
pub fn too_many_requests() -> Behaviour {
    refused(429, "TooManyRequests")
}

/// 500 `InternalServerError`.
pub fn internal_server_error() -> Behaviour {
    refused(500, "InternalServerError")
}

/// 503 `ServiceUnavailable`.
pub fn service_unavailable() -> Behaviour {
    refused(503, "ServiceUnavailable")
}

fn json(status: u16, body: &serde_json::Value) -> Behaviour {
    Behaviour::status(status)
        .header("content-type", "application/json")
        .body(body.to_string())
}
