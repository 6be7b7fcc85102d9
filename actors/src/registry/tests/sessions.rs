use std::{sync::atomic::Ordering, time::Duration};

use futures_util::future::join_all;
use sovereign_relay_protocol::limits::SESSIONS_PER_MINUTE;

use super::support::*;
use crate::{
    instance::signal::{Admitted, SessionRefusal, TurnFor},
    ports::Standing,
};

const SUSPENDED: SessionRefusal = SessionRefusal::Suspended { retry_after: None };
const ALLOWED: Admitted = Admitted { turn: true };
const PLAIN: Admitted = Admitted { turn: false };

fn allowed() -> Standing {
    Standing {
        turn: Some(true),
        ..grown()
    }
}

#[test]
fn the_standing_holds_for_the_first_session_of_an_actor() {
    run(|| async {
        let bench = Bench::new();
        bench.store.suspend(instance(1));
        bench
            .store
            .standings
            .lock()
            .unwrap()
            .insert(instance(2), allowed());
        let ask = |number| bench.registry.admit_session(instance(number), TurnFor::Allowed);
        assert_eq!(ask(1).await, Err(SUSPENDED));
        assert_eq!(ask(2).await, Ok(ALLOWED));
        assert_eq!(ask(3).await, Ok(PLAIN));
    });
}

#[test]
fn the_operators_word_holds_when_refresh_returns() {
    run(|| async {
        let bench = Bench::new();
        let ask = || bench.registry.admit_session(instance(1), TurnFor::Allowed);
        assert_eq!(ask().await, Ok(PLAIN));
        bench
            .store
            .standings
            .lock()
            .unwrap()
            .insert(instance(1), allowed());
        bench.registry.refresh(instance(1)).await;
        assert_eq!(ask().await, Ok(ALLOWED));
        bench.store.suspend(instance(1));
        bench.registry.refresh(instance(1)).await;
        assert_eq!(ask().await, Err(SUSPENDED));
    });
}

#[test]
fn without_the_store_sessions_are_made_and_nobody_gets_turn_who_needs_the_operators_word() {
    run(|| async {
        let bench = Bench::new();
        bench
            .store
            .standings
            .lock()
            .unwrap()
            .insert(instance(1), allowed());
        bench.store.failing.store(true, Ordering::SeqCst);
        let admitted = bench.registry.admit_session(instance(1), TurnFor::Allowed).await;
        assert_eq!(admitted, Ok(PLAIN));
    });
}

#[test]
fn of_many_at_once_a_minutes_budget_passes_and_a_neighbour_keeps_its_own() {
    run(|| async {
        let bench = Bench::new();
        let ask = |number| bench.registry.admit_session(instance(number), TurnFor::None);
        let answers = join_all((0..SESSIONS_PER_MINUTE + 30).map(|_| ask(1))).await;
        let passed = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(passed, SESSIONS_PER_MINUTE as usize);
        assert!(ask(2).await.is_ok());
        bench.clock.advance(Duration::from_secs(60));
        assert!(ask(1).await.is_ok());
    });
}

#[test]
fn a_registry_that_closes_makes_no_more_sessions() {
    run(|| async {
        let bench = Bench::new();
        bench.registry.close().await;
        let refused = bench.registry.admit_session(instance(1), TurnFor::None).await;
        assert_eq!(refused, Err(SessionRefusal::Draining));
    });
}
