//! A real Caddy with the file from `deploy/`, which differs from an operator's by its environment alone.

use std::{
    fmt::Display,
    net::SocketAddrV4,
    path::{Path, PathBuf},
    process::Stdio,
};

use rcgen::{CertifiedKey, KeyPair};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{
    command::{Ended, finish},
    log::Log,
    redis::own_place,
};

pub const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/Caddyfile");
/// Lines of it.
const BIND: &str = "\tbind {$RELAY_BIND";
const ADMIN: &str = "\tadmin {$CADDY_ADMIN";
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
        let folder = TempDir::new().unwrap();
        let domain = format!("http://{place}");
        Self::run(place, upstreams.join(" "), folder, &domain, Path::new(SAMPLE)).await
    }

    /// The same with TLS as `localhost`, and a certificate of the test's where an operator's Caddy asks for one.
    pub async fn start_with_tls(
        place: SocketAddrV4,
        upstreams: &[impl Display],
        own: &CertifiedKey<KeyPair>,
    ) -> Self {
        let upstreams: Vec<String> = upstreams.iter().map(ToString::to_string).collect();
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (certificate, key, config) = (path("certificate.pem"), path("key.pem"), path("Caddyfile"));
        std::fs::write(&certificate, own.cert.pem()).unwrap();
        std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
        let tls = format!("\ttls {} {}\n{BIND}", certificate.display(), key.display());
        // Without it Caddy would also listen on port 80.
        let off = format!("\tauto_https off\n{ADMIN}");
        let sample = std::fs::read_to_string(SAMPLE).unwrap();
        assert!(sample.contains(BIND) && sample.contains(ADMIN));
        std::fs::write(&config, sample.replace(BIND, &tls).replace(ADMIN, &off)).unwrap();
        let domain = format!("https://localhost:{}", place.port());
        Self::run(place, upstreams.join(" "), folder, &domain, &config).await
    }

    async fn run(
        place: SocketAddrV4,
        upstreams: String,
        folder: TempDir,
        domain: &str,
        config: &Path,
    ) -> Self {
        let mut command = command(place, &upstreams, folder.path());
        let mut child = command
            .env("RELAY_DOMAIN", domain)
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(config)
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

    /// Whether a health check has found nobody there, and Caddy goes by it: it does so between the line of that check
    /// and the next one.
    pub fn has_missed(&self, replica: SocketAddrV4) -> bool {
        let host = format!("\"host\":\"{replica}\"");
        let log = self.log.text();
        let is_miss = |line: &&str| line.contains("HTTP request failed") && line.contains(&host);
        log.lines().filter(is_miss).count() >= 2
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

/// A certificate for [`Caddy::start_with_tls`], its own authority.
pub fn own_certificate() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
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
