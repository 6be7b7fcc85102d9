use std::{sync::atomic::Ordering, time::Duration};

use sovereign_relay_protocol::limits::CONCURRENT_PUSHES;

use super::support::*;
use crate::{push::Refusal, registry::RegistryConfig};

#[test]
fn a_panic_costs_its_own_caller_a_500_and_nobody_else_anything() {
    run(|| async {
        let bench = Bench::new();
        // One arbiter: everybody lives on the thread of the panic.
        let other_instance = bench.begin_in_lane(instance(2), push(1)).await;
        let same_instance = bench.begin_in_lane(instance(1), push(1)).await;
        assert_eq!(
            bench.registry.push(instance(1), push(POISON)).await,
            Err(Refusal::Internal)
        );
        bench.lane.open(4);
        assert_eq!(other_instance.await.unwrap(), sent(false));
        assert_eq!(same_instance.await.unwrap(), sent(false));
        assert_eq!(bench.registry.push(instance(1), push(2)).await, sent(false));
        assert_eq!(bench.registry.push(instance(2), push(2)).await, sent(false));
        assert_eq!(bench.registry.snapshot().restarts, 1);
        assert_eq!(bench.registry.snapshot().actors, 2);
        bench.is_quiet().await;
    });
}

#[test]
fn pushes_queued_behind_a_panic_are_served_by_the_next_actor_once() {
    run(|| async {
        let bench = Bench::new();
        // Nobody is served before the standing is read, so all queue in one actor, the poison among them.
        let reads = bench.store.reads.clone().acquire_owned().await.unwrap();
        let mut begun: Vec<_> = (0..50)
            .map(|token| bench.begin(instance(1), push(token)))
            .collect();
        let poison = bench.begin(instance(1), push(POISON));
        begun.extend((50..100).map(|token| bench.begin(instance(1), push(token))));
        eventually("all are queued", || bench.registry.snapshot().in_flight == 101).await;
        bench.lane.open(100);
        drop(reads);
        assert_eq!(poison.await.unwrap(), Err(Refusal::Internal));
        for push in begun {
            assert_eq!(push.await.unwrap(), sent(false));
        }
        assert_eq!(bench.lane.calls(), 100);
        assert_eq!(bench.registry.snapshot().restarts, 1);
    });
}

#[test]
fn several_pushes_that_panic_in_one_mailbox_do_not_abort_the_process() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(2);
        assert_eq!(bench.registry.push(instance(1), push(1)).await, sent(false));
        // The actor's thread stands still in the store while the mailbox fills.
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (hold, held) = tokio::sync::oneshot::channel();
        let store = bench.store.clone();
        let holder = std::thread::spawn(move || {
            let standings = store.standings.lock().unwrap();
            hold.send(()).unwrap();
            released.recv().unwrap();
            drop(standings);
        });
        held.await.unwrap();
        let registry = bench.registry.clone();
        let refresh = tokio::spawn(async move { registry.refresh(instance(1)).await });
        tokio::task::yield_now().await;
        let begun: Vec<_> = (0..3).map(|_| bench.begin(instance(1), push(POISON))).collect();
        eventually("all are queued", || bench.registry.snapshot().in_flight == 3).await;
        release.send(()).unwrap();
        holder.join().unwrap();
        for push in begun {
            assert_eq!(push.await.unwrap(), Err(Refusal::Internal));
        }
        refresh.await.unwrap();
        assert_eq!(bench.registry.push(instance(1), push(2)).await, sent(false));
        assert_eq!(bench.registry.snapshot().restarts, 3);
        bench.is_quiet().await;
    });
}

#[test]
fn a_panic_whose_clean_up_would_panic_too_does_not_abort_the_process() {
    run(|| async {
        let bench = Bench::with(RegistryConfig {
            tick: Duration::from_secs(3600),
            ..RegistryConfig::default()
        });
        bench.lane.open(2);
        assert_eq!(bench.registry.push(instance(1), push(1)).await, sent(false));
        bench.store.note_use_panics.store(true, Ordering::SeqCst);
        assert_eq!(
            bench.registry.push(instance(1), push(POISON)).await,
            Err(Refusal::Internal)
        );
        assert_eq!(bench.registry.push(instance(1), push(2)).await, sent(false));
        assert_eq!(bench.registry.snapshot().restarts, 1);
    });
}

