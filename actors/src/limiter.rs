//! One rate limit over many keys: governor's arithmetic (GCRA) on the time that callers pass in.
//!
//! Used by the instances' actors for what is theirs alone and by the root crate's shared limits. What is added to
//! governor: time is an argument, so that a limit and the wait it names come from one clock; a take can be
//! given back, so that a push refused by one limit costs nothing in another; the number of keys is bounded.
//!
//! Invariant: a refusal's wait is exact. Without other traffic, a take at `now + wait` passes, one before does not.

use std::{
    hash::Hash,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, Entry};
use governor::{
    Quota, RateLimiter, clock::Clock, middleware::NoOpMiddleware, nanos::Nanos, state::StateStore,
};

/// The one key of a limit that has no keys.
pub const ONLY: () = ();
/// Parts of a map that one actor alone uses; the fewest that the map allows.
const OWN_SHARDS: usize = 2;

/// So many an interval, all of which may come at once after a quiet interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    count: NonZeroU32,
    interval: Duration,
}

impl Rate {
    /// `count` a minute; zero is taken as one, since a limit that nothing passes has no moment to name.
    pub const fn per_minute(count: u32) -> Self {
        Self::over(count, Duration::from_secs(60))
    }

    /// `count` a day.
    pub const fn per_day(count: u32) -> Self {
        Self::over(count, Duration::from_secs(24 * 3600))
    }

    const fn over(count: u32, interval: Duration) -> Self {
        let count = match NonZeroU32::new(count) {
            Some(count) => count,
            None => NonZeroU32::MIN,
        };
        Self { count, interval }
    }

    fn quota(self) -> Quota {
        // The period is never zero, the only thing that governor refuses.
        let every = Quota::with_period(self.interval / self.count.get());
        every
            .unwrap_or_else(|| Quota::per_minute(self.count))
            .allow_burst(self.count)
    }

    fn emission(self) -> u64 {
        nanos(self.quota().replenish_interval()).max(1)
    }
}

/// What becomes of a key that has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// It passes: other limits still hold.
    Pass,
    /// It waits this long: nothing else stands behind this limit.
    Refuse(Duration),
}

/// How many keys a limiter remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Most keys at a time.
    pub keys: usize,
    /// The answer beyond.
    pub when_full: WhenFull,
}

/// One rate limit over many keys.
pub struct Limiter<K: Hash + Eq + Clone> {
    limiter: RateLimiter<K, Slots<K>, Hand, NoOpMiddleware<Nanos>>,
    slots: Slots<K>,
    hand: Hand,
    emission: u64,
    /// How far the arrival time of an empty budget is ahead of the moment at which the next take passes.
    tolerance: u64,
    room: Room,
}

impl Limiter<()> {
    /// A limit without keys.
    pub fn single(rate: Rate) -> Self {
        Self::with(
            rate,
            Room {
                keys: 1,
                when_full: WhenFull::Pass,
            },
            DashMap::with_shard_amount(OWN_SHARDS),
        )
    }
}

impl<K: Hash + Eq + Clone> Limiter<K> {
    /// A limit that one owner uses.
    pub fn own(rate: Rate, room: Room) -> Self {
        Self::with(rate, room, DashMap::with_shard_amount(OWN_SHARDS))
    }

    /// A limit that many threads use.
    pub fn shared(rate: Rate, room: Room) -> Self {
        Self::with(rate, room, DashMap::new())
    }

    fn with(rate: Rate, room: Room, map: DashMap<K, u64>) -> Self {
        let slots = Slots {
            map: Arc::new(map),
            used: Arc::new(AtomicUsize::new(0)),
        };
        let hand = Hand(Arc::new(AtomicU64::new(0)));
        let limiter = RateLimiter::new(rate.quota(), slots.clone(), hand.clone());
        Self {
            limiter,
            slots,
            hand,
            emission: rate.emission(),
            tolerance: rate.emission().saturating_mul(u64::from(rate.count.get() - 1)),
            room,
        }
    }

