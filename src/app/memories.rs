//! What the instances' actors share: limits and outcomes, in this process's memory or together with other replicas.

use std::sync::Arc;

use sovereign_relay_actors::{idempotency::OutcomeMemory, now::Now, ports::SharedLimits};
use tracing::warn;

use super::{Ports, records::Place};
use crate::{
    config::Config,
    limit::{EmbeddedLimits, EmbeddedOutcomes, LeasedLimits},
    store::{
        embedded::EmbeddedStore,
        redis::{limits::RedisBudgets, outcomes::RedisOutcomes},
    },
};

/// Limits and outcomes.
#[derive(Clone)]
pub(super) struct Memories {
    own_limits: Arc<EmbeddedLimits>,
    own_outcomes: Arc<EmbeddedOutcomes>,
    outcomes: Arc<dyn OutcomeMemory>,
    shared: Option<SharedMemories>,
}

/// What there is more where replicas share.
#[derive(Clone)]
struct SharedMemories {
    limits: LeasedLimits,
    budgets: RedisBudgets,
}

impl Memories {
    /// With what was answered before this start, where this node keeps it.
    pub(super) async fn open(config: &Config, ports: &Ports, place: &Place) -> Self {
        let own_limits = Arc::new(EmbeddedLimits::new());
        match place {
            Place::Here(store) => {
                let own_outcomes = remembered(store, ports.clock.now()).await;
                Self {
                    own_limits,
                    outcomes: own_outcomes.clone(),
                    own_outcomes,
                    shared: None,
                }
            }
            Place::Redis(link) => {
                let own_outcomes = Arc::new(EmbeddedOutcomes::new());
                let outcomes = RedisOutcomes::open(link, own_outcomes.clone(), config.timeouts.push_deadline);
                let budgets = link.budgets();
                let source = Arc::new(budgets.clone());
                let limits = LeasedLimits::new(own_limits.clone(), source, ports.clock.clone());
                Self {
                    own_limits,
                    own_outcomes,
                    outcomes: Arc::new(outcomes),
                    shared: Some(SharedMemories { limits, budgets }),
                }
            }
        }
    }

    pub(super) fn limits(&self) -> Arc<dyn SharedLimits> {
        match &self.shared {
            Some(shared) => Arc::new(shared.limits.clone()),
            None => self.own_limits.clone(),
        }
    }

    pub(super) fn outcomes(&self) -> Arc<dyn OutcomeMemory> {
        self.outcomes.clone()
    }

    /// Limits that replicas share, where there are any.
    pub(super) fn leases(&self) -> Option<LeasedLimits> {
        self.shared.as_ref().map(|shared| shared.limits.clone())
    }

    /// Where the number of replicas goes.
    pub(super) fn budgets(&self) -> Option<RedisBudgets> {
        self.shared.as_ref().map(|shared| shared.budgets.clone())
    }

    /// Forgets what is over. Called every few seconds: tokens come and go quickly.
    pub(super) fn clean(&self, now: Now) {
        self.own_limits.clean(now);
        if let Some(shared) = &self.shared {
            shared.limits.clean(now);
        }
    }

    /// Keeps the outcomes for the next start, where nobody else does.
    pub(super) async fn keep(&self, place: &Place, now: Now) {
        let Place::Here(store) = place else {
            return;
        };
        if let Err(error) = store.keep_outcomes(self.own_outcomes.all(now)).await {
            warn!(%error, "the next start will not know the idempotency keys used so far");
        }
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
