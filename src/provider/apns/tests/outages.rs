//! Providers that vanish, refuse or fall silent.

use std::{collections::HashSet, time::Duration};

use futures_util::future::join_all;
use sovereign_relay_actors::ports::{Failure, Health, Outcome, PushProvider as _};
use sovereign_relay_protocol::push::Reason;
use sovereign_relay_simulator::{ApnsOptions, Behaviour, SimulatorOptions};

use super::kit::{Kit, SOON, failure, is_sent, quick, until};
use crate::provider::apns::{Tuning, slots::UNCONNECTED};

/// Asked for a PONG within milliseconds.
fn impatient() -> Tuning {
    Tuning {
        quiet_when_busy: Duration::from_millis(200),
        quiet_when_idle: Duration::from_millis(400),
        pong_within: Duration::from_secs(1),
        ..quick()
    }
}

fn lost_connection(failure: &Failure) -> u64 {
    match failure.health {
        Health::ConnectionLost { connection } => connection,
        Health::Answered | Health::Faulty | Health::Unknown => panic!("{failure:?}"),
    }
}

#[tokio::test]
async fn a_half_open_connection_is_replaced_and_its_pushes_end() {
    let kit = Kit::with(SimulatorOptions::default(), impatient()).await;
    assert!(is_sent(&kit.push().await));
    kit.apns().blackhole(true);
    let lost = kit.push_many(20).await;
    let mut connections = HashSet::new();
    for outcome in lost {
        let failure = failure(outcome);
        assert_eq!(
            (failure.reason, failure.retryable),
            (Reason::UnknownOutcome, true)
        );
        connections.insert(lost_connection(&failure));
    }
    assert_eq!(connections.len(), 1, "one loss, whatever its streams");
    assert!(is_sent(&kit.push().await));
    assert_eq!(kit.apns().connections_accepted(), 2);
    kit.stop().await;
}

#[tokio::test]
async fn an_idle_half_open_connection_is_replaced_without_costing_a_push() {
    let kit = Kit::with(SimulatorOptions::default(), impatient()).await;
    assert!(is_sent(&kit.push().await));
    let mut capacity = kit.provider.capacity();
    capacity.wait_for(|streams| *streams == 4000).await.unwrap();
    kit.apns().blackhole(true);
    tokio::time::timeout(SOON, capacity.wait_for(|streams| *streams == UNCONNECTED))
        .await
        .unwrap()
        .unwrap();
    assert!(is_sent(&kit.push().await));
    assert!(kit.apns().pings_received() <= 3);
    kit.stop().await;
}

#[tokio::test]
async fn a_slow_provider_that_answers_pings_keeps_its_connection() {
    let kit = Kit::with(SimulatorOptions::default(), impatient()).await;
    kit.apns()
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(1500)));
    assert!(is_sent(&kit.push().await));
    assert!(kit.apns().pings_received() >= 1);
    assert_eq!(kit.apns().connections_accepted(), 1);
    kit.stop().await;
}

#[tokio::test]
async fn an_unreachable_provider_is_said_by_the_deadline_and_found_again_without_a_restart() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns().refuse_connections(true).await.unwrap();
    kit.apns().kill_connections();
    until(|| *kit.provider.capacity().borrow() == UNCONNECTED).await;
    let lost = join_all((0..10).map(|_| kit.push_within(Duration::from_millis(300)))).await;
    assert!(
        lost.iter().all(|outcome| *outcome == Outcome::Unreachable),
        "{lost:?}"
    );
    let waiting = kit.push();
    let recovery = async { kit.apns().refuse_connections(false).await.unwrap() };
    let (outcome, ()) = tokio::join!(waiting, recovery);
    assert!(
        is_sent(&outcome),
        "a push that waits through the recovery is sent"
    );
    assert!(is_sent(&kit.push().await));
    kit.stop().await;
}

#[tokio::test]
async fn a_black_hole_behind_the_port_costs_a_dial_and_not_the_recovery() {
    let tuning = Tuning {
        dial_within: Duration::from_millis(200),
        ..quick()
    };
    let kit = Kit::with(SimulatorOptions::default(), tuning).await;
    kit.apns().blackhole_new_connections(true);
    assert_eq!(
        kit.push_within(Duration::from_millis(600)).await,
        Outcome::Unreachable
    );
    kit.apns().blackhole_new_connections(false);
    assert!(is_sent(&kit.push().await));
    kit.stop().await;
}

#[tokio::test]
async fn a_peer_that_closes_every_connection_at_once_is_not_dialled_in_a_loop() {
    let kit = Kit::start().await;
    kit.apns().script().always(Behaviour::kill_before_reading());
    let outcomes = join_all((0..10).map(|_| kit.push_within(Duration::from_millis(500)))).await;
    assert!(!outcomes.iter().any(is_sent));
    assert!(
        kit.apns().connections_accepted() <= 40,
        "{}",
        kit.apns().connections_accepted()
    );
    kit.apns().script().clear();
    assert!(is_sent(&kit.push().await));
    kit.stop().await;
}

#[tokio::test]
async fn pushes_that_time_out_while_a_pong_is_due_are_one_lost_connection() {
    let tuning = Tuning {
        pong_within: SOON,
        ..impatient()
    };
    let kit = Kit::with(SimulatorOptions::default(), tuning).await;
    assert!(is_sent(&kit.push().await));
    kit.apns().blackhole(true);
    let lost = join_all((0..20).map(|_| kit.push_within(Duration::from_secs(2)))).await;
    let mut connections = HashSet::new();
    for outcome in lost {
        let failure = failure(outcome);
        assert_eq!(failure.reason, Reason::ProviderTimeout);
        connections.insert(lost_connection(&failure));
    }
    assert_eq!(connections.len(), 1);
    kit.stop().await;
}

#[tokio::test]
async fn a_peer_that_accepts_connections_and_answers_nothing_is_unreachable_to_all_who_were_not_sent() {
    let apns = ApnsOptions {
        raised_stream_limit: 1,
        ..ApnsOptions::default()
    };
    let options = SimulatorOptions {
        apns,
        ..SimulatorOptions::default()
    };
    let kit = Kit::with(options, quick()).await;
    kit.apns().script().always(Behaviour::never_answer());
    let provider = kit.provider.clone();
    let first = tokio::spawn(provider.deliver(kit.delivery(SOON)));
    until(|| kit.apns().requests_under_way() == 1).await;
    let others = join_all((1..UNCONNECTED).map(|_| kit.push_within(Duration::from_millis(300)))).await;
    assert!(
        others.iter().all(|outcome| *outcome == Outcome::Unreachable),
        "{others:?}"
    );
    assert_eq!(
        *kit.provider.capacity().borrow(),
        UNCONNECTED,
        "enough for the breaker to notice"
    );
    first.abort();
    kit.apns().script().clear();
    assert!(kit.push_many(100).await.iter().all(is_sent));
    kit.stop().await;
}

#[tokio::test]
async fn a_burst_that_waits_for_a_slow_dial_is_sent_over_that_one_connection() {
    let kit = Kit::start().await;
    kit.apns().blackhole_new_connections(true);
    let released = async {
        until(|| kit.apns().connections_accepted() > 0).await;
        kit.apns().blackhole_new_connections(false);
        kit.apns().blackhole(false);
    };
    let (outcomes, ()) = tokio::join!(kit.push_many(300), released);
    assert!(outcomes.iter().all(is_sent));
    assert_eq!(kit.apns().connections_accepted(), 1);
    kit.stop().await;
}