#[test]
fn the_successor_of_a_dead_actor_does_not_get_the_slots_a_second_time() {
    run(|| async {
        let bench = Bench::new();
        let begun: Vec<_> = (1..CONCURRENT_PUSHES)
            .map(|token| bench.begin(instance(1), push(10_000 + token as u128)))
            .collect();
        eventually("all are in the lane", || {
            bench.lane.calls() == CONCURRENT_PUSHES - 1
        })
        .await;
        assert_eq!(
            bench.registry.push(instance(1), push(POISON)).await,
            Err(Refusal::Internal)
        );
        let last = bench.begin_in_lane(instance(1), push(1)).await;
        let refusal = bench.registry.push(instance(1), push(2)).await;
        assert!(matches!(refusal, Err(Refusal::RateLimited(_))));
        bench.lane.open(CONCURRENT_PUSHES);
        assert_eq!(last.await.unwrap(), sent(false));
        for push in begun {
            assert_eq!(push.await.unwrap(), sent(false));
        }
        bench.is_quiet().await;
    });
}

#[test]
fn an_instance_whose_every_push_panics_harms_only_itself() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(100);
        for round in 1..=50 {
            assert_eq!(
                bench.registry.push(instance(1), push(POISON)).await,
                Err(Refusal::Internal)
            );
            assert_eq!(bench.registry.push(instance(2), push(round)).await, sent(false));
            assert_eq!(bench.registry.push(instance(1), push(round)).await, sent(false));
            assert_eq!(bench.registry.snapshot().restarts, round as u64);
        }
        bench.is_quiet().await;
    });
}

#[test]
fn a_panic_in_the_lane_is_a_500_and_leaves_the_actor_alive() {
    run(|| async {
        let bench = Bench::new();
        bench.lane.open(2);
        assert_eq!(
            bench.registry.push(instance(1), push(LANE_POISON)).await,
            Err(Refusal::Internal)
        );
        assert_eq!(bench.registry.push(instance(1), push(1)).await, sent(false));
        assert_eq!(bench.registry.snapshot().restarts, 0);
        bench.is_quiet().await;
    });
}

#[test]
fn closing_answers_every_push_under_way_refuses_new_ones_and_writes_the_use() {
    run(|| async {
        let bench = Bench::with(RegistryConfig {
            arbiters: 2,
            ..RegistryConfig::default()
        });
        let begun: Vec<_> = (0..100_u128)
            .map(|token| bench.begin(instance(token as u8 % 3), push(token)))
            .collect();
        eventually("all are in the lane", || bench.lane.calls() == 100).await;
        let registry = bench.registry.clone();
        let closing = tokio::spawn(async move { registry.close().await });
        eventually("closing has begun", || bench.registry.is_closing()).await;
        assert_eq!(
            bench.registry.push(instance(1), push(1)).await,
            Err(Refusal::Draining)
        );
        assert!(!closing.is_finished());
        bench.lane.open(100);
        for push in begun {
            assert_eq!(push.await.unwrap(), sent(false));
        }
        tokio::time::timeout(Duration::from_secs(20), closing)
            .await
            .unwrap()
            .unwrap();
        let written: u64 = (0..3).map(|number| bench.store.sent(instance(number))).sum();
        assert_eq!(
            (
                written,
                bench.registry.snapshot().actors,
                bench.registry.snapshot().in_flight
            ),
            (100, 0, 0)
        );
    });
}

#[test]
fn closing_waits_for_pushes_whose_callers_have_hung_up() {
    run(|| async {
        let bench = Bench::new();
        let caller = bench.begin_in_lane(instance(1), push(1)).await;
        caller.abort();
        let registry = bench.registry.clone();
        let closing = tokio::spawn(async move { registry.close().await });
        eventually("closing has begun", || bench.registry.is_closing()).await;
        assert!(!closing.is_finished());
        bench.lane.open(1);
        closing.await.unwrap();
        assert_eq!(bench.store.sent(instance(1)), 1);
    });
}

#[test]
fn closing_twice_and_closing_an_unused_registry_end() {
    run(|| async {
        let bench = Bench::new();
        bench.registry.close().await;
        bench.registry.close().await;
        assert_eq!(
            bench.registry.push(instance(1), push(1)).await,
            Err(Refusal::Draining)
        );
    });
}
