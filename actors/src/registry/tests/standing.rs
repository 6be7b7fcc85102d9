use std::{sync::atomic::Ordering, time::Duration};

use super::support::*;
use crate::{
    instance::pressure::{REPEATS_SUSPEND, SUSPENSION_REASON},
    ports::Standing,
    push::Refusal,
    registry::RegistryConfig,
    wait::Limit,
};

const SUSPENDED: Refusal = Refusal::Suspended { retry_after: None };

#[test]
fn a_suspension_read_at_the_start_holds_for_the_first_push() {
    run(|| async {
        let bench = Bench::new();
        bench.store.suspend(instance(1));
        assert_eq!(bench.registry.push(instance(1), push(1)).await, Err(SUSPENDED));
        assert_eq!(bench.lane.calls(), 0);
    });
}

#[test]
fn a_suspension_holds_when_refresh_returns_and_so_does_its_end() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(200);
        for round in 0..50 {
            assert_eq!(bench.registry.push(instance(1), push(round)).await, sent(false));
            bench.store.suspend(instance(1));
            bench.registry.refresh(instance(1)).await;
            assert_eq!(
                bench.registry.push(instance(1), push(round)).await,
                Err(SUSPENDED)
            );
            bench.store.standings.lock().unwrap().insert(instance(1), grown());
            bench.registry.refresh(instance(1)).await;
        }
    });
}

#[test]
fn a_refresh_during_the_first_read_is_not_overtaken_by_what_that_read_saw() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(1);
        let reads = bench.store.reads.clone().acquire_owned().await.unwrap();
        let waiting = bench.begin(instance(1), push(1));
        eventually("the actor has started", || bench.registry.snapshot().actors == 1).await;
        eventually("it reads its standing", || {
            std::sync::Arc::strong_count(&bench.store.reads) > 2
        })
        .await;
        bench.store.suspend(instance(1));
        let registry = bench.registry.clone();
        let refresh = tokio::spawn(async move { registry.refresh(instance(1)).await });
        eventually("it reads again", || {
            std::sync::Arc::strong_count(&bench.store.reads) > 3
        })
        .await;
        drop(reads);
        refresh.await.unwrap();
        assert_eq!(waiting.await.unwrap(), Err(SUSPENDED));
        assert_eq!(bench.registry.push(instance(1), push(1)).await, Err(SUSPENDED));
    });
}

#[test]
fn a_refresh_of_an_instance_without_an_actor_starts_none() {
    run(|| async {
        let bench = Bench::new();
        bench.registry.refresh(instance(1)).await;
        assert_eq!(bench.registry.snapshot().actors, 0);
    });
}

#[test]
fn a_suspended_instance_hears_403_even_while_its_slots_are_taken() {
    run(|| async {
        let bench = Bench::new();
        let begun: Vec<_> = (0..256)
            .map(|token| bench.begin(instance(1), push(10_000 + token)))
            .collect();
        eventually("all are in the lane", || bench.lane.calls() == 256).await;
        bench.store.suspend(instance(1));
        bench.registry.refresh(instance(1)).await;
        assert_eq!(bench.registry.push(instance(1), push(1)).await, Err(SUSPENDED));
        bench.lane.open(256);
        for push in begun {
            assert_eq!(push.await.unwrap(), sent(false));
        }
    });
}

#[test]
fn without_the_store_pushes_go_on_and_the_standing_is_read_as_soon_as_it_is_back() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(1_000);
        bench.store.suspend(instance(1));
        bench.store.failing.store(true, Ordering::SeqCst);
        assert_eq!(bench.registry.push(instance(1), push(1)).await, sent(false));
        assert_eq!(bench.store.sent(instance(1)), 0);
        bench.store.failing.store(false, Ordering::SeqCst);
        eventually("the use is written after all", || {
            bench.store.sent(instance(1)) == 1
        })
        .await;
        bench.registry.refresh(instance(1)).await;
        assert_eq!(bench.registry.push(instance(1), push(1)).await, Err(SUSPENDED));
    });
}

#[test]
fn the_operators_limit_replaces_the_default() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(10);
        let limited = Standing {
            per_minute: Some(3),
            ..grown()
        };
        bench.store.standings.lock().unwrap().insert(instance(1), limited);
        for token in 0..3 {
            assert_eq!(bench.registry.push(instance(1), push(token)).await, sent(false));
        }
        let refusal = bench.registry.push(instance(1), push(3)).await;
        assert_eq!(
            refusal,
            Err(Refusal::RateLimited(
                Limit::Instance.wait(Duration::from_secs(20))
            ))
        );
    });
}

