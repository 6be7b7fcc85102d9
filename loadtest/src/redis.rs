//! A Redis of this run's own, and what it says of itself.

use std::{net::TcpListener, time::Duration};

use anyhow::Context as _;
use redis::{
    AsyncConnectionConfig, Client, RedisResult,
    aio::{MultiplexedConnection, PubSub},
};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::process::Process;

/// Long enough for a cold start on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// When Redis writes what it has taken to the disk.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Fsync {
    /// Before it answers: what was acknowledged survives anything
    Always,
    /// Once a second
    Everysec,
}

/// A running redis-server. It ends with its owner, and its data with it.
pub(crate) struct RedisProcess {
    pub(crate) url: String,
    client: Client,
    _process: Process,
    _directory: TempDir,
}

/// What it has done since its start.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    /// Scripts that clients ran; each is one round trip.
    pub(crate) scripts: u64,
    /// Commands, those that scripts run included.
    pub(crate) commands: u64,
    /// Processor time of the whole process.
    pub(crate) cpu_seconds: f64,
    /// Processor time of the thread that runs all commands.
    pub(crate) main_thread_seconds: f64,
}

impl RedisProcess {
    /// Starts one with an append-only file, and waits until it answers.
    pub(crate) async fn start(fsync: Fsync) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
        let when = match fsync {
            Fsync::Always => "always",
            Fsync::Everysec => "everysec",
        };
        let folder = directory
            .path()
            .to_str()
            .context("a folder with a strange name")?;
        let process = Process::other(
            "redis-server",
            &[
                "--port",
                &port,
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "yes",
                "--appendfsync",
                when,
                "--dir",
                folder,
            ],
        )?;
        let url = format!("redis://127.0.0.1:{port}");
        let redis = Self {
            client: Client::open(url.as_str())?,
            url,
            _process: process,
            _directory: directory,
        };
        timeout(START_DEADLINE, redis.answers())
            .await
            .context("redis-server does not answer")?;
        Ok(redis)
    }

    /// A connection that hears what is published.
    pub(crate) async fn subscription(&self) -> RedisResult<PubSub> {
        self.client.get_async_pubsub().await
    }

    /// What it has done so far.
    pub(crate) async fn work(&self) -> anyhow::Result<Work> {
        let mut connection = self.connect().await?;
        let mut command = redis::cmd("INFO");
        let command = command.arg("commandstats").arg("cpu");
        let info: String = command.query_async(&mut connection).await?;
        Ok(Work {
            scripts: info
                .lines()
                .filter_map(calls)
                .find(|(name, _)| *name == "evalsha")
                .map_or(0, |(_, calls)| calls),
            commands: info.lines().filter_map(calls).map(|(_, calls)| calls).sum(),
            cpu_seconds: number::<f64>(&info, "used_cpu_user:")? + number::<f64>(&info, "used_cpu_sys:")?,
            main_thread_seconds: number::<f64>(&info, "used_cpu_user_main_thread:")?
                + number::<f64>(&info, "used_cpu_sys_main_thread:")?,
        })
    }

    async fn answers(&self) {
        while self.connect().await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// A connection that waits for answers as long as they take: a slow disk holds Redis up for a second.
    pub(crate) async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let patient = AsyncConnectionConfig::new().set_response_timeout(None);
        self.client
            .get_multiplexed_async_connection_with_config(&patient)
            .await
    }
}

impl Work {
    /// What was done between two moments.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            scripts: self.scripts - before.scripts,
            commands: self.commands - before.commands,
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
            main_thread_seconds: self.main_thread_seconds - before.main_thread_seconds,
        }
    }
}

/// `cmdstat_name:calls=7,usec=…`
fn calls(line: &str) -> Option<(&str, u64)> {
    let (name, figures) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
    let (calls, _) = figures.split_once(',')?;
    Some((name, calls.parse().ok()?))
}

fn number<T: std::str::FromStr>(info: &str, name: &str) -> anyhow::Result<T> {
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().parse().ok());
    number.with_context(|| format!("redis says nothing of {name}"))
}
