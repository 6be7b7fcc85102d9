//! SIGHUP: new credentials and limits without a lost push, and whatever else the file may hold by then.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::ApnsKey;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::support::{
    DEADLINE,
    grown::grown_instance,
    relay::{Instance, Relay, RelayOptions},
    world::World,
};

/// How many were applied, partly applied and refused.
async fn reloads(relay: &Relay) -> [u64; 3] {
    let scraped = relay.metrics().await;
    ["applied", "partly", "refused"].map(|result| {
        let name = format!("relay_reloads_total{{result=\"{result}\"}} ");
        let line = scraped.lines().find_map(|line| line.strip_prefix(&name));
        line.expect("counted from 0").parse().unwrap()
    })
}

/// What the operator changes: an APNs key, and further lines.
fn write_config(path: &Path, key: &ApnsKey, more: &str) {
    let text = format!(
        "apns_key = \"\"\"\n{}\"\"\"\napns_key_id = \"{}\"\n{more}\n",
        key.pem, key.key_id
    );
    std::fs::write(path, text).unwrap();
}

/// A relay that takes its keys from the file, and has no secret for Windows.
async fn relay_with(world: &World, config: &Path) -> Relay {
    let options = RelayOptions::new()
        .with_grown_instances()
        .set("RELAY_DRAIN_GRACE", "0s")
        .without("APNS_KEY")
        .without("APNS_KEY_ID")
        .without("FCM_SERVICE_ACCOUNT_JSON")
        .without("WNS_CLIENT_SECRET")
        .set("RELAY_CONFIG", config.to_str().unwrap());
    world.another_relay(options).await
}

fn push(world: &World, platform: Platform) -> Value {
    json!({
        "platform": platform.as_str(),
        "deviceToken": world.address(platform),
        "encryptedPayload": "sealed",
    })
}

/// Pushes one after the other until it is told to stop: every one is sent.
async fn keep_pushing(world: &World, relay: &Relay, instance: &Instance, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        let answer = relay.push(instance, &push(world, Platform::Ios)).await;
        assert_eq!(answer.word(), "sent", "{answer:?}");
    }
}

/// Waits until deliveries are signed with `key`.
async fn signed_with(world: &World, key: &ApnsKey) {
    let is_last = || {
        let deliveries = world.simulators.apns.inbox().all();
        let last = deliveries.last()?;
        let kid = jsonwebtoken::decode_header(&last.jwt).unwrap().kid?;
        (kid == key.key_id).then_some(())
    };
    eventually("the key is in use", || is_last().is_some()).await;
}

async fn logs(relay: &Relay, text: &str) {
    eventually(text, || relay.log().contains(text)).await;
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let holding = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, holding)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

async fn per_minute(relay: &Relay) -> Value {
    relay.get("/v1/capabilities").await.body["limits"]["pushesPerMinute"].clone()
}

#[tokio::test]
async fn new_credentials_and_limits_are_taken_over_while_pushes_go_on_and_none_is_lost() {
    let world = World::start().await;
    let (folder, instance) = (TempDir::new().unwrap(), grown_instance());
    let config = folder.path().join("relay.toml");
    let (old, new) = (
        world.simulators.apns.key(),
        world.simulators.apns.new_key().unwrap(),
    );
    write_config(&config, &old, "relay_pushes_per_minute = 100000");
    let relay = relay_with(&world, &config).await;
    let windows = push(&world, Platform::Windows);
    let off = relay.push(&instance, &windows).await;
    assert_eq!(off.word(), "platform_not_configured");
    let stop = AtomicBool::new(false);
    let changing = async {
        signed_with(&world, &old).await;
        let secret = &world.simulators.wns.options().client_secret;
        let more = format!("relay_pushes_per_minute = 200000\nwns_client_secret = \"{secret}\"");
        write_config(&config, &new, &more);
        relay.hang_up();
        logs(&relay, "configuration reloaded").await;
        signed_with(&world, &new).await;
        // Apple no longer takes the old key, and nothing was left behind that would use it.
        world.simulators.apns.revoke_key(&old.key_id);
        let before = world.simulators.apns.inbox().total();
        eventually("pushes go on", || {
            world.simulators.apns.inbox().total() > before + 50
        })
        .await;
        stop.store(true, Ordering::SeqCst);
    };
    tokio::join!(keep_pushing(&world, &relay, &instance, &stop), changing);
    assert_eq!(relay.push(&instance, &windows).await.word(), "sent");
    assert_eq!(per_minute(&relay).await, 200_000);
    assert!(
        !relay.log().contains("fcm\",\"message\":\"credentials reloaded"),
        "FCM's are as before"
    );
}

