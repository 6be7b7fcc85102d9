//! Puts the parts together: the one file that names concrete adapters.
//!
//! ```text
//! start: data directory -> keys -> providers (a thread each) -> lanes -> instances' actors -> listeners
//! stop:  readiness -> grace -> public listener -> actors -> lanes -> providers -> admin listener -> store
//! ```
//!
//! The CLI calls [`run`]; the playground and tests call [`start`] or, with their own clock, providers and times,
//! [`start_with`]. All need a running actix system. Invariant: what is started first is stopped last, and a listener
//! is bound only when everything behind it works.

use std::{io, net::SocketAddr, num::NonZeroUsize, sync::Arc, thread, time::Duration};

use actix_web::web::Data;
use sovereign_relay_actors::{
    lane::{BreakerState, Lane},
    now::Now,
    ports::{Clock, Entropy, Providers, StoreError},
};
use sovereign_relay_protocol::platform::Platform;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

mod gate;
mod listener;
mod provider_runtime;
mod providers;
mod push_half;
mod records;
mod signaling;
#[cfg(test)]
mod tests;
mod upkeep;

pub use self::providers::ProviderError;
use self::{
    listener::Listener,
    push_half::{PushHalf, all},
    records::Records,
    signaling::SignalHalf,
    upkeep::upkeep,
};
use crate::{
    admin::{self, Admin},
    auth::SecretError,
    clock::SystemClock,
    config::{Config, ConfigError},
    defaults::STOP_TIME,
    descriptors,
    entropy::SystemEntropy,
    http::{self, Tuning, capabilities::is_configured, health::Facts, services::Services},
    limit::{AddressLimits, BodyBounds, BodyBudget, EmbeddedOutcomes},
    shutdown::{Lifecycle, Phase, ReloadSignal, StopSignals},
    store::{
        Store,
        embedded::{EmbeddedStore, OpenError},
    },
    ws::upgrade::Upgrades,
};

/// What actors, lanes, providers and the admin listener get of a stop after the public listener.
const CLOSING_REST: Duration = Duration::from_secs(2);
/// How often a stop looks whether the store is free. Usually it is at the first look.
const RELEASE_CHECK: Duration = Duration::from_millis(5);

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

/// Runs the relay until SIGTERM or SIGINT and its orderly end; a second signal ends it at once. SIGHUP takes over the
/// credentials and limits that `load` then finds.
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
    info!(signal, "stopping");
    tokio::select! {
        () = relay.stop() => Ok(()),
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
    let push = PushHalf::start(
        &config,
        &ports,
        &records.store,
        remembered(&records.store, ports.clock.now()).await,
    )?;
    let signal = SignalHalf::start(&config, &ports, &records.authority, &lifecycle);
    let limits = Arc::new(AddressLimits::new());
    let services = Data::new(services(
        &config, &ports, &records, &push, &signal, &limits, &lifecycle,
    ));
    let public = listen_public(&config, &ports, services.clone(), signal.upgrades.clone())?;
    let admin = listen_admin(
        &config,
        &ports,
        &records,
        gauges(&push, &signal, &services),
        services.clone(),
    )?;
    let upkeep = upkeep(&services, push.limits.clone());
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
        store: records.store,
        clock: ports.clock.clone(),
    })
}

/// A relay that serves. Dropped without [`RunningRelay::stop`], it ends without finishing what is under way.
pub struct RunningRelay {
    /// Where the public listener is bound.
    pub public_addr: SocketAddr,
    /// Where the admin listener is bound.
    pub admin_addr: SocketAddr,
    drain_grace: Duration,
    lifecycle: Lifecycle,
    public: Listener,
    admin: Listener,
    push: PushHalf,
    signal: SignalHalf,
    upkeep: JoinSet<()>,
    store: Arc<EmbeddedStore>,
    clock: Arc<dyn Clock>,
}

impl RunningRelay {
    /// Takes over credentials and limits; nothing else changes before a restart. Pushes under way end as they began.
    fn reload(&mut self, loaded: Result<Config, ConfigError>) {
        match loaded {
            Ok(config) => {
                info!("reloading credentials and limits; any other change needs a restart");
                config.warnings.iter().for_each(|warning| warn!("{warning}"));
                self.push.reload(&config);
                self.signal.reload(&config);
            }
            Err(error) => error!(%error, "the configuration can't be read, everything stays as it was"),
        }
    }

    /// Stops in order: looks unready for the grace, then finishes what is under way.
    pub async fn stop(self) {
        self.lifecycle.advance(Phase::Draining);
        self.signal.leave(self.drain_grace);
        tokio::time::sleep(self.drain_grace).await;
        self.lifecycle.advance(Phase::Closing);
        let rest = STOP_TIME.saturating_sub(self.drain_grace);
        if tokio::time::timeout(rest, self.close()).await.is_err() {
            warn!("not everything ended in time");
        }
        info!("stopped");
    }

