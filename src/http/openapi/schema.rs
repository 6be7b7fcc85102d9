//! Shapes of the request bodies, for the document alone: the parsers in the protocol crate read fields of any type,
//! so that they can word every error themselves, and have no schema to derive. A test keeps both in step.
#![allow(dead_code, reason = "these types are read by the schema derive, never made")]

use sovereign_relay_protocol::platform::{Environment, Platform, Priority};
use utoipa::ToSchema;

/// One notification.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct PushRequest {
    /// The device's address at its provider, as the app got it.
    #[schema(min_length = 1)]
    device_token: String,
    /// Which provider delivers it.
    platform: Platform,
    /// What the device opens; the relay never reads it.
    #[schema(min_length = 1)]
    encrypted_payload: String,
    /// The key, where it is not in the Authorization header.
    #[schema(min_length = 1)]
    instance_key: Option<String>,
    /// How soon the device should learn of it.
    #[schema(default = "high")]
    priority: Option<Priority>,
    /// How long the provider keeps it for an offline device; 0 = now or never (Windows: not cached, without X-WNS-TTL).
    #[schema(minimum = 0, maximum = 2_419_200, default = 2_419_200)]
    ttl_seconds: Option<u32>,
    /// A later notification with the same id replaces this one, but not on Windows, where it has no effect. 1 to 64
    /// bytes.
    #[schema(min_length = 1, max_length = 64)]
    collapse_id: Option<String>,
    /// APNs environment, where it is not the relay's default.
    environment: Option<Environment>,
    /// Makes a repeat safe for ten minutes.
    #[schema(min_length = 1, max_length = 128, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
}

/// Up to 500 notifications.
#[derive(ToSchema)]
pub(crate) struct BatchRequest {
    /// Each as in a request of its own.
    #[schema(min_items = 1, max_items = 500)]
    messages: Vec<PushRequest>,
}

/// What an instance may say about itself.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct EnrollRequest {
    /// What it calls itself.
    #[schema(min_length = 1, max_length = 80)]
    name: Option<String>,
    /// Its operator's mail address.
    #[schema(max_length = 254, format = "email")]
    contact: Option<String>,
}

/// How the old key ends.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct RotateRequest {
    /// For how long it still works; 0 = not at all.
    #[schema(minimum = 0, maximum = 2_592_000, default = 86_400)]
    grace_seconds: Option<u64>,
}
