use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);
const START: Duration = Duration::from_secs(1_000);
const EARLIER: Duration = START.saturating_sub(Duration::from_nanos(1));

/// The budget in Redis: one GCRA over all replicas.
struct Budget {
    per_minute: u32,
    arrival: Duration,
}

impl Budget {
    fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            arrival: Duration::ZERO,
        }
    }

    fn lease(&mut self, ask: Ask, now: Duration) -> Grant {
        let emission = MINUTE / self.per_minute;
        let full = now + MINUTE;
        self.arrival = self.arrival.clamp(now, full);
        self.arrival = (self.arrival + emission * ask.charge).min(full);
        let left = ((full - self.arrival).as_nanos() / emission.as_nanos()) as u32;
        let granted = left.min(ask.wanted);
        self.arrival += emission * granted;
        Grant {
            granted,
            left: left - granted,
            wait: (self.arrival + emission).saturating_sub(full),
        }
    }
}

/// A replica whose calls take a while.
struct Replica {
    lease: Lease,
    call: Option<(Duration, Grant)>,
    passed: u32,
    refused: u32,
    waiting: u32,
}

impl Replica {
    fn new(per_minute: u32, replicas: u32) -> Self {
        Self {
            lease: Lease::new(per_minute, replicas, START),
            call: None,
            passed: 0,
            refused: 0,
            waiting: 0,
        }
    }

    fn push(&mut self, budget: &mut Budget, latency: Duration, now: Duration) {
        match self.lease.take(now) {
            Take::Granted => self.passed += 1,
            Take::Refused(_) => self.refused += 1,
            Take::Wait => self.waiting += 1,
        }
        self.ask(budget, latency, now);
    }

    fn ask(&mut self, budget: &mut Budget, latency: Duration, now: Duration) {
        if let Some(ask) = self.lease.ask(now) {
            assert!(self.call.is_none(), "one call at a time");
            self.call = Some((now + latency, budget.lease(ask, now)));
        }
    }

    fn hear(&mut self, budget: &mut Budget, latency: Duration, now: Duration) {
        let Some((_, grant)) = self.call.take_if(|(at, _)| *at <= now) else {
            return;
        };
        self.lease.on_grant(grant, now);
        while let Some(told) = self.lease.serve(now) {
            self.waiting -= 1;
            match told {
                Ok(()) => self.passed += 1,
                Err(_) => self.refused += 1,
            }
        }
        self.ask(budget, latency, now);
    }
}

fn grant(granted: u32, left: u32, wait: Duration) -> Grant {
    Grant { granted, left, wait }
}

/// A minute of demand on several replicas, in steps of a millisecond; `demand` of each in pushes a second.
fn minute(per_minute: u32, demand: &[u32], latency: Duration) -> Vec<Replica> {
    let mut budget = Budget::new(per_minute);
    let count = demand.len() as u32;
    let mut replicas: Vec<_> = demand.iter().map(|_| Replica::new(per_minute, count)).collect();
    for step in 0..60_000_u64 {
        let now = START + MILLI * u32::try_from(step).unwrap();
        for (replica, demand) in replicas.iter_mut().zip(demand) {
            replica.hear(&mut budget, latency, now);
            let due = |step: u64| step * u64::from(*demand) / 1000;
            for _ in due(step)..due(step + 1) {
                replica.push(&mut budget, latency, now);
            }
        }
    }
    replicas
}

fn passed(replicas: &[Replica]) -> u32 {
    replicas.iter().map(|replica| replica.passed).sum()
}

#[test]
fn a_thread_that_looked_at_the_clock_before_the_first_one_is_not_refused() {
    let mut lease = Lease::new(120, 1, START);
    assert_eq!(lease.take(EARLIER), Take::Wait);
    lease.agree(240, 1, START);
    assert_eq!(lease.take(EARLIER), Take::Wait);
}

#[test]
fn a_thread_that_looked_at_the_clock_before_the_first_one_gets_the_last_of_a_share_too() {
    for per_minute in [1, 120] {
        let mut lease = Lease::new(per_minute, 1, START);
        assert_eq!(lease.take(START), Take::Wait);
        assert!(lease.ask(START).is_some());
        lease.on_away(START);
        for taken in 0..per_minute {
            assert_eq!(lease.take(EARLIER), Take::Granted, "{taken} of {per_minute}");
        }
        assert!(matches!(lease.take(EARLIER), Take::Refused(_)));
    }
}

