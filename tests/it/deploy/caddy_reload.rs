//! An operator edits Caddy's configuration while peers are connected.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use tokio::time::timeout;

use crate::support::talk::talk;
use crate::support::{
    DEADLINE,
    caddy::Caddy,
    fleet::Fleet,
    peer::{load, resume},
    until,
};

const GOING_AWAY: u16 = 1001;
const SETTING: &str = "max-age=31536000";
const RELOADS: usize = 3;

async fn change(caddy: &Caddy, nth: usize) {
    caddy.reload_with(SETTING, &format!("max-age={nth}")).await;
}

#[tokio::test]
async fn a_changed_configuration_closes_every_websocket_and_to_the_relay_that_is_a_departure_like_any_other()
{
    let fleet = Fleet::start(1).await;
    let session = fleet.session().await;
    let (mut a, _) = session.join("a", load(1)).await;
    let (mut b, _) = session.join("b", load(2)).await;
    a.message(1, "before").await;
    a.stored(1).await;
    change(&fleet.caddy, 1).await;
    assert_eq!((a.end().await, b.end().await), (GOING_AWAY, GOING_AWAY));
    let (mut a, welcome) = session.join("a", resume(1, 2, 0)).await;
    assert_eq!((&welcome["gen"], &welcome["next"]), (&json!(1), &json!(2)));
    a.message(2, "after").await;
    let (mut b, welcome) = session.join("b", resume(2, 2, 0)).await;
    assert_eq!(welcome["gen"], 1);
    for content in ["before", "after"] {
        assert_eq!(b.next_of("msg").await["d"], content);
    }
    let log = fleet.replicas[0].relay().log();
    let (_, since_its_start) = log.split_once("\"serving\"").unwrap();
    let complains = ["\"WARN\"", "\"ERROR\""]
        .iter()
        .any(|level| since_its_start.contains(level));
    assert!(!complains, "{log}");
}

#[tokio::test]
async fn a_configuration_that_is_the_same_disturbs_nobody() {
    let fleet = Fleet::start(1).await;
    let session = fleet.session().await;
    let (mut a, _) = session.join("a", load(1)).await;
    fleet.caddy.reload_with(SETTING, SETTING).await;
    assert!(a.so_far().await.is_empty(), "still connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_talk_while_caddy_changes_its_configuration_resume_and_lose_and_repeat_nothing() {
    let fleet = Fleet::start(1).await;
    let session = fleet.session().await;
    let (stop, heard) = (AtomicBool::new(false), AtomicUsize::new(0));
    let talking = async { tokio::join!(talk(&session, &heard, &stop), change_all(&fleet, &heard, &stop)) };
    timeout(DEADLINE * 3, talking).await.expect("all arrives");
}

/// Each time when both are connected and something has arrived since the last.
async fn change_all(fleet: &Fleet, heard: &AtomicUsize, stop: &AtomicBool) {
    let relay = fleet.replicas[0].relay();
    for nth in 1..=RELOADS {
        let before = heard.load(Ordering::SeqCst);
        until("messages arrive", async || {
            heard.load(Ordering::SeqCst) > before + 5
        })
        .await;
        // What waited may arrive before its sender is back.
        until("both are connected", async || {
            relay.metric("relay_signal_welcomed_sockets", "").await == 2.0
        })
        .await;
        change(&fleet.caddy, nth).await;
        until("both were closed", async || {
            relay.metric("relay_signal_closes_total", "").await >= 2.0 * nth as f64
        })
        .await;
    }
    stop.store(true, Ordering::SeqCst);
}
