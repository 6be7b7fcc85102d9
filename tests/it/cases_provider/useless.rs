//! An APNs connection that is open and answers every PING, but carries no push any more: nothing has to be restarted.

use futures_util::future::join_all;
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{Behaviour, apns::verdict};

use super::{assert_all_sent, push, pushes, send_all, world};
use crate::support::{
    grown::{grown_instance, grown_instances},
    until,
    world::World,
};

/// INTERNAL_ERROR of HTTP/2.
const INTERNAL_ERROR: u32 = 2;
/// The longest step of the breaker, in seconds.
const LONGEST_STEP: u64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn an_apns_connection_that_refuses_every_stream_is_replaced_and_costs_no_push() {
    costs_no_push(Behaviour::refuse_stream()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apns_connection_that_answers_503_to_everything_is_replaced_and_costs_no_push() {
    costs_no_push(verdict::service_unavailable()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apns_connection_that_resets_every_stream_is_replaced_within_the_breakers_back_off() {
    costs_the_pushes_of_a_moment(Behaviour::reset_stream(INTERNAL_ERROR)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apns_connection_that_answers_no_stream_is_replaced_within_the_breakers_back_off() {
    costs_the_pushes_of_a_moment(Behaviour::never_answer()).await;
}

async fn costs_no_push(behaviour: Behaviour) {
    let world = world("17s").await;
    let instances = grown_instances(2);
    assert_all_sent(&send_all(&world, &instances, &pushes(&world, Platform::Ios, 1), 1).await);
    let apns = &world.simulators.apns;
    apns.script().connection(1).always(behaviour);
    assert_all_sent(&send_all(&world, &instances, &pushes(&world, Platform::Ios, 100), 4).await);
    assert!(replaced(&world).await >= 1.0);
    assert_eq!(apns.inbox().total(), 101, "none was sent twice");
}

/// So many at a time that the breaker opens too: its probe goes over another connection and closes it.
async fn costs_the_pushes_of_a_moment(behaviour: Behaviour) {
    let world = world("2s").await;
    let instance = grown_instance();
    let push_one = async || world.relay.push(&instance, &push(&world, Platform::Ios)).await;
    assert_eq!(push_one().await.word(), "sent");
    let script = world.simulators.apns.script();
    script.connection(1).always(behaviour);
    let lost = join_all((0..40).map(|_| push_one())).await;
    assert!(lost.iter().any(|answer| answer.word() == "failed"), "{lost:?}");
    until("a push is let through", async || {
        let answer = push_one().await;
        let is_in_step = answer.word() == "overloaded" && answer.retry_after() <= LONGEST_STEP;
        assert!(is_in_step || answer.word() == "sent", "{answer:?}");
        !is_in_step
    })
    .await;
    assert_all_sent(&join_all((0..40).map(|_| push_one())).await);
    assert!(replaced(&world).await >= 1.0);
}

async fn replaced(world: &World) -> f64 {
    let name = "relay_apns_connections_replaced_total";
    world.relay.metric(name, "provider=\"apns-production\"").await
}
