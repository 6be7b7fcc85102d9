//! Streams and connections: how many, and who gets them.

use std::time::Duration;

use futures_util::future::join_all;
use sovereign_relay_actors::ports::{Outcome, PushProvider as _};
use sovereign_relay_simulator::{ApnsOptions, Behaviour, LimitEnforcement, SimulatorOptions};

use super::kit::{Kit, SOON, is_sent, quick, until};
use crate::provider::apns::{Tuning, slots::UNCONNECTED};

fn one_connection() -> Tuning {
    Tuning {
        connections: 1,
        ..quick()
    }
}

#[tokio::test]
async fn ten_thousand_pushes_on_one_connection_without_a_reset() {
    let kit = Kit::with(SimulatorOptions::default(), one_connection()).await;
    kit.simulators.set_recording(false);
    for _ in 0..10 {
        assert!(kit.push_many(1000).await.iter().all(is_sent));
    }
    let stats = kit.apns().stats();
    assert_eq!(
        (
            stats.resets_received,
            stats.limit_violations,
            stats.priorities_received
        ),
        (0, 0, 0)
    );
    assert_eq!(kit.apns().connections_accepted(), 1);
    kit.stop().await;
}

#[tokio::test]
async fn the_stream_limit_holds_while_it_changes_under_load() {
    let apns = ApnsOptions {
        limit_enforcement: LimitEnforcement::GoAway,
        ..ApnsOptions::default()
    };
    let kit = Kit::with(
        SimulatorOptions {
            apns,
            ..SimulatorOptions::default()
        },
        one_connection(),
    )
    .await;
    kit.apns()
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(1)));
    let changes = async {
        for limit in [1, 10, 1000, 1, 5, 1, 100, 1, 1000] {
            let so_far = kit.apns().requests().total();
            kit.apns().set_stream_limit(limit);
            kit.apns()
                .requests()
                .wait_for(usize::try_from(so_far).unwrap() + 20, SOON)
                .await
                .unwrap();
        }
    };
    let (outcomes, ()) = tokio::join!(kit.push_many(3000), changes);
    assert!(outcomes.iter().all(is_sent));
    assert_eq!(kit.apns().limit_violations(), 0);
    assert_eq!(kit.apns().connections_accepted(), 1);
    kit.stop().await;
}

#[tokio::test]
async fn a_burst_on_a_cold_start_sends_its_first_push_alone() {
    let apns = ApnsOptions {
        limit_enforcement: LimitEnforcement::GoAway,
        ..ApnsOptions::default()
    };
    let kit = Kit::with_apns(apns).await;
    assert!(kit.push_many(900).await.iter().all(is_sent));
    assert_eq!(
        (kit.apns().limit_violations(), kit.apns().connections_accepted()),
        (0, 1)
    );
    kit.stop().await;
}

#[tokio::test]
async fn a_peer_that_never_allows_more_than_one_stream_gets_one_at_a_time_on_each_connection() {
    let apns = ApnsOptions {
        raised_stream_limit: 1,
        ..ApnsOptions::default()
    };
    let kit = Kit::with_apns(apns).await;
    // However long it takes to dial, beside pushes that take no time.
    while kit.apns().connections_accepted() < 4 {
        assert!(kit.push_many(200).await.iter().all(is_sent));
    }
    assert!(kit.push_many(200).await.iter().all(is_sent));
    assert_eq!(kit.apns().limit_violations(), 0);
    assert_eq!(
        (
            kit.apns().stats().most_streams_open,
            kit.apns().connections_accepted()
        ),
        (1, 4)
    );
    kit.stop().await;
}

#[tokio::test]
async fn more_connections_are_opened_when_the_open_ones_are_full_and_never_beyond_the_bound() {
    let apns = ApnsOptions {
        raised_stream_limit: 5,
        ..ApnsOptions::default()
    };
    let kit = Kit::with_apns(apns).await;
    for _ in 0..10 {
        assert!(is_sent(&kit.push().await));
    }
    assert_eq!(
        kit.apns().connections_accepted(),
        1,
        "one after the other needs one"
    );
    kit.apns()
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(20)));
    assert!(kit.push_many(400).await.iter().all(is_sent));
    assert_eq!(kit.apns().connections_accepted(), 4);
    assert_eq!(kit.apns().limit_violations(), 0);
    kit.stop().await;
}

