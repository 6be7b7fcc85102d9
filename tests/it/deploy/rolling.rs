//! What operators and fate do to replicas while instances push through Caddy.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Instant,
};

use futures_util::future::join_all;
use serde_json::json;
use sovereign_relay_simulator::{ApnsKey, Simulators};
use tempfile::TempDir;

use crate::support::{
    answer::{Answer, Instance},
    fleet::{Fleet, Replica},
    grown::grown_instances,
    relay::RelayOptions,
    talk::talk,
    until,
};

const REPLICAS: usize = 3;
const CALLERS: usize = 8;
/// As many as one address may enroll instances for in a minute.
const SESSIONS: usize = 10;
const SENT: &str = "sent";

/// A push, and what its caller was told.
struct Told {
    begun: Instant,
    answer: Answer,
}

impl Told {
    fn is_sent(&self) -> bool {
        self.answer.word() == SENT
    }
}

fn options() -> RelayOptions {
    RelayOptions::new()
        .set("RELAY_PUSHES_PER_MINUTE", "1000000")
        .set("RELAY_LOG", "warn,sovereign_relay::app=info")
}

/// Callers push, each one after the other, while something happens to the replicas.
async fn under_load<T>(
    fleet: &mut Fleet,
    event: impl AsyncFnOnce(&Fleet, &mut [Replica]) -> T,
) -> (Vec<Told>, T) {
    let (instances, stop) = (grown_instances(CALLERS), AtomicBool::new(false));
    let mut replicas = std::mem::take(&mut fleet.replicas);
    let callers = instances.iter().map(|instance| push_on(fleet, instance, &stop));
    let happening = async {
        join_all(replicas.iter().map(carries)).await;
        let outcome = event(fleet, &mut replicas).await;
        join_all(replicas.iter().map(carries)).await;
        stop.store(true, Ordering::SeqCst);
        outcome
    };
    let (told, outcome) = tokio::join!(join_all(callers), happening);
    fleet.replicas = replicas;
    (told.into_iter().flatten().collect(), outcome)
}

/// The same while peers talk, none of whose messages is lost or repeated.
async fn under_load_and_talk<T>(
    fleet: &mut Fleet,
    event: impl AsyncFnOnce(&Fleet, &mut [Replica]) -> T,
) -> (Vec<Told>, T) {
    let sessions = join_all((0..SESSIONS).map(|_| fleet.session())).await;
    let (stop, heard) = (AtomicBool::new(false), AtomicUsize::new(0));
    let talking = join_all(sessions.iter().map(|session| talk(session, &heard, &stop)));
    let pushing = async {
        let outcome = under_load(fleet, event).await;
        stop.store(true, Ordering::SeqCst);
        outcome
    };
    let (_, outcome) = tokio::join!(talking, pushing);
    assert!(heard.load(Ordering::SeqCst) >= SESSIONS, "{heard:?}");
    outcome
}

async fn push_on(fleet: &Fleet, instance: &Instance, stop: &AtomicBool) -> Vec<Told> {
    let (caller, mut told) = (fleet.caller(), Vec::new());
    while !stop.load(Ordering::SeqCst) {
        let token = fleet.simulators.apns.new_token();
        let push = json!({ "platform": "ios", "deviceToken": token, "encryptedPayload": "sealed" });
        let begun = Instant::now();
        let answer = caller.try_push(instance, &push).await.expect("an answer");
        told.push(Told { begun, answer });
    }
    told
}

/// Waits until Caddy gives this replica pushes.
async fn carries(replica: &Replica) {
    until("Caddy has found it", async || {
        replica.relay().metric("relay_pushes_total", SENT).await > 0.0
    })
    .await;
}

/// Every push was sent, and reached its device once.
#[track_caller]
fn assert_all_sent(fleet: &Fleet, told: &[Told]) {
    let failed: Vec<_> = told.iter().filter(|told| !told.is_sent()).collect();
    let answers: Vec<_> = failed.iter().map(|told| &told.answer).collect();
    assert!(
        failed.is_empty(),
        "{} of {}: {answers:?}",
        failed.len(),
        told.len()
    );
    let arrived = fleet.simulators.apns.inbox().total();
    assert_eq!(
        arrived,
        told.len() as u64,
        "what was sent arrived, so each did once"
    );
}

