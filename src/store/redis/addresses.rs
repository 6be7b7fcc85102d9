//! The enrollment budgets of client addresses that replicas share: what [`crate::limit::addresses`] asks.
//!
//! ```text
//! relay:{enroll:<site, or host without one>}:<host>:minute   when the budget is full again; ends then
//! relay:{enroll:...}:<host>:day                              the same
//! relay:{enroll:...}:site:minute, ...:site:day               where there is a site
//! ```
//!
//! Only keyed hashes of addresses are there. One script takes of all of them or of none, so an address shares the hash tag
//! of its site. The clock is the server's.

use std::{sync::LazyLock, time::Duration};

use futures_util::future::BoxFuture;
use redis::{Script, ScriptInvocation};
use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::limits::{ENROLLMENT_SITE_FACTOR, ENROLLMENTS_PER_DAY, ENROLLMENTS_PER_MINUTE};

use super::connection::Redis;
use crate::{
    auth::derived::AddressHash,
    limit::addresses::{SharedAddresses, Waits},
};

static TAKE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("addresses/take.lua")));

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Budgets in Redis.
#[derive(Clone)]
pub struct RedisAddresses {
    redis: Redis,
}

impl RedisAddresses {
    pub(crate) fn new(redis: Redis) -> Self {
        Self { redis }
    }
}

impl SharedAddresses for RedisAddresses {
    fn enrollment(&self, address: AddressHash) -> BoxFuture<'static, Result<Waits, StoreError>> {
        let redis = self.redis.clone();
        Box::pin(async move {
            let (host, site): (u64, u64) = redis.run(&invocation(address)).await?;
            Ok(Waits {
                host: Duration::from_micros(host),
                site: Duration::from_micros(site),
            })
        })
    }
}

fn invocation(address: AddressHash) -> ScriptInvocation<'static> {
    let mut call = TAKE.prepare_invoke();
    let tag = address.site.unwrap_or(address.host);
    let mut budgets = |whose: &str, factor: u32| {
        for (name, count, interval) in [
            ("minute", ENROLLMENTS_PER_MINUTE, MINUTE),
            ("day", ENROLLMENTS_PER_DAY, DAY),
        ] {
            call.key(format!("relay:{{enroll:{tag:016x}}}:{whose}:{name}"));
            call.arg(count * factor).arg(interval.as_secs());
        }
    };
    budgets(&format!("{:016x}", address.host), 1);
    if address.site.is_some() {
        budgets("site", ENROLLMENT_SITE_FACTOR);
    }
    call
}

#[cfg(test)]
mod tests;
