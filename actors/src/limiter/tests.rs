use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const ROOM: Room = Room {
    keys: 1000,
    when_full: WhenFull::Pass,
};
const NANO: Duration = Duration::from_nanos(1);

/// The reference: a bucket of `count` that refills one each `emission`, counted in nanoseconds.
struct Bucket {
    count: u64,
    emission: u64,
    /// Refill time missing to a full bucket.
    debt: u64,
    at: u64,
}

impl Bucket {
    fn new(count: u32, interval: Duration) -> Self {
        Self {
            count: count.into(),
            emission: nanos(interval / count),
            debt: 0,
            at: 0,
        }
    }

    fn wait(&mut self, now: u64) -> u64 {
        self.debt = self.debt.saturating_sub(now - self.at);
        self.at = now;
        (self.debt + self.emission).saturating_sub(self.count * self.emission)
    }

    fn take(&mut self, now: u64) -> Result<(), u64> {
        match self.wait(now) {
            0 => {
                self.debt += self.emission;
                Ok(())
            }
            wait => Err(wait),
        }
    }
}

fn bucket_of(buckets: &mut HashMap<u8, Bucket>, key: u8, count: u32) -> &mut Bucket {
    buckets
        .entry(key)
        .or_insert_with(|| Bucket::new(count, Duration::from_secs(60)))
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Take(u8),
    Check(u8),
    TakeAndGiveBack(u8),
    Clean,
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u8).prop_map(Step::Take),
        1 => (0..3_u8).prop_map(Step::Check),
        1 => (0..3_u8).prop_map(Step::TakeAndGiveBack),
        1 => Just(Step::Clean),
        3 => (0..30_000_000_000_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn a_limiter_is_a_bucket_per_key_whatever_is_checked_given_back_or_cleaned(
        count in 1..40_u32,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let limiter = Limiter::own(Rate::per_minute(count), ROOM);
        let mut reference: HashMap<u8, Bucket> = HashMap::new();
        let mut now = 0;
        for step in steps {
            let at = Duration::from_nanos(now);
            match step {
                Step::Take(key) => {
                    let expected = bucket_of(&mut reference, key, count).take(now).map_err(Duration::from_nanos);
                    prop_assert_eq!(limiter.take(&key, at), expected);
                }
                Step::Check(key) => {
                    let wait = bucket_of(&mut reference, key, count).wait(now);
                    let expected = if wait == 0 { Ok(()) } else { Err(Duration::from_nanos(wait)) };
                    prop_assert_eq!(limiter.check(&key, at), expected);
                }
                Step::TakeAndGiveBack(key) => {
                    if limiter.take(&key, at).is_ok() {
                        limiter.give_back(&key);
                    }
                }
                Step::Clean => limiter.clean(at),
                Step::Pass(nanos) => now += nanos,
            }
        }
    }

    #[test]
    fn the_moment_a_refusal_names_is_the_first_at_which_a_call_passes(
        count in 1..2_000_u32,
        gaps in prop::collection::vec(0..200_000_000_u64, 1..100),
        start in 0..u64::from(u32::MAX),
    ) {
        let limiter = Limiter::single(Rate::per_minute(count));
        let mut now = Duration::from_nanos(start);
        for gap in gaps {
            now += Duration::from_nanos(gap);
            while limiter.take(&ONLY, now).is_ok() {}
            let wait = limiter.take(&ONLY, now).unwrap_err();
            prop_assert!(limiter.check(&ONLY, now + wait - NANO).is_err());
            now += wait;
            prop_assert!(limiter.take(&ONLY, now).is_ok());
        }
    }
}

#[test]
fn a_full_burst_comes_back_only_in_its_interval() {
    let limiter = Limiter::single(Rate::per_minute(600));
    let spend = |now| {
        (0..10_000)
            .take_while(|_| limiter.take(&ONLY, now).is_ok())
            .count()
    };
    let start = Duration::from_secs(5);
    assert_eq!(spend(start), 600);
    assert_eq!(spend(start + Duration::from_secs(1)), 10);
    assert_eq!(spend(start + Duration::from_secs(61)), 600);
    assert_eq!(spend(start + Duration::from_secs(600)), 600);
}

#[test]
fn a_limit_of_zero_is_taken_as_one() {
    let limiter = Limiter::single(Rate::per_minute(0));
    assert_eq!(limiter.take(&ONLY, Duration::ZERO), Ok(()));
    assert_eq!(limiter.take(&ONLY, Duration::ZERO), Err(Duration::from_secs(60)));
}

