use super::*;
use crate::push::PushName;

const KEY: u128 = 1;

fn identity(message: u128) -> Idempotency {
    Idempotency::new(PushName { key: KEY, message }, [])
}

fn answered(replayed: bool) -> Outcome {
    Ok(Answered {
        answer: PushAnswer::sent(Some("id".to_owned())),
        replayed,
    })
}

fn first(table: &InFlight) -> Claim {
    match table.begin(&identity(10)) {
        Begin::First(claim) => claim,
        Begin::Wait(_) | Begin::Conflict => panic!("the key should be free"),
    }
}

fn wait(table: &InFlight) -> oneshot::Receiver<Outcome> {
    match table.begin(&identity(10)) {
        Begin::Wait(receiver) => receiver,
        Begin::First(_) | Begin::Conflict => panic!("the key should be taken"),
    }
}

#[test]
fn a_repeat_waits_for_the_first_and_gets_its_answer_as_a_replay() {
    let table = InFlight::default();
    let claim = first(&table);
    let mut waiter = wait(&table);
    assert!(waiter.try_recv().is_err());
    claim.finish(&answered(false));
    assert_eq!(waiter.try_recv().unwrap(), answered(true));
    assert_eq!(table.len(), 0);
}

#[test]
fn a_repeat_of_a_refused_push_is_refused_alike() {
    let table = InFlight::default();
    let claim = first(&table);
    let mut waiter = wait(&table);
    claim.finish(&Err(Refusal::Draining));
    assert_eq!(waiter.try_recv().unwrap(), Err(Refusal::Draining));
}

#[test]
fn another_message_under_a_key_in_flight_is_a_conflict_and_afterwards_free() {
    let table = InFlight::default();
    let claim = first(&table);
    assert!(matches!(table.begin(&identity(11)), Begin::Conflict));
    claim.finish(&answered(false));
    assert!(matches!(table.begin(&identity(11)), Begin::First(_)));
}

#[test]
fn waiters_of_a_first_that_dies_hear_of_it_and_the_key_is_free() {
    let table = InFlight::default();
    let claim = first(&table);
    let mut waiter = wait(&table);
    drop(claim);
    assert_eq!(waiter.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    drop(first(&table));
    assert_eq!(table.len(), 0);
}

#[test]
fn a_waiter_that_hung_up_leaves_nothing_behind() {
    let table = InFlight::default();
    let _claim = first(&table);
    for _ in 0..100 {
        drop(wait(&table));
    }
    assert!(table.waiters(KEY) <= 1);
}

#[test]
fn an_old_claim_does_not_free_its_successors_key() {
    let table = InFlight::default();
    let old = first(&table);
    let stale = Claim {
        table: table.clone(),
        identity: identity(10),
        serial: old.serial,
    };
    drop(old);
    let _successor = first(&table);
    drop(stale);
    assert_eq!(table.len(), 1);
}
