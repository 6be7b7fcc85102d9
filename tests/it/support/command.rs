//! The binary as a command: arguments and environment in, exit code and texts out.

use std::process::Stdio;

use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command, time::timeout};

use super::{DEADLINE, relay::Relay};

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    /// `None`: a signal ended it.
    pub code: Option<i32>,
    /// Standard output, for scripts.
    pub out: String,
    /// Standard error, for people.
    pub err: String,
}

impl Ended {
    /// Standard output of a command that must have succeeded.
    #[track_caller]
    pub fn done(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// The same as JSON.
    #[track_caller]
    pub fn json(self) -> Value {
        let out = self.done();
        serde_json::from_str(&out).unwrap_or_else(|_| panic!("not JSON: {out}"))
    }

    /// The one line that a command which failed with `code` left for the person.
    #[track_caller]
    pub fn complaint(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        let lines: Vec<&str> = self.err.lines().collect();
        assert_eq!(lines.len(), 1, "one line, not more: {self:?}");
        lines[0]
            .strip_prefix("sovereign-relay: ")
            .unwrap_or_else(|| panic!("who complains? {self:?}"))
    }
}

/// Runs it with this environment and nothing of the test's own.
pub async fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
    run_with_input(arguments, environment, "").await
}

/// The same, with something on standard input.
pub async fn run_with_input(arguments: &[&str], environment: &[(&str, &str)], input: &str) -> Ended {
    let mut command = Command::new(Relay::binary());
    command
        .env_clear()
        .envs(environment.iter().copied())
        .args(arguments);
    finish(command, input).await
}

/// Waits for the end of any command.
pub async fn finish(mut command: Command, input: &str) -> Ended {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    // Who reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
    let output = timeout(DEADLINE, child.wait_with_output()).await;
    let output = output
        .unwrap_or_else(|_| panic!("{command:?} does not end"))
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// Runs it while nobody reads its standard output. Gives its exit code and standard error.
pub async fn run_unread(arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(Relay::binary());
    command
        .env_clear()
        .envs(environment.iter().copied())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let ended = timeout(DEADLINE, command.spawn().unwrap().wait_with_output()).await;
    let ended = ended
        .unwrap_or_else(|_| panic!("{command:?} does not end"))
        .unwrap();
    (
        ended.status.code(),
        String::from_utf8_lossy(&ended.stderr).into_owned(),
    )
}
