//! Puts the parts together: the one module that names concrete adapters.
//!
//! ```text
//! start: data directory -> keys -> providers (a thread each) -> lanes -> instances' actors -> listeners
//! stop:  readiness -> grace -> public listener -> actors -> lanes -> providers -> admin listener -> store
//! ```
//!
//! The CLI calls [`run`]; the playground and tests call [`start`] or, with their own clock, providers and times,
//! [`start_with`]. All need a running actix system. Invariant: what is started first is stopped last, and a listener
//! is bound only when everything behind it works.

use std::{io, net::SocketAddr, num::NonZeroUsize, sync::Arc, thread};

use actix_web::web::Data;
use sovereign_relay_actors::{
    lane::{BreakerState, Lane},
    ports::{Clock, Entropy, Providers, StoreError},
};
use tracing::{error, info};

mod follow;
mod gate;
mod gauges;
mod listener;
mod memories;
mod provider_runtime;
mod providers;
mod push_half;
mod records;
mod running;
mod shelf;
mod signaling;
#[cfg(test)]
mod tests;
mod upkeep;

use self::{
    follow::Following,
    gauges::gauges,
    listener::{listen_admin, listen_public},
    memories::Memories,
    push_half::{PushHalf, all},
    records::Records,
    signaling::SignalHalf,
    upkeep::upkeep,
};
pub use self::{providers::ProviderError, running::RunningRelay};
use crate::{
    auth::SecretError,
    clock::SystemClock,
    config::{Config, ConfigError},
    descriptors,
    entropy::SystemEntropy,
    http::{
        Tuning,
        capabilities::is_any_configured,
        health::{Facts, Told},
        services::Services,
    },
    limit::{AddressLimits, BodyBudget},
    shutdown::{Lifecycle, Phase, ReloadSignal, StopSignals},
    store::embedded::OpenError,
};

/// Renders the metrics, for `/metrics`.
pub type RenderMetrics = Arc<dyn Fn() -> String + Send + Sync>;

/// What a test may bring along; the rest comes from the configuration.
pub struct Ports {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// `None`: APNs, FCM and WNS as configured.
    pub providers: Option<Providers>,
    /// Times and sizes of the listeners.
    pub tuning: Tuning,
    /// Behind `/metrics`.
    pub metrics: RenderMetrics,
}

impl Default for Ports {
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy),
            providers: None,
            tuning: Tuning::default(),
            metrics: Arc::new(String::new),
        }
    }
}

/// Why the relay did not start. One line that names what to change.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory or the database in it.
    #[error(transparent)]
    Storage(#[from] OpenError),
    /// The enrollment secret.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Redis is configured and was not there.
    #[error(
        "Redis, which REDIS_URL names, can't be reached: no key may be verified before the revocation list is read"
    )]
    Redis,
    /// The revocation list could not be read: no key may be verified without it.
    #[error("the revocation list could not be read: {0}")]
    Revocations(#[from] StoreError),
    /// Credentials or endpoints of a provider.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// A provider's thread.
    #[error("a thread could not be started: {0}")]
    Thread(#[source] io::Error),
    /// A listener.
    #[error("{address} can't be listened on: {cause}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
}

/// Runs the relay until SIGTERM or SIGINT and its orderly end; a second signal ends it at once. SIGHUP takes over what
/// needs no restart of the configuration that `load` then finds.
pub async fn run(
    config: Config,
    load: impl Fn() -> Result<Config, ConfigError>,
    metrics: RenderMetrics,
) -> anyhow::Result<()> {
    log_panics();
    let (mut signals, mut reloads) = (StopSignals::subscribe()?, ReloadSignal::subscribe()?);
    let mut relay = start_with(
        config,
        Ports {
            metrics,
            ..Ports::default()
        },
    )
    .await?;
    let signal = loop {
        tokio::select! {
            signal = signals.next() => break signal,
            () = reloads.next() => relay.reload(load()),
            () = relay.listener_failed() => anyhow::bail!("a listener ended by itself"),
        }
    };
    let stopped = relay.stop();
    info!(signal, "stopping");
    tokio::select! {
        () = stopped => Ok(()),
        signal = signals.next() => anyhow::bail!("{signal} came while stopping: ended at once"),
    }
}

/// Logs panics of the whole process by their place. The message is left out: it may quote content.
pub(crate) fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        error!(location, thread = thread::current().name(), "panicked");
    }));
}

