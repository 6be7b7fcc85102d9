//! What a registry is started with.

use std::{sync::Arc, time::Duration};

use sovereign_relay_protocol::{envelope::AlertTitles, limits, platform::Environment, token::ChannelRule};

use super::{directory::Directory, door::Doors, tracker::Tracker};
use crate::{
    idempotency::{InFlight, OutcomeMemory},
    instance::{kit::Kit, state::Rules},
    lane::Lane,
    ports::{Clock, Entropy, InstanceStore, SharedLimits},
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
    /// Signaling sessions that each makes in a minute.
    pub sessions_per_minute: u32,
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
            sessions_per_minute: limits::SESSIONS_PER_MINUTE,
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

impl From<Lanes> for Doors {
    fn from(lanes: Lanes) -> Self {
        Self {
            apns_production: Arc::new(lanes.apns_production),
            apns_sandbox: Arc::new(lanes.apns_sandbox),
            fcm: Arc::new(lanes.fcm),
            wns: Arc::new(lanes.wns),
        }
    }
}

/// What is put in, as the composition root or a test has it.
pub(crate) struct Ports {
    pub(crate) doors: Doors,
    pub(crate) store: Arc<dyn InstanceStore>,
    pub(crate) limits: Arc<dyn SharedLimits>,
    pub(crate) outcomes: Arc<dyn OutcomeMemory>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl Kit {
    pub(super) fn new(config: RegistryConfig, ports: Ports, directory: Arc<Directory>) -> Self {
        let RegistryConfig {
            titles,
            channel_rule,
            per_minute,
            sessions_per_minute,
            ..
        } = config;
        Self {
            rules: Arc::new(Rules {
                titles,
                channel_rule,
                per_minute: per_minute.into(),
                sessions_per_minute,
            }),
            default_environment: config.default_environment,
            push_deadline: config.push_deadline,
            idle_after: config.idle_after,
            tick: config.tick,
            doors: ports.doors,
            store: ports.store,
            limits: ports.limits,
            outcomes: ports.outcomes,
            clock: ports.clock,
            entropy: ports.entropy,
            in_flight: InFlight::default(),
            directory,
            pushes: Tracker::default(),
            writes: Tracker::default(),
        }
    }
}