#[tokio::test]
async fn capacity_follows_what_the_peer_allows() {
    let kit = Kit::start().await;
    let mut capacity = kit.provider.capacity();
    assert_eq!(*capacity.borrow(), UNCONNECTED);
    assert!(is_sent(&kit.push().await));
    capacity.wait_for(|streams| *streams == 4000).await.unwrap();
    kit.apns().set_stream_limit(10);
    capacity.wait_for(|streams| *streams == 40).await.unwrap();
    kit.apns().kill_connections();
    capacity
        .wait_for(|streams| *streams == UNCONNECTED)
        .await
        .unwrap();
    kit.stop().await;
}

#[tokio::test]
async fn goaway_under_load_loses_no_push_and_sends_none_twice() {
    let kit = Kit::start().await;
    kit.apns()
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(2)));
    let interrupted = async {
        for round in 1..=5 {
            kit.apns().requests().wait_for(round * 200, SOON).await.unwrap();
            kit.apns().goaway("Shutdown");
        }
    };
    let (outcomes, ()) = tokio::join!(kit.push_many(2000), interrupted);
    assert!(
        outcomes.iter().all(is_sent),
        "{:?}",
        outcomes.iter().find(|outcome| !is_sent(outcome))
    );
    assert_eq!(kit.apns().inbox().total(), 2000);
    assert!(kit.apns().connections_accepted() >= 2);
    kit.stop().await;
}

#[tokio::test]
async fn streams_above_goaways_last_id_are_sent_again_over_another_connection() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    kit.apns().script().hold(true);
    let cut = async {
        until(|| kit.apns().requests_under_way() >= 50).await;
        kit.apns().goaway_at("Shutdown", 1);
        until(|| kit.apns().connections_accepted() == 2).await;
        kit.apns().script().hold(false);
    };
    let (outcomes, ()) = tokio::join!(kit.push_many(50), cut);
    assert!(outcomes.iter().all(is_sent));
    assert_eq!(kit.apns().inbox().total(), 51);
    kit.stop().await;
}

#[tokio::test]
async fn callers_that_hang_up_give_their_streams_back() {
    let apns = ApnsOptions {
        raised_stream_limit: 5,
        ..ApnsOptions::default()
    };
    let kit = Kit::with(
        SimulatorOptions {
            apns,
            ..SimulatorOptions::default()
        },
        one_connection(),
    )
    .await;
    assert!(is_sent(&kit.push().await));
    kit.apns().script().always(Behaviour::never_answer());
    let hung_up = tokio::time::timeout(Duration::from_millis(200), kit.push_many(50)).await;
    assert!(hung_up.is_err());
    kit.apns().script().clear();
    assert!(kit.push_many(50).await.iter().all(is_sent));
    kit.stop().await;
}

#[tokio::test]
async fn closing_ends_every_connection_and_later_pushes_are_answered() {
    let kit = Kit::start().await;
    assert!(kit.push_many(50).await.iter().all(is_sent));
    kit.provider.close().await;
    until(|| kit.apns().connections_open() == 0).await;
    assert!(!is_sent(&kit.push_within(Duration::from_millis(200)).await));
    kit.stop().await;
}

#[tokio::test]
async fn dropping_the_provider_closes_its_connections() {
    let kit = Kit::start().await;
    let replica = kit.replica();
    assert!(is_sent(&replica.deliver(kit.delivery(SOON)).await));
    drop(replica);
    until(|| kit.apns().connections_open() == 0).await;
    kit.stop().await;
}

#[tokio::test]
async fn thousands_of_pushes_that_time_out_cost_no_connection() {
    let kit = Kit::with(SimulatorOptions::default(), one_connection()).await;
    assert!(is_sent(&kit.push().await));
    kit.apns().script().always(Behaviour::never_answer());
    for _ in 0..3 {
        let late = join_all((0..900).map(|_| kit.push_within(Duration::from_millis(200)))).await;
        assert!(late.iter().all(|outcome| !is_sent(outcome)));
    }
    kit.apns().script().clear();
    assert!(is_sent(&kit.push().await));
    assert_eq!(kit.apns().connections_accepted(), 1);
    kit.stop().await;
}

#[tokio::test]
async fn a_push_whose_time_is_over_is_not_sent() {
    let kit = Kit::start().await;
    assert!(is_sent(&kit.push().await));
    assert!(matches!(
        kit.push_within(Duration::ZERO).await,
        Outcome::Overloaded { .. }
    ));
    assert_eq!(kit.apns().inbox().total(), 1);
    kit.stop().await;
}