proptest! {
    #[test]
    fn it_decides_by_the_latest_time_that_it_was_told(
        per_minute in 1..200_u32,
        steps in prop::collection::vec((0..5_u8, 0..20_000_u64, 0..10_u64), 1..200),
    ) {
        let (mut ordered, mut mixed) = (Lease::new(per_minute, 2, START), Lease::new(per_minute, 2, START));
        let mut latest = START;
        for (step, millis, behind) in steps {
            latest += MILLI * u32::try_from(millis / 10).unwrap();
            let late = latest - MILLI * u32::try_from(behind).unwrap().min(u32::try_from((latest - START).as_millis()).unwrap());
            // Somebody has told the time before.
            ordered.ask(latest);
            mixed.ask(latest);
            let told = |lease: &mut Lease, now| match step {
                0 | 1 => format!("{:?}", lease.take(now)),
                2 => { lease.on_grant(grant(per_minute.min(3), 0, SECOND), now); String::new() }
                3 => { lease.on_away(now); String::new() }
                _ => format!("{:?} {}", lease.serve(now), lease.is_idle(now)),
            };
            prop_assert_eq!(told(&mut ordered, latest), told(&mut mixed, late));
        }
    }
}

#[test]
fn three_replicas_let_through_what_one_alone_would_within_five_percent_wherever_the_pushes_come() {
    let alone = 600 + 600;
    for demand in [[100, 100, 100], [300, 0, 0], [200, 20, 1], [40, 3, 1], [7, 7, 7]] {
        let together = passed(&minute(600, &demand, 2 * MILLI));
        let wanted: u32 = demand.iter().sum::<u32>() * 60;
        let fair = wanted.min(alone);
        assert!(together <= alone, "{demand:?}: {together}");
        assert!(together * 100 >= fair * 95, "{demand:?}: {together} of {fair}");
    }
}

#[test]
fn a_batch_is_one_call_and_not_one_for_each_push() {
    let mut lease = Lease::new(600, 3, START);
    assert_eq!(lease.take(START), Take::Wait);
    let ask = lease.ask(START).unwrap();
    assert_eq!(
        (ask.wanted, ask.charge),
        (11, 0),
        "the one that waits, and a batch"
    );
    assert_eq!(lease.serve(START), None, "nobody is told before the answer");
    lease.on_grant(grant(11, 589, Duration::ZERO), START);
    assert_eq!(lease.serve(START), Some(Ok(())));
    assert_eq!(lease.serve(START), None);
    for _ in 0..5 {
        assert_eq!(lease.take(START), Take::Granted);
        assert_eq!(lease.ask(START), None);
    }
    assert_eq!(lease.take(START), Take::Granted);
    assert_eq!(
        lease.ask(START).unwrap().wanted,
        10,
        "the next one before the last is gone"
    );
    for _ in 0..4 {
        assert_eq!(lease.take(START), Take::Granted, "nobody waits for it");
    }
}

#[test]
fn a_refusal_holds_until_the_moment_it_names_without_asking_again() {
    let mut lease = Lease::new(60, 1, START);
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.on_grant(grant(0, 0, SECOND), START);
    assert_eq!(lease.serve(START), Some(Err(SECOND)));
    let just_before = START + SECOND - MILLI;
    assert_eq!(lease.take(just_before), Take::Refused(MILLI));
    assert_eq!(lease.ask(just_before), None);
    assert_eq!(lease.take(START + SECOND), Take::Wait);
    assert!(lease.ask(START + SECOND).is_some());
}

#[test]
fn unused_tokens_lapse() {
    let mut lease = Lease::new(600, 3, START);
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.on_grant(grant(11, 589, Duration::ZERO), START);
    assert_eq!(lease.serve(START), Some(Ok(())));
    assert!(!lease.is_idle(START));
    assert!(lease.is_idle(START + LASTS));
    assert_eq!(lease.take(START + LASTS), Take::Wait);
}

#[test]
fn while_redis_is_away_a_replica_has_its_share_of_what_was_left_and_nobody_waits() {
    let mut lease = Lease::new(600, 3, START);
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.on_grant(grant(11, 300, Duration::ZERO), START);
    assert_eq!(lease.serve(START), Some(Ok(())));
    for _ in 0..10 {
        assert_eq!(lease.take(START), Take::Granted);
    }
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.on_away(START);
    assert_eq!(lease.serve(START), Some(Ok(())), "who waited is told");
    let burst = (0..1000)
        .take_while(|_| lease.take(START) == Take::Granted)
        .count();
    assert_eq!(burst + 1, 100, "a third of 300");
    let Take::Refused(wait) = lease.take(START) else {
        panic!("the share is spent");
    };
    assert_eq!(wait, Duration::from_millis(300), "a third of the rate");
    assert_eq!(lease.take(START + wait), Take::Granted);
}

#[test]
fn what_was_spent_while_redis_was_away_is_charged_when_it_is_back() {
    let mut lease = Lease::new(600, 2, START);
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.on_away(START);
    assert_eq!(lease.serve(START), Some(Ok(())));
    for _ in 0..99 {
        assert_eq!(lease.take(START), Take::Granted);
    }
    assert_eq!(lease.ask(START), None, "it was asked just now");
    let back = START + RETRY;
    assert_eq!(lease.take(back), Take::Granted);
    assert_eq!(lease.ask(back).unwrap().charge, 101);
    lease.on_away(back);
    assert_eq!(lease.ask(back + RETRY).unwrap().charge, 101, "not told yet");
    lease.on_grant(grant(15, 480, Duration::ZERO), back + RETRY);
    assert_eq!(lease.ask(back + RETRY), None);
    assert!(!lease.is_idle(back + RETRY));
    assert!(
        !lease.is_idle(back + RETRY + LASTS),
        "580 of 600 are known to be there"
    );
    assert!(lease.is_idle(back + RETRY + MINUTE), "told");
}

