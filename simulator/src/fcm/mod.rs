//! FCM HTTP v1 and the token endpoint of its service account (RFC 7523).
//!
//! Flow: `POST /token` - `oauth`; `POST /v1/projects/{project}/messages:send` - bearer token - `message` (refuses
//! what FCM refuses) - script or known devices - answer. Both ends speak HTTP/1.1 and HTTP/2. Pages: "REST Resource:
//! projects.messages", "FCM error codes", "Using OAuth 2.0 for Server to Server Applications".

pub(crate) mod message;
pub(crate) mod oauth;
pub(crate) mod service;
pub mod verdict;

use std::{collections::BTreeMap, collections::HashSet, sync::Mutex, time::Duration};

use jsonwebtoken::DecodingKey;
use serde::Serialize;

use crate::{
    entropy::random_hex,
    oauth::TokenBook,
    script::Script,
    simulator::{Provider, Simulator, sealed},
    sync::lock,
};

/// FCM and its token endpoint.
pub type FcmSimulator = Simulator<Fcm>;

/// FCM as a [`Provider`].
pub struct Fcm {
    pub(crate) options: FcmOptions,
    pub(crate) strict: bool,
    pub(crate) devices: Mutex<HashSet<String>>,
    pub(crate) tokens: TokenBook,
    pub(crate) account: ServiceAccount,
}

/// The key pair of the service account.
pub(crate) struct ServiceAccount {
    pub(crate) private_key_pem: String,
    pub(crate) key_id: String,
    pub(crate) verifying_key: DecodingKey,
}

/// Options of FCM.
#[derive(Debug, Clone)]
pub struct FcmOptions {
    /// Firebase project.
    pub project_id: String,
    /// `iss` of the assertion.
    pub client_email: String,
    /// `expires_in` of issued tokens.
    pub token_lifetime_seconds: u64,
}

impl Default for FcmOptions {
    fn default() -> Self {
        Self {
            project_id: "sovereign-simulator".to_owned(),
            client_email: "relay@sovereign-simulator.iam.gserviceaccount.com".to_owned(),
            token_lifetime_seconds: 3600,
        }
    }
}

/// A message that came to a device, with what the request said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FcmDelivery {
    /// Place in the order of arrival at this simulator, from 1.
    pub order: u64,
    /// Number of the connection, from 1.
    pub connection: u64,
    /// Project in the path.
    pub project: String,
    /// `message.token`, or `message.fid`
    pub token: String,
    /// `message.data`
    pub data: BTreeMap<String, String>,
    /// `message.android.priority`
    pub priority: Option<String>,
    /// `message.android.ttl`
    pub ttl: Option<String>,
    /// `message.android.collapse_key`
    pub collapse_key: Option<String>,
    /// The bearer token, for tests.
    pub bearer: String,
    /// `HTTP/2.0` or `HTTP/1.1`
    pub http_version: String,
    /// The whole body.
    pub body: String,
}

impl sealed::Sealed for Fcm {}

impl Provider for Fcm {
    type Delivery = FcmDelivery;
}

impl Simulator<Fcm> {
    /// A fresh registration token.
    pub fn new_token(&self) -> String {
        let token = format!("{}:APA91b{}", random_hex::<11>(), random_hex::<67>());
        lock(&self.shared.provider.devices).insert(token.clone());
        token
    }

    /// `token_uri` of the service account.
    pub fn token_uri(&self) -> String {
        format!("{}{}", self.endpoint(), oauth::TOKEN_PATH)
    }

    /// The service account's JSON, as the Firebase console hands it out.
    pub fn service_account_json(&self) -> String {
        let Fcm { account, options, .. } = &self.shared.provider;
        serde_json::json!({
            "type": "service_account",
            "project_id": options.project_id,
            "private_key_id": account.key_id,
            "private_key": account.private_key_pem,
            "client_email": options.client_email,
            "client_id": "100000000000000000000",
            "token_uri": self.token_uri(),
        })
        .to_string()
    }

    /// The project and account it knows.
    pub fn options(&self) -> &FcmOptions {
        &self.shared.provider.options
    }

    /// Requests to the token endpoint.
    pub fn oauth_requests(&self) -> u64 {
        self.shared.provider.tokens.requests()
    }

    /// What requests to the token endpoint that keep the rules are met with.
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