/// Pushes to dead tokens until the instance is suspended: for how long.
async fn loops_over_dead_tokens(bench: &Bench) -> Duration {
    bench.lane.open(10 * REPEATS_SUSPEND);
    for _ in 0..REPEATS_SUSPEND {
        bench.clock.advance(Duration::from_secs(61));
        for token in GONE..=LAST_GONE {
            match bench.registry.push(instance(1), push(token)).await {
                Err(Refusal::Suspended { retry_after }) => return retry_after.unwrap(),
                outcome => assert!(outcome.is_ok()),
            }
        }
    }
    panic!("never suspended");
}

async fn is_suspended(bench: &Bench) -> bool {
    let outcome = bench.registry.push(instance(1), push(GONE)).await;
    matches!(outcome, Err(Refusal::Suspended { .. }))
}

#[test]
fn a_loop_over_a_dead_token_ends_in_a_suspension_that_is_written_with_its_reason() {
    run(|| async {
        let bench = Bench::new();
        assert!(loops_over_dead_tokens(&bench).await <= Duration::from_secs(3600));
        let (who, written) = bench.store.suspensions.lock().unwrap().pop().unwrap();
        assert_eq!((who, written.reason.as_str()), (instance(1), SUSPENSION_REASON));
        assert!(written.until.is_some());
    });
}

#[test]
fn a_standing_that_was_read_before_a_suspension_was_written_is_no_pardon() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(1);
        assert!(bench.registry.push(instance(1), push(1)).await.is_ok());
        let reads = bench.store.reads.clone().acquire_owned().await.unwrap();
        let registry = bench.registry.clone();
        let refresh = tokio::spawn(async move { registry.refresh(instance(1)).await });
        eventually("it reads", || {
            std::sync::Arc::strong_count(&bench.store.reads) > 2
        })
        .await;
        loops_over_dead_tokens(&bench).await;
        drop(reads);
        refresh.await.unwrap();
        assert!(is_suspended(&bench).await);
        // An operator's pardon is one.
        bench.store.standings.lock().unwrap().insert(instance(1), grown());
        bench.registry.refresh(instance(1)).await;
        assert!(!is_suspended(&bench).await);
    });
}

#[test]
fn a_suspension_that_could_not_be_written_holds_and_is_written_later() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(1);
        assert!(bench.registry.push(instance(1), push(1)).await.is_ok());
        bench.store.failing.store(true, Ordering::SeqCst);
        loops_over_dead_tokens(&bench).await;
        assert!(bench.store.suspensions.lock().unwrap().is_empty());
        bench.store.failing.store(false, Ordering::SeqCst);
        bench.registry.refresh(instance(1)).await;
        assert!(is_suspended(&bench).await, "the store knew of none");
        eventually("it is written", || {
            !bench.store.suspensions.lock().unwrap().is_empty()
        })
        .await;
        assert!(is_suspended(&bench).await);
    });
}

#[test]
fn a_reloaded_default_limit_holds_for_living_actors_and_those_to_come_and_an_operators_limit_stays() {
    run(|| async {
        let bench = Bench::with(RegistryConfig {
            per_minute: 1,
            ..RegistryConfig::default()
        });
        bench.lane.open(100);
        let limited = async |of, token| {
            let outcome = bench.registry.push(instance(of), push(token)).await;
            matches!(outcome, Err(Refusal::RateLimited(_)))
        };
        let own = Standing {
            per_minute: Some(2),
            ..grown()
        };
        bench.store.standings.lock().unwrap().insert(instance(2), own);
        assert!(!limited(1, 1).await && limited(1, 2).await);
        assert!(!limited(2, 1).await && !limited(2, 2).await && limited(2, 3).await);
        bench.registry.set_per_minute(3);
        for living in [1, 2] {
            bench.registry.refresh(instance(living)).await;
        }
        assert!(!limited(1, 2).await && !limited(1, 3).await && !limited(1, 4).await && limited(1, 5).await);
        assert!(limited(2, 3).await);
        assert!(!limited(3, 1).await && !limited(3, 2).await && !limited(3, 3).await && limited(3, 4).await);
        assert_eq!(bench.registry.per_minute(), 3);
    });
}
