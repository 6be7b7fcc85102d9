//! Servers as processes of their own, and what the kernel says of them.

use std::{
    ffi::OsStr,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use http::Request;
use http_body_util::Full;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
};

use crate::connections::Http1;

/// Long enough for a cold start on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Linux counts process times in hundredths of a second on every architecture that Rust targets.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running relay.
pub(crate) struct RelayProcess {
    pub(crate) process: Process,
    pub(crate) url: String,
    admin: String,
    data_dir: PathBuf,
}

/// What this process itself has used.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    /// User and system.
    pub(crate) cpu_seconds: f64,
    /// Resident memory now.
    pub(crate) resident_kib: u64,
    /// The most that was ever resident.
    pub(crate) peak_kib: u64,
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
        let (public, admin) = tokio::time::timeout(START_DEADLINE, listening(stderr))
            .await
            .context("the relay did not say within 30 s where it listens")??;
        Ok(Self {
            process: Process(child),
            url: format!("http://{public}"),
            admin,
            data_dir: data_dir.to_owned(),
        })
    }
}

impl RelayProcess {
    /// kill -9, and its end.
    pub(crate) async fn kill(self) -> anyhow::Result<()> {
        self.process.kill().await
    }

    /// Runs a command of the relay's operator, such as `instances limit`.
    pub(crate) async fn operator(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let status = Command::new(binary()?)
            .env_clear()
            .args(arguments)
            .env("RELAY_ADMIN_LISTEN", &self.admin)
            .env("RELAY_DATA_DIR", &self.data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await?;
        ensure!(status.success(), "{}: {status}", arguments.join(" "));
        Ok(())
    }

    /// The sum of a metric over all its labels.
    pub(crate) async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let admin = Http1::to(&self.admin)?;
        let request = Request::get("/metrics").header("host", &self.admin);
        let (status, text) = admin.call(request.body(Full::default())?).await?;
        ensure!(status == 200, "the relay's metrics: {status}");
        metric(std::str::from_utf8(&text)?, name)
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
    pub(crate) fn own<S: AsRef<OsStr>>(arguments: &[S]) -> anyhow::Result<(Self, ChildStdout)> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().context("no standard output")?;
        Ok((Self(child), output))
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    /// Waits for its end, which must be a good one.
    pub(crate) async fn succeeded(mut self) -> anyhow::Result<()> {
        let status = self.0.wait().await?;
        ensure!(status.success(), "a process failed: {status}");
        Ok(())
    }

    /// kill -9, and its end.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.0.kill().await?)
    }

    /// Seconds of processor time so far, user and system.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        cpu_seconds(&self.proc("stat")?)
    }

    /// Resident memory in KiB.
    pub(crate) fn resident_kib(&self) -> anyhow::Result<u64> {
        status_kib(&self.proc("status")?, "VmRSS:")
    }

    /// Files and sockets that are open.
    pub(crate) fn open_files(&self) -> anyhow::Result<usize> {
        Ok(std::fs::read_dir(self.proc("fd")?)?.count())
    }

    fn proc(&self, file: &str) -> anyhow::Result<PathBuf> {
        let pid = self.0.id().context("the process has ended")?;
        Ok(PathBuf::from(format!("/proc/{pid}/{file}")))
    }
}

impl Usage {
    /// Until now.
    pub(crate) fn own() -> anyhow::Result<Self> {
        let status = Path::new("/proc/self/status");
        Ok(Self {
            cpu_seconds: cpu_seconds(Path::new("/proc/self/stat"))?,
            resident_kib: status_kib(status, "VmRSS:")?,
            peak_kib: status_kib(status, "VmHWM:")?,
        })
    }
}

fn cpu_seconds(stat: &Path) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(stat)?;
    // The second field is the program's name in parentheses and may hold spaces.
    let (_, after_name) = stat.rsplit_once(')').context("unreadable process statistics")?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok());
    let total = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
    Ok(total.context("unreadable process statistics")? / TICKS_PER_SECOND)
}

fn status_kib(status: &Path, field: &'static str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(status)?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .context(field)?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

fn metric(text: &str, name: &str) -> anyhow::Result<f64> {
    let values: Vec<f64> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix([' ', '{'])?
                .rsplit([' ', '}'])
                .next()
        })
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    ensure!(!values.is_empty(), "the relay has no metric {name}");
    Ok(values.iter().sum())
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

/// Reads the log until the line that names its addresses, then keeps reading so that the relay never waits for a full
/// pipe. The public and the operator's.
async fn listening(stderr: tokio::process::ChildStderr) -> anyhow::Result<(String, String)> {
    let mut lines = BufReader::new(stderr).lines();
    let mut seen = String::new();
    while let Some(line) = lines.next_line().await? {
        if let Some(addresses) = addresses(&line) {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return Ok(addresses);
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    bail!("the relay ended at start:\n{seen}")
}

fn addresses(line: &str) -> Option<(String, String)> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |name| line.get(name)?.as_str().map(str::to_owned);
    text("public").zip(text("admin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_the_sum_over_its_labels_and_no_other_metric_is_in_it() {
        let text = "# TYPE open gauge\nopen{a=\"x y\"} 2\nopen{a=\"z\"} 1.5\nopen_ever 9\nwhole 0\n";
        assert_eq!(metric(text, "open").unwrap(), 3.5);
        assert_eq!(metric(text, "whole").unwrap(), 0.0);
        assert!(metric(text, "op").is_err());
    }
}
