//! A real Caddy with the file from `deploy/`, which differs from an operator's by its environment alone.

use std::{
    fmt::Display,
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::Stdio,
};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{
    command::{Ended, finish},
    log::Log,
    place::own_place,
};

pub const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/Caddyfile");
/// From where it connects to the relays.
pub const ADDRESS: &str = "127.0.0.1";
const NEEDED: &str = "caddy is needed for this test: install it so that it is on the PATH";

/// A running Caddy on loopback, without TLS; killed when dropped.
pub struct Caddy {
    place: SocketAddrV4,
    upstreams: String,
    folder: TempDir,
    log: Log,
    _child: Child,
}

impl Caddy {
    /// Where one will be; relays have to be told before it starts.
    pub fn choose() -> SocketAddrV4 {
        own_place()
    }

    /// Starts one in front of these.
    pub async fn start(place: SocketAddrV4, upstreams: &[impl Display]) -> Self {
        let upstreams: Vec<String> = upstreams.iter().map(ToString::to_string).collect();
        let (upstreams, folder) = (upstreams.join(" "), TempDir::new().unwrap());
        let mut command = command(place, &upstreams, folder.path());
        let mut child = command
            .args(["run", "--adapter", "caddyfile", "--config", SAMPLE])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect(NEEDED);
        let mut log = Log::follow(child.stderr.take().unwrap());
        let started = log.line_with(&["serving initial configuration"]).await;
        assert!(started.is_some(), "{}", log.text());
        Self {
            place,
            upstreams,
            folder,
            log,
            _child: child,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.place)
    }

    /// Everything it has logged so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Whether a health check has found nobody there.
    pub fn has_missed(&self, replica: SocketAddrV4) -> bool {
        let host = format!("\"host\":\"{replica}\"");
        let log = self.log.text();
        let mut lines = log.lines();
        lines.any(|line| line.contains("HTTP request failed") && line.contains(&host))
    }

    /// Takes over a configuration that is the sample but for one text, as after an operator's edit.
    pub async fn reload_with(&self, text: &str, other: &str) {
        let sample = std::fs::read_to_string(SAMPLE).unwrap();
        assert!(sample.contains(text), "{text} is not in the sample");
        let path = self.folder.path().join("Caddyfile");
        std::fs::write(&path, sample.replace(text, other)).unwrap();
        let mut command = command(self.place, &self.upstreams, self.folder.path());
        command
            .args(["reload", "--adapter", "caddyfile", "--config"])
            .arg(&path)
            .args(["--address", &admin(self.folder.path())]);
        finish(command, "").await.done();
    }
}

/// Runs one of its commands on the sample.
pub async fn run(arguments: &[&str]) -> Ended {
    let folder = TempDir::new().unwrap();
    let mut command = command(own_place(), "127.0.0.1:4002 127.0.0.1:4003", folder.path());
    command.args(arguments);
    finish(command, "").await
}

/// As an operator's environment has it, with what it keeps in a folder of the test.
fn command(place: SocketAddrV4, upstreams: &str, folder: &Path) -> Command {
    let mut command = Command::new("caddy");
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env("CADDY_ADMIN", admin(folder))
        .env("RELAY_BIND", place.ip().to_string())
        .env("RELAY_DOMAIN", format!("http://{place}"))
        .env("RELAY_UPSTREAMS", upstreams);
    command
}

/// A socket of its own, so that Caddys of other tests are left alone.
fn admin(folder: &Path) -> String {
    let socket: PathBuf = folder.join("admin.sock");
    format!("unix/{}", socket.display())
}