#[tokio::test]
async fn a_file_that_makes_no_sense_and_a_key_that_is_none_change_nothing_and_are_named_in_the_log() {
    let world = World::start().await;
    let (folder, instance) = (TempDir::new().unwrap(), grown_instance());
    let config = folder.path().join("relay.toml");
    let key = world.simulators.apns.key();
    let account = world.simulators.fcm.service_account_json();
    let with_account = |account: &str| format!("fcm_service_account_json = '''{account}'''\n");
    write_config(&config, &key, &with_account(&account));
    let relay = relay_with(&world, &config).await;
    let still_pushes = async || {
        for platform in [Platform::Ios, Platform::Android] {
            let answer = relay.push(&instance, &push(&world, platform)).await;
            assert_eq!(answer.word(), "sent", "{answer:?}");
        }
    };
    still_pushes().await;
    write_config(&config, &key, "relay_push_deadline = \"soon\"");
    relay.hang_up();
    logs(&relay, "RELAY_PUSH_DEADLINE").await;
    still_pushes().await;
    assert_eq!(reloads(&relay).await, [0, 0, 1], "applied, partly, refused");
    let mut broken: Value = serde_json::from_str(&account).unwrap();
    broken["private_key"] = json!("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    let limit = "relay_pushes_per_minute = 700\n";
    write_config(&config, &key, &(with_account(&broken.to_string()) + limit));
    relay.hang_up();
    logs(&relay, "FCM_SERVICE_ACCOUNT_JSON").await;
    still_pushes().await;
    assert_eq!(per_minute(&relay).await, 600, "all of it or nothing");
    write_config(&config, &key, &(with_account(&account) + limit));
    relay.hang_up();
    logs(&relay, "default limit reloaded").await;
    logs(&relay, "\"taken_over\":\"RELAY_PUSHES_PER_MINUTE\"").await;
    assert_eq!(per_minute(&relay).await, 700);
    assert_eq!(reloads(&relay).await, [1, 0, 2], "applied, partly, refused");
    assert!(
        !relay.log().contains("credentials reloaded"),
        "they are as before"
    );
    relay.terminate();
    let (status, log) = relay.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

#[tokio::test]
async fn a_reload_names_what_it_took_over_and_what_waits_for_a_restart_and_no_value() {
    let world = World::start().await;
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("relay.toml");
    let key = world.simulators.apns.key();
    write_config(&config, &key, "");
    let relay = relay_with(&world, &config).await;
    let secret = "a secret shared with the TURN server";
    let more = format!(
        "turn_uris = \"turn:turn.example\"\nturn_secret = \"{secret}\"\nrelay_turn_for = \"all\"\n\
         relay_allowed_origins = \"https://app.example\""
    );
    write_config(&config, &key, &more);
    relay.hang_up();
    logs(&relay, "\"taken_over\":\"TURN_URIS, TURN_SECRET\"").await;
    logs(
        &relay,
        "\"need_restart\":\"RELAY_ALLOWED_ORIGINS, RELAY_TURN_FOR\"",
    )
    .await;
    for value in [secret, "turn.example", "app.example"] {
        assert!(!relay.log().contains(value), "{value} is in the log");
    }
}
