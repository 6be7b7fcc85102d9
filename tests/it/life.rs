//! Starting and stopping: what an operator sees, what a caller under way sees.

use std::{collections::HashMap, sync::Arc, time::Duration};

use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{Behaviour, Script, SimulatorOptions};
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinSet};

use crate::support::{
    DEADLINE,
    relay::{Answer, Relay, RelayOptions, StartFailure},
    until,
    world::World,
};

const CALLERS: u64 = 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_under_load_loses_and_doubles_no_push_and_ends_with_0() {
    // Within it everybody is told, and so is whoever asks whether the relay is ready.
    let options = RelayOptions::new().set("RELAY_DRAIN_GRACE", "5s");
    let mut world = World::start_with(SimulatorOptions::default(), options).await;
    world
        .simulators
        .apns
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(20)));
    let instance = world.relay.enroll().await;
    let caller = Arc::new(world.relay.caller());
    let mut callers = JoinSet::new();
    for number in 0..CALLERS {
        let (caller, instance) = (Arc::clone(&caller), instance.clone());
        // Each pushes until the relay is gone, and remembers what it was told of each token.
        callers.spawn(async move {
            let mut told = Vec::new();
            for round in 0..6u64 {
                let token = format!("{:064x}", number * 1000 + round);
                let push = json!({ "deviceToken": token, "platform": "ios", "encryptedPayload": "sealed" });
                match caller.try_push(&instance, &push).await {
                    Ok(answer) => {
                        let is_told = answer.word() == "draining";
                        told.push((token, answer.word().to_owned()));
                        // As any caller: it goes elsewhere.
                        if is_told {
                            break;
                        }
                    }
                    // Refused before anything was sent: the listener has closed.
                    Err(error) if error.is_connect() => break,
                    Err(error) => told.push((token, format!("no answer: {error:?}"))),
                }
            }
            told
        });
    }
    world
        .simulators
        .apns
        .inbox()
        .wait_for(30, DEADLINE)
        .await
        .unwrap();
    world.relay.terminate();
    world.relay.logged("\"stopping\"").await;
    let ready = world.relay.get("/readyz").await;
    assert_eq!(
        (ready.status.as_u16(), ready.headers.contains_key("retry-after")),
        (503, true),
        "{ready:?}"
    );
    assert_eq!(ready.headers["connection"], "close");
    let told: HashMap<String, String> = callers.join_all().await.into_iter().flatten().collect();
    let delivered = world.simulators.apns.inbox().all();
    let mut by_token: HashMap<&str, usize> = HashMap::new();
    for delivery in &delivered {
        *by_token.entry(&delivery.token).or_default() += 1;
    }
    for (token, word) in &told {
        let expected = usize::from(word == "sent");
        assert!(matches!(word.as_str(), "sent" | "draining"), "{word}");
        assert_eq!(
            by_token.get(token.as_str()).copied().unwrap_or(0),
            expected,
            "{word}"
        );
    }
    assert!(told.len() >= 30);
    let (status, log) = world.stopped().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(
        log.contains("\"stopped\"") && !log.contains("not everything ended in time"),
        "{log}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_that_outlasts_the_grace_is_still_answered_on_every_platform_and_in_a_batch() {
    let options = RelayOptions::new()
        .set("RELAY_DRAIN_GRACE", "0s")
        .set("RELAY_PUSH_DEADLINE", "8s");
    let mut world = World::start_with(SimulatorOptions::default(), options).await;
    let simulators = &world.simulators;
    let scripts = [
        simulators.apns.script(),
        simulators.fcm.script(),
        simulators.wns.script(),
    ]
    .map(Script::clone);
    for script in &scripts {
        script.hold(true);
    }
    let black_hole = world.device(Platform::Ios);
    scripts[0]
        .device(&black_hole.token)
        .always(Behaviour::never_answer());
    let owner = world.relay.enroll().await;
    let mut pushes: Vec<_> = Platform::ALL
        .into_iter()
        .map(|platform| world.device(platform).push(&json!({})))
        .collect();
    pushes.push(black_hole.push(&json!({})));
    let mut singles = JoinSet::new();
    for push in pushes.clone() {
        let (caller, owner) = (world.relay.caller(), owner.clone());
        singles.spawn(async move { caller.try_push(&owner, &push).await.expect("an answer") });
    }
    let batch = world.relay.batch_request(&owner, &pushes);
    let batch = tokio::spawn(Answer::from(batch));
    until("all are under way", async || {
        world.relay.metric("relay_pushes_in_flight", "").await >= 10.0
    })
    .await;
    world.relay.terminate();
    world.relay.logged("\"stopping\"").await;
    for script in &scripts {
        script.hold(false);
    }
    let batch = batch.await.unwrap();
    let mut results: Vec<Value> = batch.body["results"].as_array().unwrap().clone();
    results.extend(singles.join_all().await.into_iter().map(|answer| answer.body));
    let count = |result: &str| results.iter().filter(|answer| answer["result"] == result).count();
    assert_eq!((count("sent"), count("failed")), (8, 2), "{results:?}");
    let (status, log) = world.stopped().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("not everything ended in time"), "{log}");
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let options = RelayOptions::new()
        .set("RELAY_DRAIN_GRACE", "15s")
        .set("RELAY_PUSH_DEADLINE", "2s");
    let mut relay = Relay::start(options).await;
    relay.terminate();
    relay.logged("\"stopping\"").await;
    relay.terminate();
    let (status, log) = relay.ended().await;
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("ended at once"), "{log}");
}