#[test]
fn keys_beyond_the_room_pass_or_wait_as_written_and_are_not_remembered() {
    let passing = Limiter::own(
        Rate::per_minute(1),
        Room {
            keys: 2,
            when_full: WhenFull::Pass,
        },
    );
    let wait = Duration::from_secs(7);
    let refusing = Limiter::own(
        Rate::per_minute(1),
        Room {
            keys: 2,
            when_full: WhenFull::Refuse(wait),
        },
    );
    for key in 0..100 {
        assert_eq!(passing.take(&key, Duration::ZERO), Ok(()));
        assert_eq!(
            refusing.take(&key, Duration::ZERO),
            if key < 2 { Ok(()) } else { Err(wait) }
        );
    }
    assert_eq!((passing.keys(), refusing.keys()), (2, 2));
    assert!(
        passing.take(&0, Duration::ZERO).is_err(),
        "known keys are still limited"
    );
    let later = Duration::from_secs(61);
    refusing.clean(later);
    assert_eq!(refusing.take(&50, later), Ok(()), "cleaning makes room");
}

#[test]
fn cleaning_forgets_every_key_that_was_quiet() {
    let limiter = Limiter::shared(Rate::per_minute(120), ROOM);
    for key in 0..500 {
        limiter.take(&key, Duration::ZERO).unwrap();
    }
    limiter.clean(Duration::from_millis(400));
    assert_eq!(limiter.keys(), 500);
    limiter.clean(Duration::from_secs(2));
    assert_eq!(limiter.keys(), 0);
}

#[test]
fn many_threads_together_get_no_more_than_the_rate() {
    let limiter = Arc::new(Limiter::shared(Rate::per_minute(100), ROOM));
    let taken: usize = std::thread::scope(|scope| {
        let spend = || {
            (0..500)
                .filter(|_| limiter.take(&1, Duration::from_secs(1)).is_ok())
                .count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(spend)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 100);
}

#[test]
fn a_key_that_is_held_passes_at_the_moment_named_and_is_forgotten_like_any_other() {
    let limiter = Limiter::shared(Rate::per_minute(10), ROOM);
    let now = Duration::from_secs(1000);
    limiter.take(&1, now).unwrap();
    for (key, wait) in [(1, Duration::from_secs(7)), (2, Duration::from_secs(700))] {
        limiter.hold(&key, wait, now);
        assert_eq!(limiter.take(&key, now), Err(wait));
        assert!(limiter.take(&key, now + wait - NANO).is_err());
        limiter.hold(&key, Duration::from_secs(1), now);
        assert_eq!(
            limiter.take(&key, now + wait),
            Ok(()),
            "a shorter one changes nothing"
        );
        assert_eq!(limiter.take(&key, now + wait), Err(Duration::from_secs(6)));
    }
    limiter.clean(now + Duration::from_secs(800));
    assert_eq!(limiter.keys(), 0);
}

#[test]
fn a_key_without_room_is_not_held() {
    let room = Room { keys: 1, ..ROOM };
    let limiter = Limiter::shared(Rate::per_minute(10), room);
    limiter.hold(&1, Duration::from_secs(7), Duration::ZERO);
    limiter.hold(&2, Duration::from_secs(7), Duration::ZERO);
    assert_eq!((limiter.keys(), limiter.take(&2, Duration::ZERO)), (1, Ok(())));
}

#[test]
fn who_looks_takes_nothing_even_for_a_moment() {
    let limiter = Limiter::shared(Rate::per_minute(1), ROOM);
    let now = Duration::from_secs(1);
    assert_eq!(limiter.check(&1, now), Ok(()));
    assert_eq!(limiter.keys(), 0);
    std::thread::scope(|scope| {
        let looks = || (0..20_000).all(|_| limiter.check(&1, now).is_ok());
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(looks)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
    assert_eq!(limiter.take(&1, now), Ok(()));
    assert_eq!(limiter.check(&1, now - NANO), Err(Duration::from_secs(60) + NANO));
}

#[test]
fn a_look_at_a_key_without_room_is_told_what_a_take_would_be() {
    let wait = Duration::from_secs(7);
    for when_full in [WhenFull::Pass, WhenFull::Refuse(wait)] {
        let limiter = Limiter::own(Rate::per_minute(1), Room { keys: 1, when_full });
        limiter.take(&1, Duration::ZERO).unwrap();
        assert_eq!(
            limiter.check(&2, Duration::ZERO),
            limiter.take(&2, Duration::ZERO)
        );
        assert!(limiter.check(&1, Duration::ZERO).is_err());
    }
}
