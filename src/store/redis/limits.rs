//! The budgets that replicas share, one key each: what [`crate::limit::leases`] leases its tokens from.
//!
//! ```text
//! relay:{limit:<account>:<how many a minute>}   when the budget is full again; ends then
//! ```
//!
//! Another rate is another budget, which starts full, as it does on a single node. The accounts spread over a cluster.
//! The clock is the server's: replicas need not agree on the time.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use redis::Script;
use sovereign_relay_actors::ports::StoreError;

use super::connection::Redis;
use crate::limit::{
    lease::{Ask, Grant},
    leases::{Account, TokenSource},
};

static LEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("limits/lease.lua")));

/// Budgets in Redis. Clones are the same.
#[derive(Clone)]
pub struct RedisBudgets {
    redis: Redis,
    replicas: Arc<AtomicU32>,
}

impl RedisBudgets {
    /// As far as is known, this replica is the only one.
    pub(crate) fn new(redis: Redis) -> Self {
        Self {
            redis,
            replicas: Arc::new(AtomicU32::new(1)),
        }
    }

    /// So many replicas are alive.
    pub fn set_replicas(&self, replicas: u32) {
        self.replicas.store(replicas.max(1), Ordering::Relaxed);
    }
}

impl TokenSource for RedisBudgets {
    fn lease(&self, account: Account, ask: Ask) -> BoxFuture<'static, Result<Grant, StoreError>> {
        let redis = self.redis.clone();
        Box::pin(async move {
            let mut call = LEASE.prepare_invoke();
            call.key(key(account, ask.per_minute));
            call.arg(ask.per_minute).arg(ask.wanted).arg(ask.charge);
            let (granted, left, wait_micros): (u32, u32, u64) = redis.run(&call).await?;
            Ok(Grant {
                granted,
                left,
                wait: Duration::from_micros(wait_micros),
            })
        })
    }

    fn replicas(&self) -> u32 {
        self.replicas.load(Ordering::Relaxed)
    }
}

fn key(account: Account, per_minute: u32) -> String {
    match account {
        Account::Instance(instance) => format!("relay:{{limit:{instance}:{per_minute}}}"),
        Account::Group(group) => format!("relay:{{limit:group-{group}:{per_minute}}}"),
        Account::Sessions(instance) => format!("relay:{{limit:sessions-{instance}:{per_minute}}}"),
        Account::Turn(instance) => format!("relay:{{limit:turn-{instance}:{per_minute}}}"),
    }
}

#[cfg(test)]
mod tests;