    /// Returns when a listener ends that nobody asked to end.
    async fn listener_failed(&mut self) {
        tokio::select! {
            () = self.public.ended() => {}
            () = self.admin.ended() => {}
        }
    }

    async fn close(mut self) {
        self.public.close().await;
        self.signal.close().await;
        let outcomes = self.push.outcomes.clone();
        self.push.close().await;
        remember(&outcomes, &self.store, self.clock.now()).await;
        self.upkeep.shutdown().await;
        self.admin.close().await;
        released(self.store).await;
    }
}

/// What was answered under idempotency keys before this start. Pushes go on without.
async fn remembered(store: &EmbeddedStore, now: Now) -> Arc<EmbeddedOutcomes> {
    let outcomes = EmbeddedOutcomes::new();
    match store.kept_outcomes().await {
        Ok(kept) => outcomes.restore(kept, now),
        Err(error) => warn!(%error, "idempotency keys used before this start are forgotten"),
    }
    Arc::new(outcomes)
}

/// Keeps it for the next start.
async fn remember(outcomes: &EmbeddedOutcomes, store: &EmbeddedStore, now: Now) {
    if let Err(error) = store.keep_outcomes(outcomes.all(now)).await {
        warn!(%error, "the next start will not know the idempotency keys used so far");
    }
}

/// Waits until nothing but us holds the store, then closes it: when a stop is over, the data directory is free.
/// Threads that have just ended may still be dropping what they held.
async fn released(store: Arc<EmbeddedStore>) {
    let mut looks = tokio::time::interval(RELEASE_CHECK);
    while Arc::strong_count(&store) > 1 {
        looks.tick().await;
    }
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
        facts: facts(records, push),
        trusted_proxies: config.proxies.trusted.clone(),
        body_time: ports.tuning.body_time,
    }
}

/// What `/readyz` judges, read anew each time.
fn facts(records: &Records, push: &PushHalf) -> Box<dyn Fn() -> Facts + Send + Sync> {
    let (authority, store) = (records.authority.clone(), records.store.clone());
    let (providers, lanes) = (push.built.providers.clone(), push.lanes.clone());
    Box::new(move || Facts {
        enrollment_secret: authority.is_configured(),
        any_platform: Platform::ALL
            .into_iter()
            .any(|platform| is_configured(&providers, platform)),
        store_works: store.fault().is_none(),
        unreachable_providers: all(&lanes)
            .map(Lane::snapshot)
            .into_iter()
            .filter(|lane| lane.breaker != BreakerState::Closed)
            .map(|lane| lane.provider)
            .collect(),
    })
}

fn listen_public(
    config: &Config,
    ports: &Ports,
    services: Data<Services>,
    upgrades: Arc<Upgrades>,
) -> Result<Listener, StartError> {
    let closing_time = closing_time(config.timeouts.drain_grace);
    let mut limits = ports.tuning.public(threads(config.listen.workers), closing_time);
    limits.connections = descriptors::public_connections(limits.connections);
    let address = config.listen.address;
    let bound = http::bind(address, limits, services, Some(upgrades))
        .map_err(|cause| StartError::Listen { address, cause })?;
    Ok(Listener::run(bound))
}

/// How long answers may take once the listener closes: longer than any push, so that nobody is cut off without one.
fn closing_time(grace: Duration) -> Duration {
    STOP_TIME.saturating_sub(grace + CLOSING_REST)
}

fn listen_admin(
    config: &Config,
    ports: &Ports,
    records: &Records,
    gauges: impl Fn() + Send + Sync + 'static,
    services: Data<Services>,
) -> Result<Listener, StartError> {
    let render = ports.metrics.clone();
    let metrics = move || {
        gauges();
        render()
    };
    let token = Some(records.admin_token.clone());
    let admin = Data::new(Admin {
        services,
        token,
        bodies: BodyBudget::new(BodyBounds::default()),
        metrics: Arc::new(metrics),
    });
    let address = config.admin.listen;
    let bound = admin::bind(address, ports.tuning.admin(), admin)
        .map_err(|cause| StartError::Listen { address, cause })?;
    Ok(Listener::run(bound))
}

/// What is counted only when somebody asks.
fn gauges(push: &PushHalf, signal: &SignalHalf, services: &Services) -> impl Fn() + Send + Sync + use<> {
    let (registry, bodies) = (push.registry.clone(), services.bodies.clone());
    let signal = signal.gauges();
    move || {
        let snapshot = registry.snapshot();
        metrics::gauge!("relay_instance_actors").set(count(snapshot.actors));
        metrics::gauge!("relay_pushes_in_flight").set(count(snapshot.in_flight));
        metrics::gauge!("relay_request_body_bytes").set(count(bodies.held()));
        metrics::counter!("relay_instance_actor_restarts_total").absolute(snapshot.restarts);
        signal();
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a gauge is a float, and counts stay far below 2^52"
)]
fn count(number: usize) -> f64 {
    number as f64
}
