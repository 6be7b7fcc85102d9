//! A real coturn with the sample configuration, on loopback.

use std::process::Stdio;

use tempfile::TempDir;
use tokio::{
    net::UdpSocket,
    process::{Child, Command},
};

use super::turn_client::{self, TurnClient};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/turnserver.conf");

/// A running coturn; killed when dropped.
pub struct TurnServer {
    port: u16,
    _child: Child,
    _directory: TempDir,
}

impl TurnServer {
    /// Starts one that knows these secrets beside the sample's.
    pub async fn start(secrets: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let port = free_port().await;
        let mut command = Command::new("turnserver");
        command
            .args([
                "-c",
                SAMPLE,
                "-L",
                "127.0.0.1",
                "-E",
                "127.0.0.1",
                "--no-tls",
                "--no-dtls",
            ])
            .arg(format!("--listening-port={port}"))
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
            port,
            _child: child,
            _directory: directory,
        }
    }

    /// A client with a socket of its own.
    pub async fn client(&self, username: &str, credential: &str) -> TurnClient {
        turn_client::connect(self.port, username, credential).await
    }
}

async fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.local_addr().unwrap().port()
}
