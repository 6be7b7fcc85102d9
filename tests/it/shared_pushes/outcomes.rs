//! One memory of what was answered under idempotency keys.

use sovereign_relay_simulator::Behaviour;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_at_another_replica_gets_the_first_outcome_and_reaches_no_provider() {
    let place = Place::of(3).await;
    let (instance, push) = (place.world.relay.enroll().await, place.push());
    for (number, relay) in place.replicas().enumerate() {
        let answer = keyed(relay, &instance, &push, "key-1").await;
        assert_eq!((answer.word(), is_replayed(&answer)), ("sent", number > 0));
    }
    let other = keyed(&place.others[0], &instance, &place.push(), "key-1").await;
    assert_eq!(other.word(), "idempotency_conflict");
    assert_eq!(place.world.simulators.apns.inbox().total(), 1);
    let stranger = place.others[1].enroll().await;
    let answer = keyed(&place.others[1], &stranger, &push, "key-1").await;
    assert!(!is_replayed(&answer), "a key belongs to its instance");
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_at_all_replicas_while_the_first_is_in_flight_wait_for_it() {
    let place = Place::of(3).await;
    let (instance, push) = (place.world.relay.enroll().await, place.push());
    let slowly = Behaviour::accept().after(Duration::from_millis(700));
    place.world.simulators.apns.script().always(slowly);
    let relays: Vec<_> = place.replicas().collect();
    let calls = relays.iter().cycle().take(9);
    let calls = calls.map(|relay| keyed(relay, &instance, &push, "key-2"));
    let answers = join_all(calls).await;
    assert!(
        answers.iter().all(|answer| answer.word() == "sent"),
        "{answers:?}"
    );
    assert_eq!(answers.iter().filter(|answer| !is_replayed(answer)).count(), 1);
    assert_eq!(place.world.simulators.apns.inbox().total(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_transient_failure_at_one_replica_a_repeat_at_another_is_a_new_push() {
    let place = Place::of(2).await;
    let (instance, push) = (place.world.relay.enroll().await, place.push());
    place
        .world
        .simulators
        .apns
        .script()
        .next(2, Behaviour::status(503));
    let began = Instant::now();
    let failed = keyed(&place.world.relay, &instance, &push, "key-3").await;
    assert_eq!(
        (failed.word(), &failed.body["retryable"]),
        ("failed", &json!(true)),
        "{failed:?}"
    );
    let answer = keyed(&place.others[0], &instance, &push, "key-3").await;
    assert_eq!((answer.word(), is_replayed(&answer)), ("sent", false));
    // Whoever waits for another's push does so until its deadline is over.
    assert!(began.elapsed() < Duration::from_secs(10), "it waited for nothing");
}