#[tokio::test]
async fn what_keeps_it_from_starting_is_said_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = TempDir::new().unwrap();
    let _first = Relay::start(RelayOptions::new().data_dir(directory.path())).await;
    let cases = [
        (
            RelayOptions::new().set("RELAY_LISTEN", &address),
            "can't be listened on",
        ),
        (
            RelayOptions::new().data_dir(directory.path()),
            directory.path().to_str().unwrap(),
        ),
        (
            RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", "too short"),
            "RELAY_ENROLLMENT_SECRET",
        ),
        (
            RelayOptions::new().set("RELAY_PUSH_DEADLINE", "soon"),
            "RELAY_PUSH_DEADLINE",
        ),
        (
            RelayOptions::new().set("RELAY_DRAIN_GRACE", "15s"),
            "RELAY_PUSH_DEADLINE (10s)",
        ),
        (
            RelayOptions::new()
                .set("APNS_KEY", "not a key")
                .set("APNS_KEY_ID", "ABCDE12345"),
            "APNS_",
        ),
        (
            RelayOptions::new().set("WNS_CHANNEL_HOST_SUFFIX", "com"),
            "WNS_CHANNEL_HOST_SUFFIX",
        ),
        (
            RelayOptions::new().set("REDIS_URL", "http://127.0.0.1"),
            "REDIS_URL",
        ),
    ];
    for (options, says) in cases {
        let Err(StartFailure { code, log }) = Relay::try_start(options).await else {
            panic!("it started, though {says}")
        };
        assert_eq!(code, Some(1), "{log}");
        let complaints = log
            .lines()
            .filter(|line| line.starts_with("sovereign-relay: ") || line.contains("\"ERROR\""));
        assert_eq!(complaints.count(), 1, "one line, not two:\n{log}");
        let last = log.lines().last().unwrap_or_default();
        assert!(last.contains(says), "wanted {says} in the last line of:\n{log}");
        assert!(
            !log.contains("too short\"") && !log.contains("not a key"),
            "no value is repeated:\n{log}"
        );
    }
}

#[tokio::test]
async fn health_is_the_earlier_relays_and_readiness_names_what_is_missing() {
    let world = World::start().await;
    for path in ["/api/health", "/livez"] {
        let answer = world.relay.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body),
            (200, &json!({ "status": "ok" })),
            "{path}"
        );
    }
    assert_eq!(world.relay.get("/readyz").await.status, 200);
    let bare = Relay::start(RelayOptions::new()).await;
    let ready = bare.get("/readyz").await;
    assert_eq!(ready.status, 200, "signaling is served: {ready:?}");
    assert_eq!(ready.body["status"], "degraded");
    assert!(!ready.body["reasons"].as_array().unwrap().is_empty(), "{ready:?}");
    let capabilities = world.relay.get("/v1/capabilities").await;
    for platform in Platform::ALL {
        assert_eq!(capabilities.body["platforms"][platform.as_str()], true);
    }
}