    /// Takes one; `Err` is how long until it would pass.
    pub fn take(&self, key: &K, now: Duration) -> Result<(), Duration> {
        self.hand.set(now);
        if !self.has_room() && !self.slots.map.contains_key(key) {
            return self.without_room();
        }
        self.limiter
            .check_key(key)
            .map_err(|not_until| not_until.wait_time_from(Nanos::new(nanos(now))))
    }

    /// Gives back what a [`Limiter::take`] took.
    pub fn give_back(&self, key: &K) {
        if let Some(mut arrival) = self.slots.map.get_mut(key) {
            *arrival = arrival.saturating_sub(self.emission);
        }
    }

    /// Empties a key's budget, so that the next take passes after `wait`: somebody who counts more than this limiter
    /// does has said so. A key that has no room is not held.
    pub fn hold(&self, key: &K, wait: Duration, now: Duration) {
        let held = nanos(now.saturating_add(wait)).saturating_add(self.tolerance);
        let has_room = self.has_room();
        match self.slots.map.entry(key.clone()) {
            Entry::Occupied(mut arrival) => *arrival.get_mut() = held.max(*arrival.get()),
            Entry::Vacant(slot) if has_room => {
                slot.insert(held);
                self.slots.used.fetch_add(1, Ordering::Relaxed);
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Whether a take would pass. Nothing is taken, not even for a moment: who looks must not stand in the way of who
    /// takes.
    pub fn check(&self, key: &K, now: Duration) -> Result<(), Duration> {
        self.hand.set(now);
        let Some(arrival) = self.slots.map.get(key).map(|arrival| *arrival) else {
            return if self.has_room() {
                Ok(())
            } else {
                self.without_room()
            };
        };
        let passes_at = arrival.saturating_sub(self.tolerance);
        if passes_at <= self.hand.now().as_u64() {
            return Ok(());
        }
        Err(Duration::from_nanos(passes_at.saturating_sub(nanos(now))))
    }

    /// Forgets the keys whose budget is full again, which changes no answer. Owners call it on a timer.
    pub fn clean(&self, now: Duration) {
        let now = nanos(now);
        // Governor's own cleaning keeps a key one emission longer, which for a day's budget is minutes.
        self.slots.map.retain(|_, arrival| *arrival > now);
        self.slots.map.shrink_to_fit();
        self.slots.used.store(self.slots.map.len(), Ordering::Relaxed);
    }

    /// Keys remembered.
    pub fn keys(&self) -> usize {
        self.slots.map.len()
    }

    fn has_room(&self) -> bool {
        self.slots.used.load(Ordering::Relaxed) < self.room.keys
    }

    fn without_room(&self) -> Result<(), Duration> {
        match self.room.when_full {
            WhenFull::Pass => Ok(()),
            WhenFull::Refuse(wait) => Err(wait),
        }
    }
}

/// The time last passed in. It never goes back, whichever thread comes first.
#[derive(Clone)]
struct Hand(Arc<AtomicU64>);

impl Hand {
    fn set(&self, now: Duration) {
        self.0.fetch_max(nanos(now), Ordering::Relaxed);
    }
}

impl Clock for Hand {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::Relaxed))
    }
}

/// Theoretical arrival times by key. Governor has such a store too, but gives no way to put back what was taken.
#[derive(Clone)]
struct Slots<K: Hash + Eq> {
    map: Arc<DashMap<K, u64>>,
    /// About how many keys there are: counting the map itself would lock all its parts.
    used: Arc<AtomicUsize>,
}

impl<K: Hash + Eq + Clone> StateStore for Slots<K> {
    type Key = K;

    fn measure_and_replace<T, F, E>(&self, key: &K, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        match self.map.entry(key.clone()) {
            Entry::Occupied(mut slot) => {
                let (verdict, arrival) = measure(Some(Nanos::new(*slot.get())))?;
                slot.insert(arrival.as_u64());
                Ok(verdict)
            }
            Entry::Vacant(slot) => {
                let (verdict, arrival) = measure(None)?;
                slot.insert(arrival.as_u64());
                self.used.fetch_add(1, Ordering::Relaxed);
                Ok(verdict)
            }
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
