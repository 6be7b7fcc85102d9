//! The outcomes remembered for idempotency keys on a single node, in memory.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use moka::{policy::EvictionPolicy, sync::Cache};
use sovereign_relay_actors::{
    idempotency::{OutcomeMemory, REMEMBERED, Remembered},
    now::Now,
};

/// Outcomes remembered, about 250 bytes each: ten minutes of 160 keyed pushes a second. Beyond, those go that were
/// not asked for the longest, and a repeat of theirs is a new push.
const OUTCOMES: u64 = 100_000;

/// Outcomes in memory.
pub struct EmbeddedOutcomes {
    cache: Cache<u128, Arc<Kept>>,
}

struct Kept {
    until: Duration,
    outcome: Remembered,
}

impl EmbeddedOutcomes {
    /// Nothing remembered.
    pub fn new() -> Self {
        // The cache evicts by its own clock; whether an outcome still holds is decided by ours. Its default policy would
        // turn a fresh outcome away while it is full, and that is the one whose caller is about to repeat it.
        Self {
            cache: Cache::builder()
                .max_capacity(OUTCOMES)
                .eviction_policy(EvictionPolicy::lru())
                .time_to_live(REMEMBERED)
                .build(),
        }
    }

    /// Outcomes remembered, for metrics.
    pub fn entries(&self) -> u64 {
        self.cache.run_pending_tasks();
        self.cache.entry_count()
    }
}

impl Default for EmbeddedOutcomes {
    fn default() -> Self {
        Self::new()
    }
}

impl OutcomeMemory for EmbeddedOutcomes {
    fn get(&self, key: u128, now: Now) -> BoxFuture<'static, Option<Remembered>> {
        let kept = self.cache.get(&key).filter(|kept| now.mono < kept.until);
        std::future::ready(kept.map(|kept| kept.outcome.clone())).boxed()
    }

    fn put(&self, key: u128, outcome: Remembered, now: Now) -> BoxFuture<'static, ()> {
        let fresh = Arc::new(Kept {
            until: now.mono.saturating_add(REMEMBERED),
            outcome,
        });
        self.cache
            .entry(key)
            .or_insert_with_if(|| fresh, |kept| kept.until <= now.mono);
        std::future::ready(()).boxed()
    }
}

#[cfg(test)]
mod tests;
