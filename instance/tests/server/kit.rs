//! The binary as a command and as a server, each in a folder of its own and with nothing of the test's environment.

use std::{borrow::BorrowMut, process::Stdio, time::Duration};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};

/// Longer than anything here takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// Nobody listens there.
pub(crate) const NO_RELAY: &str = "http://127.0.0.1:1";

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// Standard output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// The same as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let out = self.done();
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("not JSON: {out}"))
    }

    /// Last line that a command which failed with `code` left for the person.
    #[track_caller]
    pub(crate) fn complaint(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        let line = self.err.lines().last().unwrap_or_default();
        line.strip_prefix("sovereign-instance: ")
            .unwrap_or_else(|| panic!("who complains? {self:?}"))
    }
}

/// A folder with an instance's database.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// A command on it.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = binary(arguments);
        command
            .env("SOVEREIGN_DATA_DIR", self.folder.path().join("data"))
            .env("SOVEREIGN_RELAY_URL", NO_RELAY);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.command(arguments)).await
    }

    /// A new user's token.
    pub(crate) async fn user(&self, name: &str) -> String {
        self.run(&["user", "add", name]).await.done().trim().to_owned()
    }

    pub(crate) async fn serve(&self) -> Server {
        Server::start(self.command(&["serve", "--listen", "127.0.0.1:0"])).await
    }
}

/// The binary, with an empty environment.
pub(crate) fn binary(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sovereign-instance"));
    command.env_clear().args(arguments).kill_on_drop(true);
    command
}

/// Waits for the end.
pub(crate) async fn finish(mut command: impl BorrowMut<Command>) -> Ended {
    let command = command.borrow_mut();
    let output = command.stdin(Stdio::null()).output();
    let output = timeout(DEADLINE, output)
        .await
        .unwrap_or_else(|_| panic!("{command:?} does not end"))
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// A server that runs. Dropped, it is killed.
pub(crate) struct Server {
    pub(crate) url: String,
    child: Child,
    log: JoinHandle<String>,
    http: reqwest::Client,
}

impl Server {
    async fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = timeout(DEADLINE, async {
            loop {
                let line = lines.next_line().await.unwrap().expect("the server ended");
                if let Some(url) = line.strip_prefix("Sovereign instance at ") {
                    return url.to_owned();
                }
            }
        });
        let url = url.await.unwrap();
        // Somebody must read on: a log that nobody takes stops the server.
        let log = tokio::spawn(async move {
            let mut log = String::new();
            while let Ok(Some(line)) = lines.next_line().await {
                log.push_str(&line);
                log.push('\n');
            }
            log
        });
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            url,
            child,
            log,
            http,
        }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .timeout(DEADLINE)
    }

    /// As an app with a token.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        token: &str,
        body: Option<&Value>,
    ) -> (StatusCode, Value) {
        let request = self.request(method, path).bearer_auth(token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await.unwrap();
        (response.status(), response.json().await.unwrap())
    }

    /// Asks it to stop; its exit code, and the rest of its log.
    pub(crate) async fn stop(mut self) -> (Option<i32>, String) {
        signal(&self.child, "TERM").await;
        let status = timeout(DEADLINE, self.child.wait())
            .await
            .expect("the server stops");
        (status.unwrap().code(), self.log.await.unwrap())
    }
}

/// What a person or a service manager sends.
pub(crate) async fn signal(child: &Child, name: &str) {
    let process = child.id().expect("it runs").to_string();
    let sent = Command::new("kill")
        .args(["-s", name, &process])
        .status()
        .await
        .unwrap();
    assert!(sent.success());
}
