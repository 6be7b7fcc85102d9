use std::time::Duration;

use sovereign_relay_protocol::{
    limits::CONCURRENT_PUSHES,
    push::{PushResult, Reason},
};

use super::support::*;
use crate::{push::Refusal, registry::RegistryConfig};

#[test]
fn repeats_in_flight_wait_for_the_first_and_later_ones_get_its_outcome() {
    run(|| async {
        let bench = Bench::new();
        let first = bench.begin_in_lane(instance(1), keyed(7, 1)).await;
        let most = CONCURRENT_PUSHES - 1;
        let repeats: Vec<_> = (0..most).map(|_| bench.begin(instance(1), keyed(7, 1))).collect();
        eventually("all are under way", || {
            bench.registry.snapshot().in_flight == CONCURRENT_PUSHES
        })
        .await;
        bench.lane.open(1);
        assert_eq!(first.await.unwrap(), sent(false));
        for repeat in repeats {
            assert_eq!(repeat.await.unwrap(), sent(true));
        }
        assert_eq!(bench.registry.push(instance(1), keyed(7, 1)).await, sent(true));
        assert_eq!(bench.lane.calls(), 1);
        bench.is_quiet().await;
    });
}

#[test]
fn another_message_under_a_key_is_a_conflict_in_flight_and_afterwards() {
    run(|| async {
        let bench = Bench::new();
        let first = bench.begin_in_lane(instance(1), keyed(7, 1)).await;
        let conflict = Err(Refusal::IdempotencyConflict);
        assert_eq!(bench.registry.push(instance(1), keyed(8, 1)).await, conflict);
        bench.lane.open(1);
        assert_eq!(first.await.unwrap(), sent(false));
        assert_eq!(bench.registry.push(instance(1), keyed(8, 1)).await, conflict);
        assert_eq!(bench.lane.calls(), 1);
        bench.is_quiet().await;
    });
}

#[test]
fn a_transient_outcome_is_given_to_those_who_wait_and_not_remembered() {
    run(|| async {
        let bench = Bench::new();
        let first = bench.begin_in_lane(instance(1), keyed(BUSY, 1)).await;
        let repeat = bench.begin(instance(1), keyed(BUSY, 1));
        eventually("the repeat waits", || bench.registry.is_waiting(1)).await;
        bench.lane.open(1);
        let answer = first.await.unwrap().unwrap().answer;
        let repeated = repeat.await.unwrap().unwrap();
        assert_eq!((repeated.answer, repeated.replayed), (answer, false));
        assert!(bench.outcomes.0.lock().unwrap().is_empty());
        bench.lane.open(1);
        let again = bench.registry.push(instance(1), keyed(BUSY, 1)).await.unwrap();
        assert!(!again.replayed);
        assert_eq!(bench.lane.calls(), 2);
    });
}

#[test]
fn a_fault_of_the_relay_is_not_remembered_though_it_is_not_retryable() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(2);
        for _ in 0..2 {
            let failed = bench
                .registry
                .push(instance(1), keyed(MISCONFIGURED, 1))
                .await
                .unwrap();
            assert_eq!(failed.answer.reason, Some(Reason::RelayMisconfigured));
            assert!(!failed.replayed);
        }
        assert_eq!(bench.lane.calls(), 2);
    });
}

#[test]
fn a_refusal_is_not_remembered() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(2);
        for _ in 0..2 {
            let refused = bench.registry.push(instance(1), keyed(UNREACHABLE, 1)).await;
            assert!(matches!(refused, Err(Refusal::SendFailed { .. })));
        }
        assert_eq!(bench.lane.calls(), 2);
    });
}

#[test]
fn a_replayed_invalid_token_keeps_the_first_moment() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(1);
        let first = bench.registry.push(instance(1), keyed(GONE, 1)).await.unwrap();
        bench.clock.advance(Duration::from_secs(300));
        let replay = bench.registry.push(instance(1), keyed(GONE, 1)).await.unwrap();
        assert_eq!(replay.answer, first.answer);
        assert!(replay.replayed && replay.answer.invalid_since.is_some());
    });
}

#[test]
fn a_replay_costs_no_quota() {
    run(|| async {
        let bench = Bench::with(RegistryConfig {
            per_minute: 2,
            ..RegistryConfig::default()
        });
        bench.lane.open(2);
        assert_eq!(bench.registry.push(instance(1), keyed(7, 1)).await, sent(false));
        for _ in 0..20 {
            assert_eq!(bench.registry.push(instance(1), keyed(7, 1)).await, sent(true));
        }
        assert_eq!(bench.registry.push(instance(1), push(8)).await, sent(false));
        let limited = bench.registry.push(instance(1), push(8)).await;
        assert!(matches!(limited, Err(Refusal::RateLimited(_))));
    });
}

#[test]
fn those_who_wait_for_a_push_that_dies_are_answered_500_and_the_key_is_free() {
    run(|| async {
        let bench = Bench::new();
        let first = bench.begin_in_lane(instance(1), keyed(LANE_POISON, 1)).await;
        let repeat = bench.begin(instance(1), keyed(LANE_POISON, 1));
        eventually("the repeat waits", || bench.registry.is_waiting(1)).await;
        bench.lane.open(1);
        assert_eq!(first.await.unwrap(), Err(Refusal::Internal));
        assert_eq!(repeat.await.unwrap(), Err(Refusal::Internal));
        bench.lane.open(1);
        assert_eq!(bench.registry.push(instance(1), keyed(8, 1)).await, sent(false));
        bench.is_quiet().await;
    });
}

#[test]
fn a_key_in_flight_stays_claimed_when_its_actor_dies() {
    run(|| async {
        let bench = Bench::new();
        let first = bench.begin_in_lane(instance(1), keyed(7, 1)).await;
        assert_eq!(
            bench.registry.push(instance(1), push(POISON)).await,
            Err(Refusal::Internal)
        );
        let repeat = bench.begin(instance(1), keyed(7, 1));
        eventually("the repeat waits", || bench.registry.is_waiting(1)).await;
        bench.lane.open(1);
        assert_eq!(first.await.unwrap(), sent(false));
        assert_eq!(repeat.await.unwrap(), sent(true));
        assert_eq!(bench.lane.calls(), 1);
    });
}

#[test]
fn a_repeat_waits_no_longer_than_its_own_deadline() {
    run(|| async {
        let config = RegistryConfig {
            push_deadline: Duration::from_millis(30),
            ..RegistryConfig::default()
        };
        let bench = Bench::with(config);
        let first = bench.begin_in_lane(instance(1), keyed(7, 1)).await;
        let repeat = bench.registry.push(instance(1), keyed(7, 1)).await.unwrap();
        assert_eq!(
            (repeat.answer.result, repeat.answer.reason),
            (PushResult::Failed, Some(Reason::UnknownOutcome))
        );
        assert_eq!(repeat.answer.retryable, Some(true));
        bench.lane.open(1);
        assert_eq!(first.await.unwrap(), sent(false));
        bench.is_quiet().await;
    });
}

#[test]
fn the_same_key_hash_of_two_messages_of_one_instance_never_sends_both() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(100);
        let begun: Vec<_> = (0..100)
            .map(|token| bench.begin(instance(1), keyed(token % 2, 1)))
            .collect();
        for push in begun {
            match push.await.unwrap() {
                Ok(_) | Err(Refusal::IdempotencyConflict | Refusal::RateLimited(_)) => {}
                Err(refusal) => panic!("{refusal:?}"),
            }
        }
        assert_eq!(bench.lane.calls(), 1);
    });
}