#[test]
fn a_budget_that_was_spent_is_not_full_again_when_redis_goes_away_a_little_later() {
    let mut lease = Lease::new(600, 1, START);
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.on_grant(grant(1, 0, Duration::ZERO), START);
    assert_eq!(lease.serve(START), Some(Ok(())));
    let later = START + LASTS + LASTS;
    assert!(!lease.is_idle(later), "a new one would know nothing of it");
    assert_eq!(lease.take(later), Take::Wait);
    lease.ask(later).unwrap();
    lease.on_away(later);
    let passed = std::iter::from_fn(|| lease.serve(later)).count();
    let more = (0..1000)
        .take_while(|_| lease.take(later) == Take::Granted)
        .count();
    assert_eq!(passed + more, 200, "what 20 s bring back");
    assert!(
        Lease::new(600, 1, START).is_idle(START),
        "nor is one that took nothing"
    );
}

#[test]
fn an_account_that_redis_never_spoke_of_starts_with_its_share_of_a_full_budget() {
    for (replicas, share) in [(1, 600), (3, 200), (600, 1)] {
        let mut lease = Lease::new(600, replicas, START);
        assert_eq!(lease.take(START), Take::Wait);
        lease.ask(START).unwrap();
        lease.on_away(START);
        assert_eq!(lease.serve(START), Some(Ok(())));
        let more = (0..1000)
            .take_while(|_| lease.take(START) == Take::Granted)
            .count();
        assert_eq!(more + 1, share, "{replicas} replicas");
    }
}

#[test]
fn a_share_of_less_than_one_a_minute_is_one_more_rarely() {
    let mut lease = Lease::new(1, 3, START);
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.on_away(START);
    assert_eq!(lease.serve(START), Some(Err(3 * MINUTE)));
    assert_eq!(lease.take(START + 3 * MINUTE), Take::Granted);
}

#[test]
fn another_rate_starts_anew_and_the_answer_for_the_old_one_counts_for_nothing() {
    let mut lease = Lease::new(600, 1, START);
    assert_eq!(lease.take(START), Take::Wait);
    lease.ask(START).unwrap();
    lease.agree(60, 1, START);
    lease.on_grant(grant(31, 569, Duration::ZERO), START);
    assert_eq!(lease.serve(START), None, "whoever waits goes on waiting");
    let ask = lease.ask(START).unwrap();
    assert_eq!((ask.per_minute, ask.wanted), (60, 4));
    lease.on_grant(grant(4, 56, Duration::ZERO), START);
    assert_eq!(lease.serve(START), Some(Ok(())));
}

#[test]
fn a_token_given_back_is_there_for_the_next_push() {
    let mut lease = Lease::new(600, 1, START);
    lease.give_back(START);
    assert_eq!(lease.take(START), Take::Granted);
    assert_eq!(lease.take(START), Take::Wait);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_the_traffic_replicas_together_stay_under_the_limit_and_near_it(
        per_minute in 200_u32..3_000,
        demand in proptest::collection::vec(0_u32..120, 1..6),
        latency in 0_u64..200,
    ) {
        let replicas = minute(per_minute, &demand, Duration::from_millis(latency));
        let together = passed(&replicas);
        let wanted = demand.iter().sum::<u32>() * 60;
        let alone = per_minute * 2;
        prop_assert!(together <= alone, "{} of {}", together, alone);
        // A push under way at the end has not passed yet.
        let under_way: u32 = replicas.iter().map(|replica| replica.waiting).sum();
        let fair = wanted.min(alone);
        prop_assert!((together + under_way) * 100 >= fair * 95, "{} of {}", together, fair);
    }

    #[test]
    fn every_push_is_answered_once_the_call_is_over(
        steps in proptest::collection::vec((0_u8..5, 0_u64..3_000, 0_u32..40), 1..200),
    ) {
        let mut lease = Lease::new(120, 2, START);
        let (mut now, mut waiting, mut under_way) = (START, 0_u32, false);
        for (step, millis, tokens) in steps {
            now += Duration::from_millis(millis);
            match step {
                0..3 => waiting += u32::from(lease.take(now) == Take::Wait),
                3 if under_way => {
                    lease.on_grant(grant(tokens, 0, SECOND), now);
                    under_way = false;
                }
                4 if under_way => {
                    lease.on_away(now);
                    under_way = false;
                }
                _ => {}
            }
            while lease.serve(now).is_some() {
                waiting -= 1;
            }
            under_way |= lease.ask(now).is_some();
            prop_assert!(waiting == 0 || under_way, "nobody waits for nothing");
        }
    }
}
