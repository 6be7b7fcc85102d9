//! docker-compose.yml as Compose reads it.

use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{
    command::{self, finish},
    until,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy");
/// A stop of the relay takes up to 20 s.
const STOP: &str = "30s";
/// Compose 1 prints no JSON, but comes with what reads its YAML.
const TO_JSON: &str = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
/// The system's own Python, which distributions run Compose 1 with.
const PYTHON: &str = "/usr/bin/python3";

/// The file with everything put in, beside an operator's own files.
async fn compose() -> Value {
    let folder = TempDir::new().unwrap();
    for name in ["docker-compose.yml", "relay.env.example"] {
        let target = folder.path().join(name.trim_end_matches(".example"));
        std::fs::copy(Path::new(FOLDER).join(name), target).unwrap();
    }
    let config = |more: &[&str]| {
        let mut command = Command::new("docker-compose");
        command
            .current_dir(folder.path())
            .env("RELAY_DOMAIN", "relay.example")
            .args(["--profile", "turn", "config"])
            .args(more);
        command
    };
    let json = finish(config(&["--format", "json"]), "").await.out;
    if let Ok(compose) = serde_json::from_str(&json) {
        return compose;
    }
    let yaml = finish(config(&[]), "").await.done();
    let mut python = Command::new(PYTHON);
    python.args(["-c", TO_JSON]);
    finish(python, &yaml).await.json()
}

fn services(compose: &Value) -> impl Iterator<Item = (&String, &Value)> {
    compose["services"].as_object().unwrap().iter()
}

fn relays(compose: &Value) -> Vec<(&String, &Value)> {
    let relays: Vec<_> = services(compose)
        .filter(|(_, service)| service["image"] == "sovereign-relay")
        .collect();
    assert!(relays.len() >= 2);
    relays
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

#[tokio::test]
async fn each_relay_has_time_to_stop_a_health_check_and_believes_caddy_alone() {
    let compose = compose().await;
    let caddy = text(&compose["services"]["caddy"]["networks"]["edge"]["ipv4_address"]);
    for (name, relay) in relays(&compose) {
        assert_eq!(relay["stop_grace_period"], STOP, "{name}");
        assert_eq!(relay["environment"]["RELAY_TRUSTED_PROXIES"], caddy, "{name}");
        assert_eq!(relay["environment"]["RELAY_PUBLIC_URL"], "https://relay.example");
        let test = relay["healthcheck"]["test"].as_array().unwrap();
        assert_eq!(test.last().unwrap(), "healthcheck", "{name}");
        assert!(relay["ports"].is_null(), "{name} is reached through Caddy alone");
    }
}

#[tokio::test]
async fn caddy_is_told_every_relay_there_is() {
    let compose = compose().await;
    let upstreams = text(&compose["services"]["caddy"]["environment"]["RELAY_UPSTREAMS"]);
    let names = relays(&compose)
        .into_iter()
        .map(|(name, _)| format!("{name}:4002"));
    assert_eq!(upstreams, names.collect::<Vec<_>>().join(" "));
}

#[tokio::test]
async fn no_service_may_write_its_image_gain_privileges_or_take_the_whole_machine() {
    for (name, service) in services(&compose().await) {
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"][0], "ALL", "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        let limits = &service["deploy"]["resources"]["limits"];
        assert!(!limits["memory"].is_null() && !limits["cpus"].is_null(), "{name}");
    }
}

#[tokio::test]
async fn a_relay_takes_what_compose_tells_it_with_its_secrets_from_files() {
    let (compose, secrets) = (compose().await, TempDir::new().unwrap());
    for name in ["enrollment_secret", "admin_token"] {
        let content = "a secret that is longer than 32 bytes\n";
        std::fs::write(secrets.path().join(name), content).unwrap();
    }
    let (_, relay) = relays(&compose)[0];
    let told = relay["environment"].as_object().unwrap().iter();
    let here = secrets.path().to_str().unwrap();
    let told: Vec<_> = told
        .map(|(name, value)| (name.as_str(), text(value).replace("/run/secrets", here)))
        .collect();
    let mut told: Vec<_> = told.iter().map(|(name, value)| (*name, &**value)).collect();
    for name in ["RELAY_ENROLLMENT_SECRET_FILE", "RELAY_ADMIN_TOKEN_FILE"] {
        assert!(told.iter().any(|(told, _)| *told == name), "{name}");
    }
    told.push(("RELAY_DATA_DIR", here));
    let checked = command::run(&["check-config"], &told).await.done();
    assert!(
        !checked.contains("RELAY_TRUSTED_PROXIES"),
        "no warning: {checked}"
    );
}

/// With the arguments of the file, but a socket in a folder of the test.
#[tokio::test]
async fn redis_started_with_the_arguments_of_the_file_keeps_every_write_and_evicts_nothing() {
    let (compose, folder) = (compose().await, TempDir::new().unwrap());
    let arguments = compose["services"]["redis"]["command"].as_array().unwrap();
    let socket = folder.path().join("redis.sock");
    let mut server = Command::new(text(&arguments[0]));
    server
        .current_dir(folder.path())
        .args(arguments[1..].iter().map(text))
        .args(["--port", "0", "--unixsocket"])
        .arg(&socket)
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true);
    let _server = server.spawn().expect("valkey-server is needed for this test");
    let ask = async |question: &[&str]| {
        let mut client = Command::new("redis-cli");
        client.arg("-s").arg(&socket).args(question);
        finish(client, "").await.out
    };
    until("it answers", async || ask(&["PING"]).await.trim() == "PONG").await;
    for (name, value) in [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("maxmemory-policy", "noeviction"),
    ] {
        let answer = ask(&["CONFIG", "GET", name]).await;
        assert_eq!(answer.lines().nth(1), Some(value), "{name}");
    }
}
