//! Connections that are open, answer every PING and carry no push any more, while others are well.

use std::{collections::HashSet, time::Duration};

use sovereign_relay_actors::ports::{Clock as _, Outcome, PushProvider as _};
use sovereign_relay_protocol::push::Reason;
use sovereign_relay_simulator::{Behaviour, apns::verdict};

use super::kit::{Kit, SOON, failure, is_sent, until};

/// Long enough for its silence to say something of the connection.
const TELLING: Duration = Duration::from_millis(1_000);
/// INTERNAL_ERROR of HTTP/2.
const INTERNAL_ERROR: u32 = 2;

/// A kit whose first connection has sent a push and does this from now on.
async fn first_connection_does(behaviour: Behaviour) -> Kit {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns().script().connection(1).always(behaviour);
    kit
}

fn assert_each_was_delivered_once(kit: &Kit, count: usize) {
    let delivered = kit.apns().inbox().all();
    let ids: HashSet<_> = delivered.iter().map(|delivery| &delivery.apns_id).collect();
    assert_eq!((delivered.len(), ids.len()), (count, count));
}

#[tokio::test]
async fn one_that_refuses_every_stream_costs_no_push_and_is_replaced() {
    let kit = first_connection_does(Behaviour::refuse_stream()).await;
    for _ in 0..20 {
        assert!(is_sent(&kit.push().await));
    }
    until(|| (kit.apns().connections_open() as u64) < kit.apns().connections_accepted()).await;
    assert_each_was_delivered_once(&kit, 21);
    kit.stop().await;
}

#[tokio::test]
async fn one_that_answers_503_to_everything_costs_no_push_and_is_replaced() {
    let kit = first_connection_does(verdict::service_unavailable()).await;
    for _ in 0..5 {
        assert!(is_sent(&kit.push().await));
    }
    until(|| (kit.apns().connections_open() as u64) < kit.apns().connections_accepted()).await;
    assert_each_was_delivered_once(&kit, 6);
    kit.stop().await;
}

#[tokio::test]
async fn one_that_resets_every_stream_costs_three_pushes() {
    let kit = first_connection_does(Behaviour::reset_stream(INTERNAL_ERROR)).await;
    for _ in 0..3 {
        assert_eq!(failure(kit.push().await).reason, Reason::UnknownOutcome);
    }
    for _ in 0..20 {
        assert!(is_sent(&kit.push().await));
    }
    assert_eq!(kit.apns().connections_accepted(), 2);
    assert_each_was_delivered_once(&kit, 21);
    kit.stop().await;
}

#[tokio::test]
async fn one_that_answers_no_stream_costs_the_pushes_that_wait_for_it() {
    let kit = first_connection_does(Behaviour::never_answer()).await;
    let lost = futures_util::future::join_all((0..20).map(|_| kit.push_within(TELLING))).await;
    for outcome in lost {
        assert_eq!(failure(outcome).reason, Reason::ProviderTimeout);
    }
    for _ in 0..20 {
        assert!(is_sent(&kit.push().await));
    }
    assert_eq!(kit.apns().connections_accepted(), 2);
    kit.stop().await;
}

#[tokio::test]
async fn what_is_under_way_on_a_replaced_connection_ends_there_and_is_not_doubled() {
    let kit = first_connection_does(Behaviour::refuse_stream()).await;
    let slow = kit.delivery(SOON);
    let sovereign_relay_protocol::token::TargetToken::Apple(token) = &slow.token else {
        panic!("{slow:?}")
    };
    let script = kit.apns().script();
    script
        .device(token.expose())
        .always(Behaviour::accept().after(Duration::from_millis(500)));
    let slow = tokio::spawn(kit.provider.clone().deliver(slow));
    until(|| kit.apns().requests_under_way() == 1).await;
    for _ in 0..20 {
        assert!(is_sent(&kit.push().await));
    }
    assert!(!slow.is_finished(), "it is still under way");
    assert!(is_sent(&slow.await.unwrap()));
    let delivered = kit.apns().inbox().all();
    assert_eq!(delivered.last().unwrap().connection, 1);
    assert_each_was_delivered_once(&kit, 22);
    kit.stop().await;
}

#[tokio::test]
async fn a_repeat_goes_over_the_connection_that_there_is_when_no_other_can_be_opened() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns().refuse_connections(true).await.unwrap();
    kit.apns().script().next(1, verdict::service_unavailable());
    assert!(is_sent(&kit.push().await));
    assert_eq!(kit.apns().inbox().all()[1].connection, 1);
    kit.stop().await;
}

#[tokio::test]
async fn an_apns_that_is_down_behind_every_connection_is_not_dialled_in_a_loop() {
    let kit = Kit::start().await;
    kit.apns()
        .script()
        .always(Behaviour::reset_stream(INTERNAL_ERROR));
    let began = kit.clock.now().mono;
    for _ in 0..500 {
        assert!(matches!(kit.push().await, Outcome::Failed(_)));
    }
    let seconds = (kit.clock.now().mono - began).as_secs();
    assert!(
        kit.apns().connections_accepted() <= 4 + 1 + seconds,
        "{} in {seconds} s",
        kit.apns().connections_accepted()
    );
    kit.apns().script().clear();
    assert!(kit.push_many(100).await.iter().all(is_sent));
    kit.stop().await;
}
