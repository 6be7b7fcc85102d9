//! The signaling half: sessions, their store, and the endpoint that peers connect to.

use std::{sync::Arc, time::Duration};

use metrics::gauge;
use sovereign_relay_actors::{registry::Registry, session::registry::Sessions};
use tokio::task::JoinSet;

use super::{Ports, gate::Gate, gauges::count, shelf::Shelf, threads};
use crate::{
    auth::Authority,
    config::Config,
    http::proxies::TrustedProxies,
    limit::{LeasedLimits, Permits, SharedPermits},
    shutdown::Lifecycle,
    signaling::Signaling,
    steady::steadily,
    turn::Turn,
    ws::{Endpoint, door::Door, upgrade::Upgrades},
};

/// How often what has expired is freed. A session that is over is never seen, swept or not.
const SWEEP: Duration = Duration::from_secs(1);
/// How long sockets may be asked to leave beyond the drain grace. With the longest grace it ends before the listener
/// does.
const LEAVING: Duration = Duration::from_secs(3);

/// The signaling half.
pub(super) struct SignalHalf {
    pub(super) sessions: Sessions,
    pub(super) shelf: Shelf,
    pub(super) upgrades: Arc<Upgrades>,
    turn: Arc<Turn>,
    leases: Option<LeasedLimits>,
    upkeep: JoinSet<()>,
}

impl SignalHalf {
    pub(super) fn start(
        config: &Config,
        ports: &Ports,
        authority: &Arc<Authority>,
        lifecycle: &Lifecycle,
        connections: usize,
        leases: Option<LeasedLimits>,
    ) -> Self {
        let rules = config.signaling.rules;
        let shelf = Shelf::open(config, ports);
        let sessions = Sessions::start(
            threads(config.listen.arbiters),
            shelf.store(),
            rules,
            ports.clock.clone(),
        );
        let turn = Arc::new(Turn::new(
            config.signaling.turn.clone().ok(),
            config.signaling.turn_per_minute,
            leases.clone(),
            authority.clone(),
        ));
        let endpoint = Arc::new(Endpoint {
            clock: ports.clock.clone(),
            entropy: ports.entropy.clone(),
            sessions: sessions.clone(),
            guard: Arc::new(Gate {
                authority: authority.clone(),
                turn: turn.clone(),
            }),
            door: Door::new(config.signaling.door, connections),
            lifecycle: lifecycle.clone(),
        });
        let upgrades = Arc::new(Upgrades {
            endpoint: endpoint.clone(),
            proxies: Arc::new(TrustedProxies::new(config.proxies.trusted.clone())),
            allowed_origins: config.signaling.allowed_origins.clone(),
            authority: authority.clone(),
        });
        let mut upkeep = upkeep(shelf.clone(), endpoint, turn.clone());
        let heard = (shelf.clone(), sessions.clone());
        upkeep.spawn(steadily("hearing other replicas", move || {
            let (shelf, sessions) = heard.clone();
            shelf.run(sessions)
        }));
        Self {
            sessions,
            shelf,
            upgrades,
            turn,
            leases,
            upkeep,
        }
    }

    /// What is counted only when somebody asks.
    pub(super) fn gauges(&self) -> impl Fn() + Send + Sync + use<> {
        let (sessions, shelf) = (self.sessions.clone(), self.shelf.clone());
        let endpoint = self.upgrades.endpoint.clone();
        move || {
            shelf.gauge();
            gauge!("relay_session_actors").set(count(sessions.alive()));
            gauge!("relay_signal_sockets_before_hello").set(count(endpoint.door.knocking()));
            gauge!("relay_signal_welcomed_sockets").set(endpoint.door.welcomed());
            gauge!("relay_signal_leaving_sockets").set(count(endpoint.door.leaving()));
        }
    }

    /// What the HTTP side works with.
    pub(super) fn services(
        &self,
        config: &Config,
        ports: &Ports,
        authority: &Arc<Authority>,
        instances: &Registry,
    ) -> Signaling {
        Signaling {
            store: self.shelf.store(),
            durability: self.shelf.durability(),
            sessions: self.sessions.clone(),
            permits: self.permits(config, ports, instances),
            turn_for: config.signaling.turn_for,
            authority: authority.clone(),
            entropy: ports.entropy.clone(),
            public_url: config.listen.public_url.clone(),
        }
    }

    fn permits(&self, config: &Config, ports: &Ports, instances: &Registry) -> Arc<dyn Permits> {
        let own = Arc::new(instances.clone());
        let Some(limits) = self.leases.clone() else {
            return own;
        };
        Arc::new(SharedPermits {
            own,
            limits,
            per_minute: config.signaling.sessions_per_minute,
            clock: ports.clock.clone(),
        })
    }

    /// Takes over what a reload may change: the TURN server and its secret.
    pub(super) fn reload(&self, wanted: &Config) {
        self.turn.reload(wanted.signaling.turn.clone().ok());
    }

    /// Asks every connection to leave, spread over the time that the stop has for it.
    pub(super) fn leave(&self, grace: Duration) {
        self.sessions.leave(grace.saturating_add(LEAVING));
    }

    /// Stops what is left. The listener has closed.
    pub(super) async fn close(mut self) {
        self.sessions.close().await;
        self.upkeep.shutdown().await;
    }
}

fn upkeep(shelf: Shelf, endpoint: Arc<Endpoint>, turn: Arc<Turn>) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(steadily("sweeping sessions", move || {
        sweep(shelf.clone(), endpoint.clone(), turn.clone())
    }));
    tasks
}

async fn sweep(shelf: Shelf, endpoint: Arc<Endpoint>, turn: Arc<Turn>) {
    let mut turns = tokio::time::interval(SWEEP);
    loop {
        turns.tick().await;
        shelf.sweep();
        endpoint.door.clean(endpoint.clock.now());
        turn.clean(endpoint.clock.now());
    }
}
