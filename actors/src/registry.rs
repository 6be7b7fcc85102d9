//! Finds the actor of an instance, starts it, replaces it when it died.

use std::{sync::Arc, time::Duration};

use sovereign_relay_protocol::{
    envelope::AlertTitles, id::InstanceId, limits, platform::Environment, token::ChannelRule,
};

use crate::{
    idempotency::OutcomeMemory,
    lane::Lane,
    ports::{Clock, Entropy, InstanceStore, SharedLimits},
    push::{Answered, Push, Refusal},
};

/// How instances are served.
#[derive(Clone, Debug)]
pub struct RegistryConfig {
    /// Threads that actors live on.
    pub arbiters: usize,
    /// `RELAY_PUSH_DEADLINE`.
    pub push_deadline: Duration,
    /// An actor without pushes stops after this.
    pub idle_after: Duration,
    /// How often an actor writes its counters, cleans its memories and looks whether it is idle.
    pub tick: Duration,
    /// Titles in the APNs envelope, which take room from the payload.
    pub titles: AlertTitles,
    /// `APNS_USE_SANDBOX`: where Apple pushes without `environment` go.
    pub default_environment: Environment,
    /// Hosts a channel URI may name.
    pub channel_rule: ChannelRule,
    /// Pushes a minute of an instance without an operator's limit.
    pub per_minute: u32,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        Self {
            arbiters: 1,
            push_deadline: Duration::from_secs(10),
            // Longer than any memory whose loss would let an instance do more than it may: see instance.rs.
            idle_after: Duration::from_secs(11 * 60),
            tick: Duration::from_secs(20),
            titles: AlertTitles::default(),
            default_environment: Environment::Production,
            channel_rule: ChannelRule::default(),
            per_minute: limits::PUSHES_PER_MINUTE,
        }
    }
}

/// What stands in front of each provider.
#[derive(Clone)]
pub struct Lanes {
    /// APNs production.
    pub apns_production: Lane,
    /// APNs sandbox.
    pub apns_sandbox: Lane,
    /// FCM.
    pub fcm: Lane,
    /// WNS.
    pub wns: Lane,
}

/// For metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistrySnapshot {
    /// Actors alive.
    pub actors: usize,
    /// Pushes under way.
    pub in_flight: usize,
    /// Actors replaced after a panic.
    pub restarts: u64,
}

/// The instances' actors. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {}

impl Registry {
    /// Starts the arbiters. Needs a running actix `System`.
    #[allow(unused_variables)]
    pub fn start(
        config: RegistryConfig,
        lanes: Lanes,
        store: Arc<dyn InstanceStore>,
        limits: Arc<dyn SharedLimits>,
        outcomes: Arc<dyn OutcomeMemory>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        Self {}
    }

    /// Serves one push. A caller that goes away loses the answer alone.
    pub async fn push(&self, _instance: InstanceId, _push: Push) -> Result<Answered, Refusal> {
        Err(Refusal::Draining)
    }

    /// Makes the instance's actor read its standing again; returns when every push that begins later is judged by
    /// the new one.
    pub async fn refresh(&self, _instance: InstanceId) {}

    /// Refuses new pushes, waits for those under way, then stops actors and arbiters.
    pub async fn close(&self) {}

    /// For metrics and `/readyz`.
    pub fn snapshot(&self) -> RegistrySnapshot {
        RegistrySnapshot {
            actors: 0,
            in_flight: 0,
            restarts: 0,
        }
    }
}
