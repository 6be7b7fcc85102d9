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

mod client;
mod config;
mod connection;
mod error;
mod keep_alive;
mod meter;
mod pool;
mod request;
mod slots;
mod token;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use sovereign_relay_actors::ports::{Clock, Delivery, Entropy, Outcome, PushProvider, Scope};
use sovereign_relay_protocol::platform::{Environment, Platform};
use tokio::{runtime::Handle, sync::watch, task::JoinSet};

pub use self::{
    config::{ApnsConfig, ApnsConfigError, Topics, Tuning, default_endpoint},
    token::{ApnsKey, KeyError},
};
use self::{
    pool::{Base, Pool},
    request::{App, Origin},
    slots::UNCONNECTED,
    token::TokenSource,
};
use crate::provider::{
    alarm::Alarms,
    transport::{Endpoint, Transport},
};

/// The client of one environment. Clones share everything.
#[derive(Clone)]
pub struct ApnsProvider {
    inner: Arc<Inner>,
}

struct Inner {
    environment: Environment,
    base: Arc<Base>,
    origin: Origin,
    current: ArcSwap<Generation>,
    alarms: Alarms,
}

/// One set of credentials and the connections that were opened under it.
struct Generation {
    number: u64,
    credentials: Option<Arc<Credentials>>,
    pool: Arc<Pool>,
}

/// What a push is signed and addressed with.
struct Credentials {
    tokens: TokenSource,
    apps: HashMap<Platform, App>,
}

impl Credentials {
    fn app(&self, platform: Platform) -> Option<&App> {
        self.apps.get(&platform)
    }
}

impl ApnsProvider {
    /// Checks the configuration; connects when the first push comes. Connections live on `runtime`.
    pub fn new(
        config: ApnsConfig,
        transport: Transport,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        runtime: Handle,
    ) -> Result<Self, ApnsConfigError> {
        let Endpoint { host, port, tls } = &config.endpoint;
        let origin = Origin::new(host, *port, *tls).ok_or(ApnsConfigError::Endpoint)?;
        let credentials = config.credentials()?.map(Arc::new);
        let base = Arc::new(Base {
            name: name(config.environment),
            transport,
            endpoint: config.endpoint,
            clock,
            entropy,
            runtime,
            dial_within: config.tuning.dial_within,
            keep_alive: config.tuning.keep_alive(),
            bounds: config.tuning.bounds(),
            capacity: watch::Sender::new(UNCONNECTED),
            tasks: Mutex::new(JoinSet::new()),
            next_id: AtomicU64::new(1),
        });
        let first = Generation {
            number: 0,
            credentials,
            pool: Pool::new(base.clone()),
        };
        let current = ArcSwap::from_pointee(first);
        let alarms = Alarms::new(base.name);
        Ok(Self {
            inner: Arc::new(Inner {
                environment: config.environment,
                base,
                origin,
                current,
                alarms,
            }),
        })
    }

    /// Takes new keys, topics and titles. Pushes from now on use them over new connections; those under way end on
    /// the old ones. Endpoint and tuning stay.
    pub fn reload(&self, config: ApnsConfig) -> Result<(), ApnsConfigError> {
        let inner = &self.inner;
        if config.environment != inner.environment || config.endpoint != inner.base.endpoint {
            return Err(ApnsConfigError::Fixed);
        }
        let credentials = config.credentials()?.map(Arc::new);
        let pool = Pool::new(inner.base.clone());
        // Replaces exactly the one it counts on from: of two reloads at a time, each gets a number of its own.
        let old = inner.current.rcu(|current| Generation {
            number: current.number + 1,
            credentials: credentials.clone(),
            pool: pool.clone(),
        });
        old.pool.retire();
        inner.base.capacity.send_replace(UNCONNECTED);
        Ok(())
    }

    /// Ends all connections and waits for their tasks. Call it when no push is under way: one that is ends
    /// `unknown_outcome`, and a later one fails.
    pub async fn close(&self) {
        self.inner.current.load().pool.retire();
        self.inner.base.close().await;
    }
}

impl PushProvider for ApnsProvider {
    fn name(&self) -> &'static str {
        self.inner.base.name
    }

    fn scope(&self, platform: Platform) -> Option<Scope> {
        let generation = self.inner.current.load();
        let app = generation.credentials.as_ref()?.app(platform)?;
        Some(Scope {
            name: app.scope.clone(),
            generation: generation.number,
        })
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.inner.base.capacity.subscribe()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'static, Outcome> {
        Box::pin(client::deliver(self.inner.clone(), delivery))
    }
}

fn name(environment: Environment) -> &'static str {
    match environment {
        Environment::Production => "apns-production",
        Environment::Sandbox => "apns-sandbox",
    }
}

#[cfg(test)]
mod tests;
