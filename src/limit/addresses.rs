//! Enrollments per client address: what `http` asks before it makes, rotates or withdraws a key.
//!
//! An IPv4 address or IPv6 /64 has a budget a minute and one a day; an IPv6 /48, which one customer often has as
//! a whole, ten times both. Addresses come in as keyed hashes and are forgotten when their budgets are full
//! again, after a day at the latest.
//!
//! Each replica counts for itself: asked of Redis, a flood of enrollments would be a flood of calls, and one that is
//! let through more often gains little, since the instances of an address share what they may push (`leases.rs`).

use std::time::Duration;

use sovereign_relay_actors::{
    limiter::{Limiter, Rate, Room, WhenFull},
    now::Now,
};
use sovereign_relay_protocol::limits::{ENROLLMENT_SITE_FACTOR, ENROLLMENTS_PER_DAY, ENROLLMENTS_PER_MINUTE};

use crate::auth::derived::AddressHash;

/// Addresses remembered per budget, about 50 bytes each. Only a flood from many networks fills it.
const ADDRESSES: usize = 200_000;
/// While it is full, addresses not seen lately wait this long: nothing but this budget stands before the store.
const ROOM: Room = Room {
    keys: ADDRESSES,
    when_full: WhenFull::Refuse(Duration::from_secs(60)),
};

/// Enrollment budgets of addresses.
pub struct AddressLimits {
    host: Budget,
    site: Budget,
}

impl AddressLimits {
    /// All budgets full.
    pub fn new() -> Self {
        Self {
            host: Budget::new(1),
            site: Budget::new(ENROLLMENT_SITE_FACTOR),
        }
    }

    /// Takes one enrollment, or nothing; `Err` is how long until it would pass.
    pub fn enrollment(&self, address: AddressHash, now: Now) -> Result<(), Duration> {
        let site_wait = address.site.and_then(|site| self.site.check(site, now).err());
        let host_wait = self.host.check(address.host, now).err();
        if let Some(wait) = host_wait.max(site_wait) {
            return Err(wait);
        }
        self.host.take(address.host, now)?;
        address.site.map_or(Ok(()), |site| {
            self.site
                .take(site, now)
                .inspect_err(|_| self.host.give_back(address.host))
        })
    }

    /// Forgets addresses whose budgets are full again. Call it once a minute.
    pub fn clean(&self, now: Now) {
        self.host.clean(now);
        self.site.clean(now);
    }

    /// Addresses remembered, for metrics.
    pub fn addresses(&self) -> usize {
        self.host.day.keys()
    }
}

impl Default for AddressLimits {
    fn default() -> Self {
        Self::new()
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

    fn clean(&self, now: Now) {
        self.minute.clean(now.mono);
        self.day.clean(now.mono);
    }
}

#[cfg(test)]
mod tests;
