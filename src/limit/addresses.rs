//! Enrollments per client address: what `http` asks before it makes, rotates or withdraws a key.
//!
//! An IPv4 address or IPv6 /64 has a budget a minute and one a day; an IPv6 /48, which one customer often has as
//! a whole, ten times both. Addresses come in as keyed hashes and are forgotten when their budgets are full
//! again, after a day at the latest.
//!
//! Replicas share the budgets. Each also keeps its own, of what it has let through itself:
//!
//! ```text
//! own budget spent -> refused, nobody is asked
//!   | not spent
//!   v
//! shared: taken -> passes, taken of the own too     refused -> the own one is emptied until then
//!   | no answer in time
//!   v
//! the own budget decides
//! ```
//!
//! Invariants: while the shared budgets answer, all replicas together let through no more than one alone. Somebody who is
//! refused costs them one call for each wait; and since a replica asks only for addresses that it has room for, what it
//! makes them remember is bounded too.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use sovereign_relay_actors::{
    limiter::{Limiter, Rate, Room, WhenFull},
    now::Now,
    ports::StoreError,
};
use sovereign_relay_protocol::limits::{ENROLLMENT_SITE_FACTOR, ENROLLMENTS_PER_DAY, ENROLLMENTS_PER_MINUTE};
use tokio::time::timeout;

use crate::auth::derived::AddressHash;

/// Addresses remembered per budget, about 50 bytes each. Only a flood from many networks fills it.
const ADDRESSES: usize = 200_000;
/// While it is full, addresses not seen lately wait this long: nothing but this budget stands before the store.
const ROOM: Room = Room {
    keys: ADDRESSES,
    when_full: WhenFull::Refuse(Duration::from_secs(60)),
};
/// Longest that an enrollment waits for the shared budgets.
const PATIENCE: Duration = Duration::from_millis(250);

/// Budgets that replicas share.
pub trait SharedAddresses: Send + Sync + 'static {
    /// Takes one enrollment of all budgets that the address has, or nothing.
    fn enrollment(&self, address: AddressHash) -> BoxFuture<'static, Result<Waits, StoreError>>;
}

/// How long until an enrollment would pass; zero twice: it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waits {
    /// By the budgets of the address.
    pub host: Duration,
    /// By those of its site.
    pub site: Duration,
}

/// Enrollment budgets of addresses.
pub struct AddressLimits {
    own: Own,
    shared: Option<Arc<dyn SharedAddresses>>,
}

impl AddressLimits {
    /// Of a single node; all budgets full.
    pub fn new() -> Self {
        Self {
            own: Own::new(),
            shared: None,
        }
    }

    /// Of a replica.
    pub fn shared(shared: Arc<dyn SharedAddresses>) -> Self {
        Self {
            own: Own::new(),
            shared: Some(shared),
        }
    }

    /// Takes one enrollment, or nothing; `Err` is how long until it would pass.
    pub async fn enrollment(&self, address: AddressHash, now: Now) -> Result<(), Duration> {
        let Some(shared) = &self.shared else {
            return self.own.take(address, now);
        };
        self.own.check(address, now)?;
        match timeout(PATIENCE, shared.enrollment(address)).await {
            Ok(Ok(waits)) => self.follow(address, waits, now),
            Ok(Err(_)) | Err(_) => {
                metrics::counter!("relay_limit_leases_failed_total").increment(1);
                self.own.take(address, now)
            }
        }
    }

    /// Forgets addresses whose budgets are full again. Call it once a minute.
    pub fn clean(&self, now: Now) {
        self.own.host.clean(now);
        self.own.site.clean(now);
    }

    /// Addresses remembered, for metrics.
    pub fn addresses(&self) -> usize {
        self.own.host.day.keys()
    }

    fn follow(&self, address: AddressHash, waits: Waits, now: Now) -> Result<(), Duration> {
        let wait = waits.host.max(waits.site);
        if wait.is_zero() {
            // What came meanwhile may have spent it: the word of all counts.
            let _ = self.own.take(address, now);
            return Ok(());
        }
        self.own.hold(address, waits, now);
        Err(wait)
    }
}

impl Default for AddressLimits {
    fn default() -> Self {
        Self::new()
    }
}

/// What this process has let through.
struct Own {
    host: Budget,
    site: Budget,
}

impl Own {
    fn new() -> Self {
        Self {
            host: Budget::new(1),
            site: Budget::new(ENROLLMENT_SITE_FACTOR),
        }
    }

    fn check(&self, address: AddressHash, now: Now) -> Result<(), Duration> {
        let site_wait = address.site.and_then(|site| self.site.check(site, now).err());
        let host_wait = self.host.check(address.host, now).err();
        host_wait.max(site_wait).map_or(Ok(()), Err)
    }

    fn take(&self, address: AddressHash, now: Now) -> Result<(), Duration> {
        self.check(address, now)?;
        self.host.take(address.host, now)?;
        address.site.map_or(Ok(()), |site| {
            self.site
                .take(site, now)
                .inspect_err(|_| self.host.give_back(address.host))
        })
    }

    fn hold(&self, address: AddressHash, waits: Waits, now: Now) {
        self.host.hold(address.host, waits.host, now);
        if let Some(site) = address.site {
            self.site.hold(site, waits.site, now);
        }
    }
}

/// A minute's and a day's budget of one kind of address.
struct Budget {
    minute: Limiter<u64>,
    day: Limiter<u64>,
}

impl Budget {
    fn new(factor: u32) -> Self {
        Self {
            minute: Limiter::shared(Rate::per_minute(ENROLLMENTS_PER_MINUTE * factor), ROOM),
            day: Limiter::shared(Rate::per_day(ENROLLMENTS_PER_DAY * factor), ROOM),
        }
    }

    fn check(&self, key: u64, now: Now) -> Result<(), Duration> {
        let waits = self
            .minute
            .check(&key, now.mono)
            .err()
            .max(self.day.check(&key, now.mono).err());
        waits.map_or(Ok(()), Err)
    }

    fn take(&self, key: u64, now: Now) -> Result<(), Duration> {
        self.minute.take(&key, now.mono)?;
        self.day
            .take(&key, now.mono)
            .inspect_err(|_| self.minute.give_back(&key))
    }

    fn give_back(&self, key: u64) {
        self.minute.give_back(&key);
        self.day.give_back(&key);
    }

    /// The minute's is enough: whichever is spent, both have to pass.
    fn hold(&self, key: u64, wait: Duration, now: Now) {
        if !wait.is_zero() {
            self.minute.hold(&key, wait, now.mono);
        }
    }

    fn clean(&self, now: Now) {
        self.minute.clean(now.mono);
        self.day.clean(now.mono);
    }
}

#[cfg(test)]
mod tests;
