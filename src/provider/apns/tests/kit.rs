//! A provider wired to a simulator of its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use hyper_util::client::proxy::matcher::Matcher;
use sovereign_relay_actors::{
    now::Now,
    ports::{Clock, Delivery, Failure, Outcome, PushProvider as _},
    push::TurnKey,
};
use sovereign_relay_protocol::{
    platform::{Environment, Platform, Priority},
    redacted::Redacted,
    token::TargetToken,
};
use sovereign_relay_simulator::{ApnsOptions, ApnsSimulator, SimulatorOptions, Simulators};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::{
    clock::SystemClock,
    entropy::SystemEntropy,
    provider::{
        apns::{ApnsConfig, ApnsKey, ApnsProvider, Topics, Tuning},
        transport::{Endpoint, Transport},
    },
};

/// How long a test waits for what should happen at once.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// The system's clock, whose wall time a test moves.
pub(super) struct MovedClock {
    system: SystemClock,
    moved_ms: AtomicU64,
}

impl MovedClock {
    pub(super) fn advance(&self, duration: Duration) {
        self.moved_ms
            .fetch_add(u64::try_from(duration.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Now {
        let now = self.system.now();
        Now {
            unix: now.unix.plus_millis(self.moved_ms.load(Ordering::SeqCst)),
            ..now
        }
    }
}

pub(super) struct Kit {
    pub(super) simulators: Simulators,
    pub(super) provider: ApnsProvider,
    pub(super) clock: Arc<MovedClock>,
    pub(super) config: ApnsConfig,
    next_id: AtomicU64,
}

impl Kit {
    pub(super) async fn start() -> Self {
        Self::with(SimulatorOptions::default(), quick()).await
    }

    /// An APNs of this kind.
    pub(super) async fn with_apns(apns: ApnsOptions) -> Self {
        let options = SimulatorOptions {
            apns,
            ..SimulatorOptions::default()
        };
        Self::with(options, quick()).await
    }

    pub(super) async fn with(options: SimulatorOptions, tuning: Tuning) -> Self {
        let simulators = Simulators::start(options).await.unwrap();
        let config = config(&simulators.apns, tuning);
        let clock = Arc::new(MovedClock {
            system: SystemClock::new(),
            moved_ms: AtomicU64::new(0),
        });
        let provider = provider(&config, &simulators, clock.clone());
        Self {
            simulators,
            provider,
            clock,
            config,
            next_id: AtomicU64::new(1),
        }
    }

    pub(super) fn apns(&self) -> &ApnsSimulator {
        &self.simulators.apns
    }

    /// A further client of the same simulator: another replica.
    pub(super) fn replica(&self) -> ApnsProvider {
        provider(&self.config, &self.simulators, self.clock.clone())
    }

    pub(super) fn delivery(&self, deadline: Duration) -> Delivery {
        Delivery {
            sender: TurnKey::Group(1),
            platform: Platform::Ios,
            environment: Environment::Production,
            token: TargetToken::Apple(Redacted::new(self.apns().new_token())),
            payload: Redacted::new("sealed"),
            priority: Priority::High,
            ttl_seconds: 3600,
            collapse: None,
            message_id: Uuid::from_u128(self.next_id.fetch_add(1, Ordering::Relaxed).into()),
            deadline: self.clock.now().mono + deadline,
        }
    }

    pub(super) async fn push(&self) -> Outcome {
        self.push_within(SOON).await
    }

    pub(super) async fn push_within(&self, deadline: Duration) -> Outcome {
        self.provider.deliver(self.delivery(deadline)).await
    }

    /// So many at the same time.
    pub(super) async fn push_many(&self, count: usize) -> Vec<Outcome> {
        join_all((0..count).map(|_| self.push())).await
    }

    pub(super) async fn stop(self) {
        self.provider.close().await;
        assert_eq!(self.provider.inner.base.tasks.lock().unwrap().len(), 0);
        self.simulators.stop().await;
    }
}

/// Times short enough for a test and long enough for a busy machine.
pub(super) fn quick() -> Tuning {
    Tuning {
        backoff_first: Duration::from_millis(10),
        backoff_longest: Duration::from_millis(50),
        ..Tuning::default()
    }
}

pub(super) fn config(simulator: &ApnsSimulator, tuning: Tuning) -> ApnsConfig {
    let options = simulator.options();
    ApnsConfig {
        endpoint: Endpoint {
            host: "localhost".to_owned(),
            port: simulator.port(),
            tls: true,
        },
        key: Some(key(simulator.key(), &options.team_id)),
        topics: Topics {
            ios: Some(options.bundle_id.clone()),
            macos: Some(options.bundle_id_macos.clone()),
        },
        tuning,
        ..ApnsConfig::new(Environment::Production)
    }
}

pub(super) fn key(key: sovereign_relay_simulator::ApnsKey, team: &str) -> ApnsKey {
    ApnsKey {
        pem: key.pem.into(),
        key_id: key.key_id,
        team_id: team.to_owned(),
    }
}

fn provider(config: &ApnsConfig, simulators: &Simulators, clock: Arc<MovedClock>) -> ApnsProvider {
    let transport = Transport::with_proxies(Some(&simulators.ca_pem), Matcher::builder().build()).unwrap();
    ApnsProvider::new(
        config.clone(),
        transport,
        clock,
        Arc::new(SystemEntropy),
        Handle::current(),
    )
    .unwrap()
}

/// Waits for what no event announces, by letting the other tasks run.
pub(super) async fn until(condition: impl Fn() -> bool) {
    let met = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, met).await.unwrap();
}

pub(super) fn is_sent(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Sent { .. })
}

pub(super) fn failure(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}
