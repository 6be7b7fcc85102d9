//! WNS and its token endpoints, the legacy one of `login.live.com` and Entra's.
//!
//! Flow: `POST /accesstoken.srf` or `POST /{tenant}/oauth2/v2.0/token`, then `oauth`; the channel URI,
//! `POST /?token=...`, then bearer token, `rules`, script or known channels, and an answer with `X-WNS-...`. HTTP/1.1
//! only, as WNS itself. Pages: "Push notification service request and response headers", "WNS overview",
//! "Quickstart: push notifications".

pub(crate) mod oauth;
pub(crate) mod rules;
pub(crate) mod service;
pub mod verdict;

use std::{collections::HashSet, sync::Mutex, time::Duration};

use serde::Serialize;

use crate::{
    entropy::random_hex,
    oauth::TokenBook,
    script::Script,
    simulator::{Provider, Simulator, sealed},
    sync::lock,
};

/// WNS and its token endpoints.
pub type WnsSimulator = Simulator<Wns>;

/// WNS as a [`Provider`].
pub struct Wns {
    pub(crate) options: WnsOptions,
    pub(crate) strict: bool,
    pub(crate) channels: Mutex<HashSet<String>>,
    pub(crate) tokens: TokenBook,
}

/// Options of WNS.
#[derive(Debug, Clone)]
pub struct WnsOptions {
    /// Package SID, the `client_id` of the legacy flow.
    pub package_sid: String,
    /// Secret of either flow.
    pub client_secret: String,
    /// Entra tenant.
    pub tenant_id: String,
    /// Entra application, the `client_id` of that flow.
    pub client_id: String,
    /// `expires_in` of issued tokens.
    pub token_lifetime_seconds: u64,
}

impl Default for WnsOptions {
    fn default() -> Self {
        Self {
            package_sid: "ms-app://S-1-15-2-1111111111-2222222222-3333333333".to_owned(),
            client_secret: "simulated-client-secret".to_owned(),
            tenant_id: "11111111-2222-4333-8444-555555555555".to_owned(),
            client_id: "66666666-7777-4888-9999-000000000000".to_owned(),
            token_lifetime_seconds: 86_400,
        }
    }
}

/// A raw notification that came to a channel, with what the request said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WnsDelivery {
    /// Place in the order of arrival at this simulator, from 1.
    pub order: u64,
    /// Number of the connection, from 1.
    pub connection: u64,
    /// The `token` of the channel URI, percent-encoding as it came.
    pub channel: String,
    /// `X-WNS-Type`
    pub notification_type: String,
    /// `X-WNS-Cache-Policy`
    pub cache_policy: Option<String>,
    /// `X-WNS-TTL`
    pub ttl: Option<u64>,
    /// `X-WNS-PRIORITY`
    pub priority: Option<u8>,
    /// `Content-Type`
    pub content_type: String,
    /// All header fields but `authorization`, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The bearer token, for tests.
    pub bearer: String,
    /// The body.
    pub body: String,
}

impl sealed::Sealed for Wns {}

impl Provider for Wns {
    type Delivery = WnsDelivery;
}

impl Simulator<Wns> {
    /// The URI of a fresh channel.
    pub fn new_channel(&self) -> String {
        let token = format!("AwYAAA{}%2f{}", random_hex::<24>(), random_hex::<8>());
        let uri = format!("{}/?token={token}", self.endpoint());
        lock(&self.shared.provider.channels).insert(token);
        uri
    }

    /// The legacy token endpoint.
    pub fn token_endpoint(&self) -> String {
        format!("{}{}", self.endpoint(), oauth::LEGACY_PATH)
    }

    /// Entra's token endpoint.
    pub fn entra_token_endpoint(&self) -> String {
        format!(
            "{}/{}{}",
            self.endpoint(),
            self.options().tenant_id,
            oauth::ENTRA_SUFFIX
        )
    }

    /// The credentials it knows.
    pub fn options(&self) -> &WnsOptions {
        &self.shared.provider.options
    }

    /// Requests to the token endpoints.
    pub fn oauth_requests(&self) -> u64 {
        self.shared.provider.tokens.requests()
    }

    /// What requests to the token endpoints that keep the rules are met with.
    pub fn oauth_script(&self) -> &Script {
        &self.shared.provider.tokens.script
    }

    /// Makes all bearer tokens issued so far worthless.
    pub fn expire_tokens(&self) {
        self.shared.provider.tokens.expire_all();
    }

    /// `expires_in` of tokens issued from now on.
    pub fn set_token_lifetime(&self, lifetime: Duration) {
        self.shared
            .provider
            .tokens
            .set_lifetime_seconds(lifetime.as_secs());
    }
}
