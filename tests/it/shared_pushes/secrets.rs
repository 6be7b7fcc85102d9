//! The enrollment secret is changed: replicas of neighbouring steps run side by side and name a push differently.

use sovereign_relay_simulator::Behaviour;

use super::*;
use crate::support::secret_change::steps;

/// A replica of each step.
async fn place() -> Place {
    let redis = Server::start();
    let [first, others @ ..] = steps().map(|step| step.set("REDIS_URL", redis.url()));
    let world = World::start_with(SimulatorOptions::default(), first).await;
    world.simulators.set_recording(true);
    let others = join_all(others.map(|step| world.another_relay(step))).await;
    Place { redis, world, others }
}

/// Both ways round.
fn neighbours(place: &Place) -> Vec<(&Relay, &Relay)> {
    let pairs = place.replicas().zip(place.replicas().skip(1));
    pairs
        .flat_map(|(one, other)| [(one, other), (other, one)])
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_at_one_step_is_replayed_at_its_neighbours() {
    let place = place().await;
    let neighbours = neighbours(&place);
    for (one, other) in &neighbours {
        let (instance, push) = (one.enroll().await, place.push());
        let first = keyed(one, &instance, &push, "key-1").await;
        assert_eq!((first.word(), is_replayed(&first)), ("sent", false));
        let repeat = keyed(other, &instance, &push, "key-1").await;
        assert_eq!((repeat.word(), is_replayed(&repeat)), ("sent", true));
        assert_eq!(repeat.body, first.body);
        let different = keyed(other, &instance, &place.push(), "key-1").await;
        assert_eq!(different.word(), "idempotency_conflict");
    }
    assert_eq!(
        place.world.simulators.apns.inbox().total(),
        neighbours.len() as u64
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn repeats_at_replicas_of_two_steps_while_the_first_is_in_flight_wait_for_it() {
    let place = place().await;
    let slowly = Behaviour::accept().after(Duration::from_millis(700));
    place.world.simulators.apns.script().always(slowly);
    let neighbours = neighbours(&place);
    let pairs = neighbours.iter().map(async |(one, other)| {
        let (instance, push) = (one.enroll().await, place.push());
        let calls = [one, other].into_iter().cycle().take(6);
        let answers = join_all(calls.map(|relay| keyed(relay, &instance, &push, "key-2"))).await;
        assert!(
            answers.iter().all(|answer| answer.word() == "sent"),
            "{answers:?}"
        );
        assert_eq!(answers.iter().filter(|answer| !is_replayed(answer)).count(), 1);
    });
    join_all(pairs).await;
    assert_eq!(
        place.world.simulators.apns.inbox().total(),
        neighbours.len() as u64
    );
}
