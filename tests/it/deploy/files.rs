//! The samples are valid to the programs that read them.

use std::path::Path;

use sovereign_relay::defaults;
use sovereign_relay_protocol::limits;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::{
    caddy::{self, SAMPLE},
    command::{Ended, finish},
    relay::Relay,
};

const UNIT: &str = include_str!("../../../deploy/sovereign-relay.service");
const ENVIRONMENT: &str = include_str!("../../../deploy/relay.env.example");
const README: &str = include_str!("../../../README.md");
const CADDYFILE: &str = include_str!("../../../deploy/Caddyfile");
const STREAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/caddy-2.7");
/// Of 10, which is a service that may do anything.
const EXPOSURE: &str = "--threshold=15";
/// What the relay gives a body.
const BODY_SECONDS: u64 = 10;
/// A stop takes up to 20 s.
const STOP_SECONDS: u32 = 30;

async fn systemd_analyze(arguments: &[&str], unit: &Path) -> Ended {
    let mut command = Command::new("systemd-analyze");
    command.args(arguments).arg(unit);
    finish(command, "").await
}

fn setting(name: &str) -> &str {
    let prefix = format!("{name}=");
    let line = UNIT.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("no {name} in the unit"))
}

#[tokio::test]
async fn caddy_takes_the_sample_without_a_complaint_and_would_not_format_it_otherwise() {
    let arguments = ["validate", "--adapter", "caddyfile", "--config", SAMPLE];
    let validated = caddy::run(&arguments).await;
    assert!(validated.err.contains("Valid configuration") || validated.out.contains("Valid configuration"));
    assert!(!validated.err.contains("not formatted"), "{validated:?}");
    validated.done();
}

#[test]
fn caddy_waits_for_the_longest_batch_there_is() {
    let seconds = |name: &str| -> u64 {
        let prefix = format!("{name} ");
        let line = CADDYFILE
            .lines()
            .find_map(|line| line.trim().strip_prefix(&prefix));
        line.unwrap().trim_end_matches('s').parse().unwrap()
    };
    let turns = limits::BATCH_MESSAGES.div_ceil(limits::BATCH_PARALLEL) as u64;
    let longest = turns * defaults::PUSH_DEADLINE_MAX.as_secs();
    assert!(seconds("response_header_timeout") > longest);
    assert!(seconds("write") > longest + BODY_SECONDS);
}

#[tokio::test]
async fn the_options_for_newer_caddys_are_in_a_file_of_their_own_because_older_ones_refuse_them() {
    let folder = TempDir::new().unwrap();
    let (sample, streams) = (folder.path().join("Caddyfile"), folder.path().join("streams"));
    std::fs::copy(SAMPLE, &sample).unwrap();
    std::os::unix::fs::symlink(STREAMS, &streams).unwrap();
    let sample = sample.to_str().unwrap();
    let adapted = caddy::run(&["adapt", "--adapter", "caddyfile", "--config", sample]).await;
    if is_new_enough(&caddy::run(&["version"]).await.done()) {
        adapted.done();
    } else {
        assert!(adapted.err.contains("stream_close_delay"), "{adapted:?}");
    }
}

/// 2.7 or newer, of `v2.8.4 h1:...` or `2.6.2`.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version
        .trim_start_matches('v')
        .split('.')
        .map(|number| number.trim().parse());
    let mut number = || numbers.next().unwrap().unwrap_or(0u32);
    (number(), number()) >= (2, 7)
}

#[tokio::test]
async fn systemd_takes_the_unit_and_finds_little_that_it_exposes() {
    let folder = TempDir::new().unwrap();
    let unit = folder.path().join("sovereign-relay.service");
    let here = UNIT.replace("/usr/local/bin/sovereign-relay", Relay::binary());
    std::fs::write(&unit, here).unwrap();
    let verified = systemd_analyze(&["verify", "--man=no"], &unit).await;
    assert_eq!(verified.err, "");
    verified.done();
    systemd_analyze(&["security", "--offline=true", "--no-pager", EXPOSURE], &unit)
        .await
        .done();
}

#[test]
fn the_unit_gives_a_stop_its_time_a_reload_its_signal_and_connections_their_descriptors() {
    let stop: u32 = setting("TimeoutStopSec").trim_end_matches('s').parse().unwrap();
    assert!(stop >= STOP_SECONDS);
    let reload: Vec<_> = UNIT
        .lines()
        .filter_map(|line| line.strip_prefix("ExecReload="))
        .collect();
    assert_eq!(
        reload,
        [
            "/usr/local/bin/sovereign-relay check-config",
            "/bin/kill -HUP $MAINPID"
        ]
    );
    let files: u32 = setting("LimitNOFILE").parse().unwrap();
    assert!(files >= 20_000 + 512);
}

#[test]
fn every_setting_in_the_sample_environment_is_one_of_the_relay() {
    let lines = ENVIRONMENT.lines().filter_map(|line| line.split_once('='));
    let names: Vec<_> = lines.map(|(name, _)| name.trim_start_matches('#')).collect();
    assert!(names.len() >= 5);
    for name in names.iter().map(|name| name.trim_end_matches("_FILE")) {
        assert!(README.contains(&format!("| `{name}`")), "{name}");
    }
}