/// Starts a relay with the system's clock and the configured providers.
pub async fn start(config: Config) -> Result<RunningRelay, StartError> {
    start_with(config, Ports::default()).await
}

/// Starts a relay with what the caller brings along.
pub async fn start_with(config: Config, ports: Ports) -> Result<RunningRelay, StartError> {
    let lifecycle = Lifecycle::default();
    let records = Records::open(&config, &ports).await?;
    let memories = Memories::open(&config, &ports, &records.place).await;
    let push = PushHalf::start(&config, &ports, &records.store, memories)?;
    let connections = descriptors::public_connections(config.listen.connections);
    let signal = SignalHalf::start(
        &config,
        &ports,
        &records.authority,
        &lifecycle,
        connections,
        push.memories.leases(),
    );
    let limits = Arc::new(records.place.address_limits());
    let services = Data::new(services(
        &config, &ports, &records, &push, &signal, &limits, &lifecycle,
    ));
    let following = Following::start(&records.place, &push, &services).await;
    let public = listen_public(
        &config,
        &ports,
        services.clone(),
        signal.upgrades.clone(),
        connections,
    )?;
    let admin = listen_admin(
        &config,
        &ports,
        &records,
        gauges(&push, &signal, &services),
        services.clone(),
    )?;
    let upkeep = upkeep(&services, push.memories.clone());
    lifecycle.advance(Phase::Serving);
    info!(public = %public.address, admin = %admin.address, "serving");
    Ok(RunningRelay {
        public_addr: public.address,
        admin_addr: admin.address,
        drain_grace: config.timeouts.drain_grace,
        lifecycle,
        public,
        admin,
        push,
        signal,
        upkeep,
        authority: records.authority,
        following,
        place: records.place,
        clock: ports.clock.clone(),
        texts: config.texts,
    })
}

/// One per CPU unless the operator says otherwise.
fn threads(configured: Option<NonZeroUsize>) -> usize {
    configured
        .or_else(|| thread::available_parallelism().ok())
        .map_or(1, NonZeroUsize::get)
}

fn services(
    config: &Config,
    ports: &Ports,
    records: &Records,
    push: &PushHalf,
    signal: &SignalHalf,
    addresses: &Arc<AddressLimits>,
    lifecycle: &Lifecycle,
) -> Services {
    Services {
        clock: ports.clock.clone(),
        entropy: ports.entropy.clone(),
        authority: records.authority.clone(),
        pushes: Arc::new(push.registry.clone()),
        signaling: signal.services(config, ports, &records.authority, &push.registry),
        addresses: addresses.clone(),
        bodies: BodyBudget::new(ports.tuning.bodies),
        providers: push.built.providers.clone(),
        titles: config.apns.titles.clone(),
        lifecycle: lifecycle.clone(),
        facts: facts(records, push, signal),
        told: Told::default(),
        proxies: signal.upgrades.proxies.clone(),
        body_time: ports.tuning.body_time,
    }
}

/// What `/readyz` judges, read anew each time.
fn facts(records: &Records, push: &PushHalf, signal: &SignalHalf) -> Box<dyn Fn() -> Facts + Send + Sync> {
    let (authority, store) = (records.authority.clone(), records.store.clone());
    let (providers, lanes) = (push.built.providers.clone(), push.lanes.clone());
    let shelf = signal.shelf.clone();
    Box::new(move || Facts {
        enrollment_secret: authority.is_configured(),
        any_platform: is_any_configured(&providers),
        store_works: store.fault().is_none(),
        redis_is_away: !shelf.is_up(),
        unreachable_providers: all(&lanes)
            .map(Lane::snapshot)
            .into_iter()
            .filter(|lane| lane.breaker != BreakerState::Closed)
            .map(|lane| lane.provider)
            .collect(),
    })
}
