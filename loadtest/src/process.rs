//! Servers as processes of their own, and what the kernel says of them.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
};

/// Long enough for a cold start on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Linux counts process times in hundredths of a second on every architecture that Rust targets.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running relay.
pub(crate) struct RelayProcess {
    pub(crate) process: Process,
    pub(crate) url: String,
}

/// A child process. It is killed when this is dropped.
pub(crate) struct Process(Child);

impl RelayProcess {
    /// Starts the release binary beside this program and waits until it listens.
    pub(crate) async fn start(environment: &[(String, String)], data_dir: &Path) -> anyhow::Result<Self> {
        let binary = binary()?;
        let mut child = Command::new(&binary)
            .env_clear()
            .envs(
                environment
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str())),
            )
            .env("RELAY_LISTEN", "127.0.0.1:0")
            .env("RELAY_ADMIN_LISTEN", "127.0.0.1:0")
            .env("RELAY_DATA_DIR", data_dir)
            .env("RELAY_LOG", "warn,sovereign_relay::app=info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let stderr = child.stderr.take().context("no standard error")?;
        let url = tokio::time::timeout(START_DEADLINE, listening_url(stderr))
            .await
            .context("the relay did not say within 30 s where it listens")??;
        Ok(Self {
            process: Process(child),
            url,
        })
    }
}

impl RelayProcess {
    /// kill -9, and its end.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.process.0.kill().await?)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        let address = self.url.strip_prefix("http://").context("not http://")?;
        Ok(address.parse()?)
    }
}

impl Process {
    /// Starts another program, which says nothing.
    pub(crate) fn other(program: &str, arguments: &[&str]) -> anyhow::Result<Self> {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {program}: is it installed?"))?;
        Ok(Self(child))
    }

    /// Starts this program again with other arguments; gives its standard output too.
    pub(crate) fn own(argument: &str) -> anyhow::Result<(Self, ChildStdout)> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(argument)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("no standard output")?;
        Ok((Self(child), output))
    }

    /// Seconds of processor time so far, user and system.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(self.proc("stat")?)?;
        // The second field is the program's name in parentheses and may hold spaces.
        let (_, after_name) = stat.rsplit_once(')').context("unreadable process statistics")?;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok());
        let total = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
        Ok(total.context("unreadable process statistics")? / TICKS_PER_SECOND)
    }

    /// Resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(self.proc("status")?)?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse()?)
    }

    fn proc(&self, file: &str) -> anyhow::Result<PathBuf> {
        let pid = self.0.id().context("the process has ended")?;
        Ok(PathBuf::from(format!("/proc/{pid}/{file}")))
    }
}

fn binary() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name("sovereign-relay");
    if !path.is_file() {
        bail!(
            "{} is not there: run `cargo build --release` first",
            path.display()
        );
    }
    Ok(path)
}

/// Reads the log until the line that names the public address, then keeps reading so that the relay never waits
/// for a full pipe.
async fn listening_url(stderr: tokio::process::ChildStderr) -> anyhow::Result<String> {
    let mut lines = BufReader::new(stderr).lines();
    let mut seen = String::new();
    while let Some(line) = lines.next_line().await? {
        if let Some(address) = public_address(&line) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(format!("http://{address}"));
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    bail!("the relay ended at start:\n{seen}")
}

fn public_address(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let address = line.pointer("/public").or_else(|| line.get("public"))?;
    address.as_str().map(str::to_owned)
}
