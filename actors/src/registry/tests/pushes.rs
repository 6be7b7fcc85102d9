use std::{sync::atomic::Ordering, time::Duration};

use sovereign_relay_protocol::{
    limits::CONCURRENT_PUSHES,
    platform::{Environment, Platform},
    push::{PushAnswer, PushResult, Reason},
    redacted::Redacted,
};

use super::support::*;
use crate::{
    ports::Clock as _,
    push::{Answered, Refusal, TurnKey},
    registry::RegistryConfig,
    wait::Limit,
};

#[test]
fn a_push_reaches_its_lane_and_the_answer_its_caller() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(1);
        let now = bench.clock.now();
        assert_eq!(bench.registry.push(instance(1), push(7)).await, sent(false));
        let job = bench.lane.jobs.lock().unwrap().pop().unwrap();
        assert_eq!(job.turn, TurnKey::Instance(instance(1)));
        assert_eq!(job.delivery.deadline, now.mono + Duration::from_secs(10));
        assert_eq!(job.delivery.environment, Environment::Production);
        assert_eq!(job.delivery.message_id.get_version_num(), 4);
        bench.is_quiet().await;
    });
}

#[test]
fn what_the_lane_could_not_do_is_a_refusal_and_what_it_answered_an_answer() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(3);
        let retry_after = Duration::from_secs(3);
        let unreachable = bench.registry.push(instance(1), push(UNREACHABLE)).await;
        assert_eq!(unreachable, Err(Refusal::SendFailed { retry_after }));
        let overloaded = bench.registry.push(instance(1), push(OVERLOADED)).await;
        assert_eq!(overloaded, Err(Refusal::Overloaded { retry_after }));
        let busy = bench.registry.push(instance(1), push(BUSY)).await.unwrap();
        assert_eq!(busy.answer.result, PushResult::Failed);
        bench.lane.serves.store(false, Ordering::SeqCst);
        let unconfigured = bench.registry.push(instance(1), push(1)).await;
        assert_eq!(unconfigured, Err(Refusal::PlatformNotConfigured));
    });
}

#[test]
fn a_malformed_token_is_invalid_since_the_push_began_and_costs_no_call() {
    run(|| async {
        let bench = Bench::new();
        let mut odd = push(1);
        odd.message.platform = Platform::Ios;
        odd.message.device_token = Redacted::new("not hexadecimal");
        let answered = bench.registry.push(instance(1), odd).await.unwrap();
        let expected = PushAnswer::invalid_token(Reason::MalformedToken, bench.clock.now().unix);
        assert_eq!(
            answered,
            Answered {
                answer: expected,
                replayed: false
            }
        );
        assert_eq!(bench.lane.calls(), 0);
    });
}

#[test]
fn a_token_called_gone_is_answered_from_memory_at_once_and_reaches_the_lane_two_minutes_later() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(2);
        let gone = bench.registry.push(instance(1), push(GONE)).await.unwrap();
        assert_eq!(gone.answer.result, PushResult::InvalidToken);
        bench.clock.advance(Duration::from_secs(5));
        let repeat = bench.registry.push(instance(1), push(GONE)).await.unwrap();
        assert_eq!(
            repeat.answer,
            PushAnswer::failed(Reason::RecentlyInvalid, true, Some(55))
        );
        assert_eq!(bench.lane.calls(), 1);
        bench.clock.advance(Duration::from_secs(120));
        bench.registry.push(instance(1), push(GONE)).await.unwrap();
        assert_eq!(bench.lane.calls(), 2);
    });
}

#[test]
fn only_256_pushes_of_an_instance_are_under_way_and_others_do_not_wait_for_them() {
    run(|| async {
        let bench = Bench::new();
        let begun: Vec<_> = (0..CONCURRENT_PUSHES)
            .map(|token| bench.begin(instance(1), push(10_000 + token as u128)))
            .collect();
        eventually("all are in the lane", || bench.lane.calls() == CONCURRENT_PUSHES).await;
        let refusal = Err(Refusal::RateLimited(Limit::UnderWay.wait(Duration::from_secs(1))));
        assert_eq!(bench.registry.push(instance(1), push(1)).await, refusal);
        let other = bench.begin_in_lane(instance(2), push(1)).await;
        bench.lane.open(CONCURRENT_PUSHES + 2);
        assert_eq!(other.await.unwrap(), sent(false));
        for push in begun {
            assert_eq!(push.await.unwrap(), sent(false));
        }
        assert_eq!(bench.registry.push(instance(1), push(1)).await, sent(false));
        bench.is_quiet().await;
    });
}

