//! The operator's command line, on the real binary.

use serde_json::{Value, json};
use sovereign_relay_simulator::SimulatorOptions;

use crate::support::{
    relay::{Answer, Relay, RelayOptions},
    world::World,
};

const SECRET: &str = "one secret for two relays, forty bytes..";

/// Standard output of a command that must succeed.
async fn cli(relay: &Relay, arguments: &[&str]) -> String {
    let output = relay.cli(arguments).await;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{out}\n{err}");
    out.into_owned()
}

async fn cli_json(relay: &Relay, arguments: &[&str]) -> Value {
    let text = cli(relay, arguments).await;
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{arguments:?} printed {text}"))
}

#[tokio::test]
async fn an_operator_suspends_resumes_limits_and_revokes_an_instance() {
    let world = World::start().await;
    let relay = &world.relay;
    let instance = relay.enroll().await;
    let push = json!({ "deviceToken": "abcd", "platform": "ios", "encryptedPayload": "sealed" });
    assert_eq!(relay.push(&instance, &push).await.word(), "sent");
    assert!(cli(relay, &["instances", "list"]).await.contains(&instance.id));
    cli(
        relay,
        &["instances", "suspend", &instance.id, "--reason", "testing"],
    )
    .await;
    let refused = relay.push(&instance, &push).await;
    assert_eq!((refused.status.as_u16(), refused.word()), (403, "suspended"));
    assert!(
        cli(relay, &["instances", "show", &instance.id])
            .await
            .contains("testing")
    );
    cli(relay, &["instances", "resume", &instance.id]).await;
    assert_eq!(relay.push(&instance, &push).await.word(), "sent");
    cli(relay, &["instances", "revoke", &instance.id]).await;
    let refused = relay.push(&instance, &push).await;
    assert_eq!((refused.status.as_u16(), refused.word()), (401, "revoked"));
    let unknown = relay
        .cli(&["instances", "show", "00000000-0000-4000-8000-000000000000"])
        .await;
    assert_eq!(
        unknown.status.code(),
        Some(4),
        "{}",
        String::from_utf8_lossy(&unknown.stderr)
    );
}

#[tokio::test]
async fn an_invite_is_good_for_one_enrollment() {
    let options = RelayOptions::new().set("RELAY_ENROLLMENT", "invite");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let relay = &world.relay;
    let enroll = || relay.request(reqwest::Method::POST, "/v1/enroll");
    assert_eq!(Answer::from(enroll()).await.status, 401);
    let created = cli_json(relay, &["invite", "create", "--json"]).await;
    let invite = created["invite"].as_str().unwrap();
    assert_eq!(Answer::from(enroll().bearer_auth(invite)).await.status, 200);
    let again = Answer::from(enroll().bearer_auth(invite)).await;
    assert_eq!((again.status.as_u16(), again.word()), (401, "unauthorized"));
    assert!(
        !cli(relay, &["invite", "list"]).await.contains(invite),
        "invites are kept as hashes"
    );
}

#[tokio::test]
async fn revocations_move_to_another_relay() {
    let with_secret = || RelayOptions::new().set("RELAY_ENROLLMENT_SECRET", SECRET);
    let (old, new) = (
        Relay::start(with_secret()).await,
        Relay::start(with_secret()).await,
    );
    let (revoked, other) = (old.enroll().await, old.enroll().await);
    cli(&old, &["instances", "revoke", &revoked.id]).await;
    let export = cli(&old, &["revocations", "export"]).await;
    let file = old.data_dir().join("revocations.json");
    std::fs::write(&file, export).unwrap();
    let push = json!({ "deviceToken": "abcd", "platform": "ios", "encryptedPayload": "sealed" });
    assert_eq!(
        new.push(&revoked, &push).await.word(),
        "platform_not_configured",
        "not known there yet"
    );
    cli(&new, &["revocations", "import", file.to_str().unwrap()]).await;
    assert_eq!(new.push(&revoked, &push).await.word(), "revoked");
    assert_eq!(new.push(&other, &push).await.word(), "platform_not_configured");
}

#[tokio::test]
async fn health_is_an_exit_code_and_the_configuration_is_explained_without_its_secrets() {
    let relay = Relay::start(RelayOptions::new()).await;
    cli(&relay, &["healthcheck"]).await;
    let check = tokio::process::Command::new(Relay::binary())
        .env_clear()
        .env("RELAY_DATA_DIR", relay.data_dir())
        .env(
            "RELAY_ENROLLMENT_SECRET",
            "MARKEDSECRETOFFORTYBYTES................",
        )
        .env("WNS_CLIENT_SECRET", "MARKEDCLIENTSECRET")
        .arg("check-config")
        .output()
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&check.stdout);
    assert_eq!(check.status.code(), Some(0), "{text}");
    assert!(
        text.contains("windows") && text.contains("WNS_PACKAGE_SID"),
        "what is off, and why:\n{text}"
    );
    assert!(!text.contains("MARKED"), "{text}");
    let (pid, url) = (relay.pid(), relay.url.clone());
    relay.kill().await;
    let down = tokio::process::Command::new(Relay::binary())
        .env_clear()
        .env("RELAY_DATA_DIR", std::env::temp_dir())
        .env("RELAY_LISTEN", url.trim_start_matches("http://"))
        .arg("healthcheck")
        .status()
        .await
        .unwrap();
    assert_ne!(down.code(), Some(0), "the relay with pid {pid} is gone");
}

#[tokio::test]
async fn a_made_key_pair_seals_and_opens_and_a_made_secret_is_long_enough() {
    use sovereign_relay_protocol::seal::DevicePublicKey;
    let relay = Relay::start(RelayOptions::new()).await;
    let pair = cli_json(&relay, &["keygen", "device", "--json"]).await;
    let public = pair["devicePublicKeyBase64"]
        .as_str()
        .unwrap_or_else(|| panic!("{pair}"));
    assert!(DevicePublicKey::from_base64(public).is_ok());
    let secret = cli(&relay, &["keygen", "secret"]).await;
    assert!(secret.trim().len() >= 32);
}
