//! README.md's shell lines do what it says: each block is run as it stands, against a relay of the test.

use std::{collections::BTreeSet, path::Path};

use serde_json::Value;
use sovereign_relay_protocol::platform::Platform;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{
    command::{Ended, finish},
    peer::{Peer, load},
    relay::{Relay, RelayOptions},
    world::World,
};

const README: &str = include_str!("../../README.md");
/// Blocks that begin so can't be run by a test: this suite itself, and what needs a container engine.
const NOT_RUN: [&str; 2] = ["scripts/test\n", "docker "];

/// What stands between ```sh and ```.
fn blocks() -> impl Iterator<Item = &'static str> {
    let opened = README.split("```sh\n").skip(1);
    opened.map(|rest| rest.split_once("```").expect("a closed block").0)
}

/// Takes the one block with this text.
fn block(text: &str) -> &'static str {
    let mut found = blocks().filter(|block| block.contains(text));
    let block = found.next().unwrap_or_else(|| panic!("no block with {text}"));
    assert!(found.next().is_none(), "two blocks with {text}");
    block
}

/// The answer that a comment under a line shows.
fn shown(block: &str) -> Value {
    let comment: String = block.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    serde_json::from_str(&comment).unwrap_or_else(|error| panic!("{error} in what {block} shows"))
}

/// The same fields, and the same values where they are not left out.
#[track_caller]
fn assert_like(answer: &Value, shown: &Value) {
    let (answer, shown) = (answer.as_object().unwrap(), shown.as_object().unwrap());
    let names = |object: &serde_json::Map<String, Value>| object.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(answer), names(shown), "{answer:?} is shown as {shown:?}");
    for (name, value) in shown {
        let is_left_out = value.as_str().is_some_and(|text| text.ends_with("..."));
        if value.is_object() {
            assert_like(&answer[name], value);
        } else if !is_left_out {
            assert_eq!(answer[name], *value, "{name}");
        }
    }
}

/// A shell beside the relay: its binary on the path, its addresses in the environment.
async fn run(script: &str, relay: &Relay, folder: &Path, variables: &[(&str, &str)]) -> Ended {
    let binaries = Path::new(Relay::binary()).parent().unwrap().display();
    let mut shell = Command::new("sh");
    shell
        .args(["-eu", "-c", &script.replace("https://relay.example", &relay.url)])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{binaries}:{}", std::env::var("PATH").unwrap()))
        .env("RELAY_DATA_DIR", relay.data_dir())
        .env(
            "RELAY_ADMIN_LISTEN",
            relay.admin_url.trim_start_matches("http://"),
        )
        .envs(variables.iter().copied());
    finish(shell, "").await
}

#[test]
fn every_shell_block_is_run_or_named_as_one_that_can_not_be() {
    let run = [
        "playground --once",
        "/v1/enroll",
        "/v1/push",
        "/v1/signal/sessions",
        "instances list",
    ]
    .map(block);
    for block in blocks() {
        let named = NOT_RUN.iter().any(|start| block.starts_with(start));
        assert!(named != run.contains(&block), "run it, or say why not: {block}");
    }
}

#[tokio::test]
async fn the_playground_line_works() {
    let script = block("playground --once").replace("cargo run --release --", "sovereign-relay");
    let folder = TempDir::new().unwrap();
    let world = World::start().await;
    let printed = run(&script, &world.relay, folder.path(), &[]).await.done();
    assert!(
        printed.contains("4 of 4 notifications delivered and opened"),
        "{printed}"
    );
}

