//! The outcomes remembered for idempotency keys on a single node, in memory.
//!
//! An orderly stop hands them to the store and the next start takes them back ([`crate::app`]), so that a planned restart
//! doubles no push. A process that is killed forgets them: a durable write for each keyed push would cost more than
//! what is left, a provider call whose outcome nobody ever learned, which no memory can help.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use moka::{policy::EvictionPolicy, sync::Cache};
use sovereign_relay_actors::{
    idempotency::{OutcomeMemory, REMEMBERED, Remembered},
    now::Now,
};
use sovereign_relay_protocol::time::UnixMillis;

use crate::store::embedded::KeptOutcome;

/// Outcomes remembered, about 250 bytes each: ten minutes of 160 keyed pushes a second, half as many while a second
/// enrollment secret is configured. Beyond, those go that were not asked for the longest, and a repeat of theirs is a new
/// push.
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

    /// What is remembered now, for the next start.
    pub fn all(&self, now: Now) -> Vec<KeptOutcome> {
        self.cache
            .iter()
            .filter(|(_, kept)| now.mono < kept.until)
            .map(|(key, kept)| KeptOutcome {
                key: *key,
                until: now.plus(now.until(kept.until)).unix,
                outcome: kept.outcome.clone(),
            })
            .collect()
    }

    /// Takes back what was remembered before this start. A clock that was set back prolongs nothing.
    pub fn restore(&self, outcomes: Vec<KeptOutcome>, now: Now) {
        for KeptOutcome { key, until, outcome } in outcomes {
            let left = time_until(until, now).min(REMEMBERED);
            if !left.is_zero() {
                let until = now.mono.saturating_add(left);
                self.cache.insert(key, Arc::new(Kept { until, outcome }));
            }
        }
    }

    /// Outcomes remembered, for metrics.
    pub fn entries(&self) -> u64 {
        self.cache.run_pending_tasks();
        self.cache.entry_count()
    }
}

fn time_until(moment: UnixMillis, now: Now) -> Duration {
    Duration::from_millis(moment.0.saturating_sub(now.unix.0))
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
