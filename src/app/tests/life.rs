//! Start, stop, and what survives in between.

use std::{net::SocketAddr, time::Duration};

use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use super::kit::{Whole, config, launch};
use crate::{
    app::{
        StartError,
        listener::{CLOSING_REST, closing_time},
        start,
    },
    defaults,
    http::tests::wire::{DEADLINE, Request, exchange, read_answer},
    store::redis::kit::own_place,
};

#[actix_web::test]
async fn a_push_goes_from_the_socket_to_the_provider_and_back() {
    let whole = Whole::start().await;
    let (_, key) = whole.enroll().await;
    let answer = whole.send(Request::push().key(&key)).await;
    assert_eq!(
        (answer.status, answer.json()["result"].as_str()),
        (200, Some("sent"))
    );
    assert_eq!(whole.send(Request::new("GET", "/readyz")).await.status, 200);
    whole.relay.stop().await;
}

/// A key that leaked is replaced without a grace: its finder must not be handed the new one after the next deploy.
#[actix_web::test]
async fn a_new_key_that_was_used_is_handed_out_no_more_after_a_restart() {
    let whole = Whole::start().await;
    let (_, old) = whole.enroll().await;
    let rotate = || {
        Request::new("POST", "/v1/keys/rotate")
            .key(&old)
            .json(&json!({ "graceSeconds": 0 }))
    };
    let new = whole.send(rotate()).await.json()["instanceKey"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(whole.send(Request::push().key(&new)).await.status, 200);
    let whole = whole.restart().await;
    assert_eq!(whole.send(rotate()).await.refusal(), (401, "revoked".to_owned()));
    assert_eq!(whole.send(Request::push().key(&new)).await.status, 200);
    whole.relay.stop().await;
}

/// A relay, an instance's key, and the socket of its push, which has reached the provider and waits there.
async fn push_under_way() -> (Whole, String, TcpStream) {
    let whole = Whole::start_with(0, &[]).await;
    let (_, key) = whole.enroll().await;
    let mut socket = TcpStream::connect(whole.relay.public_addr).await.unwrap();
    socket
        .write_all(&Request::push().key(&key).into_bytes())
        .await
        .unwrap();
    whole.provider.reached.acquire().await.unwrap().forget();
    (whole, key, socket)
}

#[actix_web::test]
async fn a_push_under_way_is_answered_while_the_listener_is_closed_already() {
    let (whole, _, mut socket) = push_under_way().await;
    let (address, provider) = (whole.relay.public_addr, whole.provider.clone());
    let stopping = actix_web::rt::spawn(whole.relay.stop());
    timeout(DEADLINE, refuses(address))
        .await
        .expect("the listener closes");
    provider.gate.add_permits(1);
    let answer = read_answer(&mut socket, false).await;
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    timeout(DEADLINE, stopping).await.expect("the stop ends").unwrap();
}

#[test]
fn the_listener_closes_later_than_any_push_ends_that_the_settings_allow() {
    let millis = |most: Duration| {
        (0..=most.as_millis() as u64)
            .step_by(250)
            .map(Duration::from_millis)
    };
    for grace in millis(defaults::DRAIN_GRACE_MAX) {
        let longest = defaults::STOP_TIME_FOR_PUSHES - grace;
        let closing = closing_time(grace);
        assert!(
            longest + Duration::from_secs(1) <= closing,
            "{grace:?}: {closing:?}"
        );
        assert!(
            grace + closing + CLOSING_REST <= defaults::STOP_TIME,
            "{grace:?}: {closing:?}"
        );
    }
}

/// Returns once nobody listens there.
async fn refuses(address: SocketAddr) {
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[actix_web::test]
async fn during_the_grace_the_relay_is_not_ready_and_still_pushes() {
    let whole = Whole::start_with(1, &[("RELAY_DRAIN_GRACE", "15s"), ("RELAY_PUSH_DEADLINE", "2s")]).await;
    let (_, key) = whole.enroll().await;
    let (public, lifecycle) = (whole.relay.public_addr, whole.relay.lifecycle.clone());
    let stopping = actix_web::rt::spawn(whole.relay.stop());
    while lifecycle.phase() < crate::shutdown::Phase::Draining {
        tokio::task::yield_now().await;
    }
    let send = async |request: Request| exchange(public, &request.into_bytes()).await;
    let ready = send(Request::new("GET", "/readyz")).await;
    assert_eq!(
        (ready.status, ready.json()["status"].as_str()),
        (503, Some("draining"))
    );
    assert_eq!(send(Request::new("GET", "/livez")).await.status, 200);
    assert_eq!(send(Request::push().key(&key)).await.status, 200);
    stopping.abort();
}

#[actix_web::test]
async fn an_idle_connection_does_not_hold_up_the_stop() {
    let whole = Whole::start().await;
    let mut idle = TcpStream::connect(whole.relay.public_addr).await.unwrap();
    idle.write_all(&Request::new("GET", "/livez").into_bytes())
        .await
        .unwrap();
    assert_eq!(read_answer(&mut idle, false).await.status, 200);
    let stopped = timeout(DEADLINE, whole.relay.stop()).await;
    assert!(stopped.is_ok());
    let mut rest = Vec::new();
    let end = tokio::io::AsyncReadExt::read_to_end(&mut idle, &mut rest).await;
    assert!(rest.is_empty(), "closed without a word: {end:?}");
}

#[actix_web::test]
async fn keys_and_withdrawals_outlive_a_restart() {
    let whole = Whole::start().await;
    let ((_, stays), (_, leaves)) = (whole.enroll().await, whole.enroll().await);
    let withdrawn = whole
        .send(Request::new("DELETE", "/v1/enrollment").key(&leaves))
        .await;
    assert_eq!(withdrawn.status, 204);
    let whole = whole.restart().await;
    assert_eq!(whole.send(Request::push().key(&stays)).await.status, 200);
    let refused = whole.send(Request::push().key(&leaves)).await;
    assert_eq!(refused.refusal(), (401, "revoked".to_owned()));
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_planned_restart_doubles_no_push_that_has_an_idempotency_key() {
    let whole = Whole::start().await;
    let (_, key) = whole.enroll().await;
    let push = |name: &str| Request::push().key(&key).header("Idempotency-Key", name);
    let first = whole.send(push("once")).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (200, None));
    let whole = whole.restart().await.restart().await;
    let repeat = whole.send(push("once")).await;
    assert_eq!(repeat.header("idempotent-replayed"), Some("true"));
    assert_eq!(repeat.body, first.body);
    assert_eq!(
        whole.send(push("twice")).await.header("idempotent-replayed"),
        None
    );
    assert_eq!(whole.provider.reached.available_permits(), 2);
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_change_of_the_enrollment_secret_doubles_no_push_that_has_an_idempotency_key() {
    const CURRENT: &str = "RELAY_ENROLLMENT_SECRET";
    const PREVIOUS: &str = "RELAY_ENROLLMENT_SECRET_PREVIOUS";
    const OLD: &str = "the secret that the relay had so far";
    const NEW: &str = "the secret that the relay shall have";
    let whole = Whole::start_with(1_000_000, &[(CURRENT, OLD)]).await;
    let (_, old_key) = whole.enroll().await;
    let is_replayed = async |whole: &Whole, key: &str| {
        let push = Request::push().key(key).header("Idempotency-Key", "once");
        let answer = whole.send(push).await;
        assert_eq!(answer.json()["result"], "sent", "{answer:?}");
        answer.header("idempotent-replayed") == Some("true")
    };
    assert!(!is_replayed(&whole, &old_key).await);

    let whole = whole.restart_with(&[(CURRENT, NEW), (PREVIOUS, OLD)]).await;
    assert!(is_replayed(&whole, &old_key).await);
    let (_, new_key) = whole.enroll().await;
    assert!(!is_replayed(&whole, &new_key).await);

    let whole = whole.restart_with(&[(CURRENT, NEW)]).await;
    assert!(is_replayed(&whole, &new_key).await);
    assert_eq!(whole.provider.reached.available_permits(), 2);
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_relay_without_credentials_starts_and_says_what_it_cannot_do() {
    let directory = tempfile::tempdir().unwrap();
    let relay = start(config(directory.path(), &[])).await.unwrap();
    let send = async |request: Request| exchange(relay.public_addr, &request.into_bytes()).await;
    let ready = send(Request::new("GET", "/readyz")).await;
    assert_eq!(
        (ready.status, ready.json()["status"].as_str()),
        (200, Some("degraded")),
        "signaling is served"
    );
    let capabilities = send(Request::new("GET", "/v1/capabilities")).await.json();
    assert_eq!(capabilities["platforms"]["android"], false);
    assert_eq!(capabilities["signaling"]["durability"], "memory");
    let key = send(Request::new("POST", "/v1/enroll")).await.json()["instanceKey"]
        .as_str()
        .unwrap()
        .to_owned();
    let push = send(Request::push().key(&key)).await;
    assert_eq!(push.refusal(), (503, "platform_not_configured".to_owned()));
    assert_eq!(push.header("retry-after"), None, "this does not pass by itself");
    relay.stop().await;
}

#[actix_web::test]
async fn a_directory_or_an_address_in_use_stops_the_start_and_is_named() {
    let whole = Whole::start().await;
    let taken = launch(whole.directory.path(), &whole.provider, &[]).await;
    assert!(matches!(taken, Err(StartError::Storage(_))));
    let other = tempfile::tempdir().unwrap();
    let address = whole.relay.public_addr.to_string();
    let error = launch(other.path(), &whole.provider, &[("RELAY_LISTEN", &address)])
        .await
        .err();
    let error = error.expect("the port is taken").to_string();
    assert!(error.contains(&address), "{error}");
    whole.relay.stop().await;
}

#[actix_web::test]
async fn a_caller_that_goes_away_loses_the_answer_alone() {
    let (whole, key, socket) = push_under_way().await;
    drop(socket);
    whole.provider.gate.add_permits(2);
    assert_eq!(whole.send(Request::push().key(&key)).await.status, 200);
    whole.relay.stop().await;
}

/// Sends this very process the signal that an orchestrator sends.
fn terminate() {
    signal("-TERM");
}

fn signal(name: &str) {
    let id = std::process::id().to_string();
    let sent = std::process::Command::new("kill")
        .args([name, &id])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// A relay that runs as the process's own, and where it listens.
struct Running {
    run: actix_web::rt::task::JoinHandle<anyhow::Result<()>>,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Running {
    async fn start(grace: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let free = SocketAddr::from(own_place());
        let listen = free.to_string();
        let config = config(
            directory.path(),
            &[
                ("RELAY_LISTEN", &listen),
                ("RELAY_DRAIN_GRACE", grace),
                ("RELAY_PUSH_DEADLINE", "2s"),
            ],
        );
        let same = config.clone();
        let load = move || Ok(same.clone());
        let run = actix_web::rt::spawn(crate::app::run(config, load, std::sync::Arc::new(String::new)));
        let running = Self {
            run,
            address: free,
            _directory: directory,
        };
        let listening = async {
            while TcpStream::connect(free).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, listening).await.expect("the relay listens");
        running
    }

    /// Waits until `/readyz` says `status`.
    async fn says(&self, status: &str) {
        let request = Request::new("GET", "/readyz").into_bytes();
        let saying = async {
            while exchange(self.address, &request).await.json()["status"] != status {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, saying)
            .await
            .unwrap_or_else(|_| panic!("never {status}"));
    }
}

#[actix_web::test]
async fn sigterm_ends_the_relay_in_order() {
    let running = Running::start("0s").await;
    terminate();
    timeout(DEADLINE, running.run)
        .await
        .expect("it ends in time")
        .unwrap()
        .unwrap();
}

#[actix_web::test]
async fn sighup_ends_nothing() {
    let running = Running::start("0s").await;
    signal("-HUP");
    running.says("degraded").await;
    terminate();
    let ended = timeout(DEADLINE, running.run).await.expect("it ends in time");
    ended.unwrap().unwrap();
}

#[actix_web::test]
async fn a_second_signal_ends_it_at_once() {
    let running = Running::start("15s").await;
    terminate();
    running.says("draining").await;
    terminate();
    let ended = timeout(DEADLINE, running.run).await.expect("it ends");
    let error = ended.unwrap().unwrap_err();
    assert!(error.to_string().contains("SIGTERM"), "{error}");
}