#[tokio::test]
async fn an_instance_enrolls_and_pushes_with_the_curl_lines_and_the_operator_has_its_commands() {
    let world = World::start().await;
    let folder = TempDir::new().unwrap();
    let (relay, folder) = (&world.relay, folder.path());
    let enroll = block("/v1/enroll");
    let enrolled = run(enroll, relay, folder, &[]).await.json();
    assert_like(&enrolled, &shown(enroll));

    let device = world.device(Platform::Ios);
    let notification = serde_json::json!({ "title": "Hello" });
    let sealed = device.seal(&notification);
    let key = enrolled["instanceKey"].as_str().unwrap();
    let variables = [
        ("INSTANCE_KEY", key),
        ("DEVICE_TOKEN", &device.token),
        ("SEALED", &sealed),
    ];
    let push = block("/v1/push");
    let sent = run(push, relay, folder, &variables).await.json();
    assert_like(&sent, &shown(push));
    let arrived = world.simulators.apns.inbox().all().pop().unwrap();
    let payload: Value = serde_json::from_str(&arrived.payload).unwrap();
    assert_eq!(
        device.open(payload["encryptedPayload"].as_str().unwrap()),
        notification
    );

    let id = enrolled["instanceId"].as_str().unwrap();
    let commands = block("instances list").replace("<id>", id);
    let printed = run(&commands, relay, folder, &[]).await.done();
    assert!(
        printed.contains(id) && printed.contains("3000 a minute"),
        "{printed}"
    );
    let exported = std::fs::read(folder.join("revocations.json")).unwrap();
    let exported: Value = serde_json::from_slice(&exported).unwrap();
    assert_eq!(exported["entries"], serde_json::json!([]));
    let refused = run(push, relay, folder, &variables).await.json();
    assert_eq!(refused["error"], "suspended");
}

#[tokio::test]
async fn an_instance_makes_a_session_with_the_curl_line_and_without_turn_a_peer_has_no_ice_servers() {
    let relay = Relay::start(RelayOptions::new()).await;
    let folder = TempDir::new().unwrap();
    let instance = relay.enroll().await;
    let session = block("/v1/signal/sessions");
    let made = run(session, &relay, folder.path(), &[("INSTANCE_KEY", &instance.key)])
        .await
        .json();
    let web_socket = relay.url.replace("http://", "ws://");
    let mut shown = shown(session);
    shown["url"] = shown["url"]
        .as_str()
        .unwrap()
        .replace("wss://relay.example", &web_socket)
        .into();
    assert_like(&made, &shown);

    let mut peer = Peer::connect(made["url"].as_str().unwrap()).await;
    peer.hello(made["tickets"]["b"].as_str().unwrap(), load(1)).await;
    assert_eq!(peer.next_of("welcome").await["iceServers"], serde_json::json!([]));
}

/// What README.md calls a package that the test command installs on Debian.
fn named(package: &str) -> &'static str {
    match package {
        "npm" => "Node 20.19 or newer with npm",
        "curl" => "curl",
        "chromium" => "Chromium",
        "coturn" => "coturn",
        "redis-server" => "Redis",
        "valkey-server" => "Valkey",
        "faketime" => "libfaketime",
        "postgresql" | "postgresql-common" => "PostgreSQL",
        "default-jdk-headless" => "a JDK",
        "python3" => "Python",
        "python3-cryptography" => "cryptography",
        "dbus-daemon" => "dbus-daemon",
        "gnome-keyring" => "gnome-keyring",
        "caddy" => "Caddy",
        "docker-compose" => "Compose",
        "systemd" => "systemd's tools",
        other => panic!("say here what README.md calls {other}, and there that it is needed"),
    }
}

/// Whoever isn't root on Debian learns from the README alone what to install.
#[test]
fn all_that_the_test_command_installs_is_named_where_the_test_command_is() {
    let (_, rest) = README.split_once("is the whole test suite").unwrap();
    let told = rest.split("\n## ").next().unwrap().replace('\n', " ");
    let mut installed = 0;
    for line in include_str!("../../scripts/lib.sh").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let package = match words.as_slice() {
            ["need_program", _, package, ..] => package,
            [.., "install_package", package] => package,
            _ => continue,
        };
        // A parameter.
        if package.starts_with('"') {
            continue;
        }
        assert!(told.contains(named(package)), "README.md doesn't name {package}");
        installed += 1;
    }
    assert!(installed >= 16, "{installed} found");
}

/// Cargo reads every member's manifest, whichever of them it builds.
#[test]
fn the_container_is_built_from_every_member_of_the_workspace() {
    let manifest: toml::Table = include_str!("../../Cargo.toml").parse().unwrap();
    let admitted: Vec<_> = include_str!("../../.dockerignore").lines().collect();
    for member in manifest["workspace"]["members"].as_array().unwrap() {
        let folder = member.as_str().unwrap().split('/').next().unwrap();
        let line = format!("!{folder}");
        assert!(
            admitted.contains(&line.as_str()),
            "{line} is missing in .dockerignore"
        );
    }
}