/// As an operator does it: the next one only when the one before is back.
async fn restart_all(_: &Fleet, replicas: &mut [Replica]) {
    for replica in replicas {
        let (status, log) = replica.stop().await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(!log.contains("not everything ended in time"), "{log}");
        replica.start_again().await;
        carries(replica).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_of_all_replicas_under_load_fails_and_doubles_no_push_and_loses_no_message() {
    let mut fleet = Fleet::start_with(REPLICAS, |_| options()).await;
    let (told, ()) = under_load_and_talk(&mut fleet, restart_all).await;
    assert_all_sent(&fleet, &told);
}

/// Those that it had under way, and, up to Caddy 2.11.1, half of those until the next check.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replica_fails_pushes_until_caddy_has_checked_and_doubles_none_and_loses_no_message() {
    let mut fleet = Fleet::start_with(REPLICAS, |_| options()).await;
    let (told, noticed) = under_load_and_talk(&mut fleet, async |fleet, replicas| {
        replicas[0].kill().await;
        until("a check has failed", async || {
            fleet.caddy.has_missed(replicas[0].place())
        })
        .await;
        let (noticed, inbox) = (Instant::now(), fleet.simulators.apns.inbox());
        let then = inbox.total();
        until("the other one goes on", async || inbox.total() > then + 500).await;
        replicas[0].start_again().await;
        noticed
    })
    .await;
    for Told { begun, answer } in told.iter().filter(|told| !told.is_sent()) {
        let status = answer.status.as_u16();
        assert_eq!(
            (status, answer.word(), answer.retry_after()),
            (502, "send_failed", 1)
        );
        assert!(*begun < noticed, "{answer:?}");
    }
    let arrived = fleet.simulators.apns.inbox().total();
    assert!(arrived <= told.len() as u64, "{arrived} of {}", told.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn new_credentials_reach_every_replica_and_no_push_fails_over_it() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("relay.toml");
    let from_file = |simulators: &Simulators| {
        write(&file, &simulators.apns.key());
        options()
            .without("APNS_KEY")
            .without("APNS_KEY_ID")
            .set("RELAY_CONFIG", file.to_str().unwrap())
    };
    let mut fleet = Fleet::start_with(2, from_file).await;
    let (told, ()) = under_load(&mut fleet, async |fleet, replicas| {
        let simulators = &fleet.simulators;
        let (old, new) = (simulators.apns.key(), simulators.apns.new_key().unwrap());
        write(&file, &new);
        for replica in &mut *replicas {
            replica.relay().hang_up();
        }
        until("both have taken it", async || {
            replicas
                .iter()
                .all(|replica| replica.relay().log().contains("credentials reloaded"))
        })
        .await;
        signed_with_another(simulators, &old).await;
        // Whoever still used the old one would be told so.
        simulators.apns.revoke_key(&old.key_id);
        let inbox = simulators.apns.inbox();
        let then = inbox.total();
        until("pushes go on", async || inbox.total() > then + 500).await;
    })
    .await;
    assert_all_sent(&fleet, &told);
}

fn write(file: &Path, key: &ApnsKey) {
    let text = format!(
        "apns_key = \"\"\"\n{}\"\"\"\napns_key_id = \"{}\"\n",
        key.pem, key.key_id
    );
    std::fs::write(file, text).unwrap();
}

/// Waits until of the last deliveries, more than are under way at once, none is signed with the old key.
async fn signed_with_another(simulators: &Simulators, old: &ApnsKey) {
    until("the new key is used", async || {
        let deliveries = simulators.apns.inbox().all();
        let last = deliveries.iter().rev().take(4 * CALLERS);
        last.map(|delivery| jsonwebtoken::decode_header(&delivery.jwt).unwrap().kid)
            .all(|key| key.as_deref() != Some(&old.key_id))
    })
    .await;
}
