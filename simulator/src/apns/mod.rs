//! APNs: HTTP/2 with its moving stream limit, GOAWAY reasons, provider JWTs and documented refusals.
//!
//! Flow of a connection: `wire` (SETTINGS and GOAWAY between the frames of `h2`) - `connection` (drives streams) -
//! per request `request` (reads) - `auth` and `rules` (refuse) - script or `devices` (decide) - `respond`.
//! Vendor pages: "Sending notification requests to APNs", "Handling notification responses from APNs",
//! "Establishing a token-based connection to APNs".

pub(crate) mod auth;
pub(crate) mod connection;
pub(crate) mod devices;
pub(crate) mod frames;
pub(crate) mod ledger;
pub(crate) mod options;
pub(crate) mod registry;
pub(crate) mod request;
pub(crate) mod respond;
pub(crate) mod rules;
mod state;
pub mod verdict;
pub(crate) mod wire;

use serde::Serialize;

pub use auth::{ApnsKey, JwtUse};
pub use options::{ApnsEnvironment, ApnsOptions, LimitEnforcement};
pub use registry::ApnsStats;
pub use state::Apns;

use crate::{
    error::SimulatorError,
    simulator::{Provider, Simulator, sealed},
};

/// APNs, production or sandbox.
pub type ApnsSimulator = Simulator<Apns>;

/// A notification that came to a device, with what the request said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApnsDelivery {
    /// Place in the order of arrival at this simulator, from 1.
    pub order: u64,
    /// Number of the connection, from 1.
    pub connection: u64,
    /// Device token.
    pub token: String,
    /// `apns-id`, the caller's or the one made here.
    pub apns_id: String,
    /// `apns-topic`
    pub topic: String,
    /// `apns-push-type`
    pub push_type: String,
    /// `apns-priority`
    pub priority: Option<u8>,
    /// `apns-expiration`
    pub expiration: Option<i64>,
    /// `apns-collapse-id`
    pub collapse_id: Option<String>,
    /// The provider JWT, for tests.
    pub jwt: String,
    /// The JSON body.
    pub payload: String,
}

impl sealed::Sealed for Apns {}

impl Provider for Apns {
    type Delivery = ApnsDelivery;
}

impl Simulator<Apns> {
    /// A fresh token of a device of this environment.
    pub fn new_token(&self) -> String {
        self.shared.provider.devices.new_token()
    }

    /// Makes the token one that APNs never issued: `BadDeviceToken` from now on.
    pub fn forget_token(&self, token: &str) {
        self.shared.provider.devices.forget(token);
    }

    /// A further signing key of the team, as made in the developer account: the old ones stay good.
    pub fn new_key(&self) -> Result<ApnsKey, SimulatorError> {
        self.shared.provider.keys.new_key()
    }

    /// The key that [`crate::Simulators::relay_environment`] names.
    pub fn key(&self) -> ApnsKey {
        self.shared.provider.keys.first()
    }

    /// Withdraws a signing key: `InvalidProviderToken` from now on.
    pub fn revoke_key(&self, key_id: &str) {
        self.shared.provider.keys.revoke(key_id);
    }

    /// The team and topics it knows.
    pub fn options(&self) -> &ApnsOptions {
        &self.shared.provider.options
    }

    /// Sets the stream limit of all open connections now, and the one that new connections are raised to.
    pub fn set_stream_limit(&self, limit: u32) {
        self.shared.provider.registry.set_stream_limit(limit);
    }

    /// Sends GOAWAY with `{"reason": reason}` on all open connections: streams up to the highest one seen are
    /// finished, later ones are not processed, then the connection closes.
    pub fn goaway(&self, reason: &str) {
        self.shared.provider.registry.goaway(reason, None);
    }

    /// The same with a chosen last stream id: streams above it, though already seen, are not processed.
    pub fn goaway_at(&self, reason: &str, last_stream_id: u32) {
        self.shared.provider.registry.goaway(reason, Some(last_stream_id));
    }

    /// How many streams were opened beyond the limit that the peer had acknowledged.
    pub fn limit_violations(&self) -> u64 {
        self.shared.provider.registry.stats().limit_violations
    }

    /// RST_STREAM frames received.
    pub fn resets_received(&self) -> u64 {
        self.shared.provider.registry.stats().resets_received
    }

    /// PING frames received.
    pub fn pings_received(&self) -> u64 {
        self.shared.provider.registry.stats().pings_received
    }

    /// All counters of the wire.
    pub fn stats(&self) -> ApnsStats {
        self.shared.provider.registry.stats()
    }

    /// The provider JWTs seen, by connection, in order of their first use there.
    pub fn jwts(&self) -> Vec<JwtUse> {
        self.shared.provider.registry.jwts()
    }

    /// How many times a connection went from one JWT to another, over all connections.
    pub fn jwt_changes(&self) -> u64 {
        self.shared.provider.registry.stats().jwt_changes
    }
}
