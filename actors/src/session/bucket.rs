//! How often one slot may speak: governor's arithmetic (GCRA) on the time that the caller passes in.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{InMemoryState, NotKeyed},
};

/// One budget of messages.
pub(crate) struct Bucket {
    limiter: RateLimiter<NotKeyed, InMemoryState, Hand, NoOpMiddleware<Nanos>>,
    hand: Hand,
}

#[derive(Clone)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(self.0.load(Ordering::Relaxed))
    }
}

impl Bucket {
    /// `per_second`, of which `burst` may come at once. Zero is taken as one.
    pub(crate) fn new(per_second: u32, burst: u32) -> Self {
        let at_least_one = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let quota = Quota::per_second(at_least_one(per_second)).allow_burst(at_least_one(burst));
        let hand = Hand(Arc::new(AtomicU64::new(0)));
        Self {
            limiter: RateLimiter::direct_with_clock(quota, hand.clone()),
            hand,
        }
    }

    /// Takes one; `Err` is how long until it would pass.
    pub(crate) fn take(&self, now: Duration) -> Result<(), Duration> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.hand.0.fetch_max(now, Ordering::Relaxed);
        self.limiter
            .check()
            .map_err(|not_until| not_until.wait_time_from(Nanos::new(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_come_at_once_then_twenty_a_second_and_the_wait_is_exact() {
        let bucket = Bucket::new(20, 60);
        let began = Duration::from_secs(5);
        for _ in 0..60 {
            bucket.take(began).unwrap();
        }
        let wait = bucket.take(began).unwrap_err();
        assert_eq!(wait, Duration::from_millis(50));
        assert!(bucket.take(began + wait - Duration::from_nanos(1)).is_err());
        assert!(bucket.take(began + wait).is_ok());
        let later = began + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| bucket.take(later).is_ok()).count(), 19);
    }
}