#[test]
fn a_burst_of_a_thousand_calls_at_a_fresh_actor_is_answered_in_full() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(1_000);
        let begun: Vec<_> = (0..1_000)
            .map(|token| bench.begin(instance(1), push(10_000 + token)))
            .collect();
        let mut answered = 0;
        for push in begun {
            match push.await.unwrap() {
                Ok(_) => answered += 1,
                Err(refusal) => assert!(matches!(refusal, Refusal::RateLimited(_)), "{refusal:?}"),
            }
        }
        assert!((CONCURRENT_PUSHES..=600).contains(&answered), "{answered}");
        bench.is_quiet().await;
    });
}

#[test]
fn a_caller_that_hangs_up_loses_only_its_answer() {
    run(|| async {
        let bench = Bench::new();
        let caller = bench.begin_in_lane(instance(1), keyed(7, 1)).await;
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert_eq!(bench.registry.snapshot().in_flight, 1, "the push goes on");
        bench.lane.open(1);
        bench.is_quiet().await;
        assert_eq!(bench.registry.push(instance(1), keyed(7, 1)).await, sent(true));
        eventually("the use is written", || bench.store.sent(instance(1)) == 1).await;
    });
}

#[test]
fn an_idle_actor_stops_and_the_next_push_starts_another() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(2);
        bench.registry.push(instance(1), push(1)).await.unwrap();
        bench.clock.advance(Duration::from_secs(11 * 60 - 1));
        eventually("a tick has passed", || bench.store.sent(instance(1)) == 1).await;
        assert_eq!(bench.registry.snapshot().actors, 1);
        bench.clock.advance(Duration::from_secs(1));
        eventually("the actor stopped", || bench.registry.snapshot().actors == 0).await;
        assert_eq!(bench.registry.push(instance(1), push(1)).await, sent(false));
        assert_eq!(bench.registry.snapshot().restarts, 0, "leaving is no fault");
    });
}

#[test]
fn an_actor_with_a_push_under_way_is_not_idle() {
    run(|| async {
        let bench = Bench::new();
        let slow = bench.begin_in_lane(instance(1), push(1)).await;
        bench.clock.advance(Duration::from_secs(3600));
        bench.store.uses.lock().unwrap().clear();
        let other = bench.begin_in_lane(instance(2), push(1)).await;
        eventually("both have ticked", || {
            bench
                .store
                .uses
                .lock()
                .unwrap()
                .iter()
                .any(|(who, _)| *who == instance(2))
        })
        .await;
        assert_eq!(bench.registry.snapshot().actors, 2);
        bench.lane.open(2);
        assert_eq!(slow.await.unwrap(), sent(false));
        assert_eq!(other.await.unwrap(), sent(false));
    });
}

#[test]
fn pushes_that_meet_stopping_actors_are_neither_lost_nor_doubled() {
    run(|| async {
        let config = RegistryConfig {
            arbiters: 2,
            idle_after: Duration::ZERO,
            tick: Duration::from_millis(1),
            ..RegistryConfig::default()
        };
        let bench = Bench::with(config);
        bench.lane.open(4_000);
        let mut turnover = 0;
        for round in 0..1_000 {
            bench.clock.advance(Duration::from_secs(10));
            for number in 0..4 {
                assert_eq!(
                    bench.registry.push(instance(number), push(1_000 + round)).await,
                    sent(false)
                );
            }
            turnover += usize::from(bench.registry.snapshot().actors < 4);
        }
        assert_eq!(bench.lane.calls(), 4_000);
        assert!(turnover > 0, "no actor ever stopped, so nothing was tested");
        assert_eq!(bench.registry.snapshot().restarts, 0);
        eventually("all uses are written", || {
            (0..4)
                .map(|number| bench.store.sent(instance(number)))
                .sum::<u64>()
                == 4_000
        })
        .await;
    });
}

#[test]
fn thousands_of_pushes_with_callers_that_hang_up_leave_nothing_behind() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(20_000);
        for round in 0..100_u128 {
            bench.clock.advance(Duration::from_secs(60));
            let begun: Vec<_> = (0..200_u128)
                .map(|nth| bench.begin(instance(nth as u8 % 5), keyed(nth, round * 1_000 + nth)))
                .collect();
            for (nth, push) in begun.into_iter().enumerate() {
                if nth % 7 == 0 {
                    push.abort();
                } else {
                    push.await.unwrap().unwrap();
                }
            }
            bench.is_quiet().await;
        }
        assert_eq!(bench.registry.snapshot().actors, 5);
        assert_eq!(bench.registry.snapshot().restarts, 0);
    });
}
