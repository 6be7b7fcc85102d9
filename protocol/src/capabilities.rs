//! `GET /v1/capabilities`: what an instance's admin console needs to say what will work.

use serde::{Deserialize, Serialize};

use crate::{platform::Platform, signal::session::SessionLimits};

/// 200 of `GET /v1/capabilities`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Capabilities {
    /// For which platforms this relay has credentials.
    pub platforms: PerPlatform<bool>,
    /// The signaling half.
    pub signaling: Signaling,
    /// What a request may hold and how often it may come.
    pub limits: PushLimits,
    /// Version of the relay.
    pub version: String,
}

/// One value for each platform.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PerPlatform<T> {
    /// iOS, through APNs.
    pub ios: T,
    /// Android, through FCM.
    pub android: T,
    /// macOS, through APNs.
    pub macos: T,
    /// Windows, through WNS.
    pub windows: T,
}

impl<T> PerPlatform<T> {
    /// Asks `value` once for each platform.
    pub fn of(mut value: impl FnMut(Platform) -> T) -> Self {
        Self {
            ios: value(Platform::Ios),
            android: value(Platform::Android),
            macos: value(Platform::Macos),
            windows: value(Platform::Windows),
        }
    }
}

/// What the relay speaks on signaling connections.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Signaling {
    /// WebSocket subprotocols that the relay accepts, best first. Empty: this relay carries no signaling, and a
    /// caller that looks for its subprotocol in the list finds that out without a special case.
    pub subprotocols: Vec<String>,
    /// Where frames wait for their peer, if anything carries them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// What a session may carry, if anything carries them.
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = SessionLimits))]
    pub limits: Option<SessionLimits>,
}

/// What a waiting signaling frame outlives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Durability {
    /// Nothing: it is lost when the relay restarts.
    Memory,
    /// A restart of the relay, kept in Redis.
    Redis,
}

/// The numbers a caller plans with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PushLimits {
    /// Longest body of a request other than a batch.
    pub body_bytes: usize,
    /// Longest body of a batch.
    pub batch_body_bytes: usize,
    /// Most messages in a batch.
    pub batch_messages: usize,
    /// Longest `encryptedPayload` that fits the provider's limit, for text that JSON need not escape (base64).
    pub payload_bytes: PerPlatform<usize>,
    /// Pushes a minute of one instance, and the burst, where the operator has set nothing else.
    pub pushes_per_minute: u32,
    /// Pushes of one instance at the same time.
    pub concurrent_pushes: usize,
    /// Pushes a minute of one instance to one device.
    pub device_pushes_per_minute: u32,
    /// Largest `ttlSeconds`.
    pub ttl_seconds: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_without_signaling_lists_no_subprotocol_and_no_durability() {
        let json = serde_json::to_value(Signaling::default()).unwrap();
        assert_eq!(json, serde_json::json!({"subprotocols": []}));
    }

    #[test]
    fn the_limits_of_sessions_stand_beside_the_subprotocols() {
        let signaling = Signaling {
            subprotocols: vec!["sovereign.signal.v1".to_owned()],
            durability: Some(Durability::Memory),
            limits: Some(SessionLimits::default()),
        };
        let json = serde_json::to_value(&signaling).unwrap();
        assert_eq!(json["durability"], "memory");
        assert_eq!(json["frameBytes"], 32 * 1024);
        assert_eq!(serde_json::from_value::<Signaling>(json).unwrap(), signaling);
        let none = serde_json::json!({"subprotocols": []});
        assert_eq!(
            serde_json::from_value::<Signaling>(none).unwrap(),
            Signaling::default()
        );
    }

    #[test]
    fn every_platform_is_asked_for_its_own_value() {
        let names = PerPlatform::of(Platform::as_str);
        let json = serde_json::to_value(names).unwrap();
        for platform in Platform::ALL {
            assert_eq!(json[platform.as_str()], platform.as_str());
        }
    }
}
