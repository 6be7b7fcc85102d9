//! A real coturn with the sample configuration, on loopback.

use std::{net::SocketAddrV4, process::Stdio};

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::{
    redis::own_place,
    turn_client::{self, TurnClient},
};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/turnserver.conf");

/// A running coturn; killed when dropped.
pub struct TurnServer {
    place: SocketAddrV4,
    _child: Child,
    _directory: TempDir,
}

impl TurnServer {
    /// Starts one that knows these secrets beside the sample's.
    pub fn start(secrets: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let place = own_place();
        let address = place.ip().to_string();
        let mut command = Command::new("turnserver");
        command
            .args(["-c", SAMPLE, "-L", &address, "-E", &address])
            .args(["--no-tls", "--no-dtls", "--no-tcp"])
            .arg(format!("--listening-port={}", place.port()))
            .arg("--pidfile")
            .arg(directory.path().join("pid"))
            .arg("--userdb")
            .arg(directory.path().join("users"));
        for secret in secrets {
            command.arg(format!("--static-auth-secret={secret}"));
        }
        let child = command
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("coturn is needed for this test: install it so that `turnserver` is on the PATH");
        Self {
            place,
            _child: child,
            _directory: directory,
        }
    }

    /// A client with a socket of its own.
    pub async fn client(&self, username: &str, credential: &str) -> TurnClient {
        turn_client::connect(self.place, username, credential).await
    }
}
