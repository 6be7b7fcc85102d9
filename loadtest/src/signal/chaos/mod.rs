//! Replicas that die while peers shake hands through them: does every handshake complete, is every acknowledged
//! message delivered once and in order, and how long does a peer notice?
//!
//! ```text
//! peers -> front -> replica 1, 2, 3 -> redis        every few seconds one of them is killed, and started again
//! ```
//!
//! Any violation is printed and makes the exit status non-zero.

mod front;
mod handshake;

use std::{path::Path, time::Duration};

use anyhow::{Context as _, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use sovereign_relay_client::{
    http::{
        Instance, InstanceKey, Relay,
        sessions::{SessionSettings, invitation},
    },
    protocol::signal::id::Slot,
    signal::{
        invitation::{Invitation, new_secret},
        session::{Options as Dialling, Session},
    },
    trust::Trust,
};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{interval_at, timeout},
};

use self::{
    front::Front,
    handshake::{Course, Seen, now, shake},
};
use super::{check_descriptors, fleet::Fleet};
use crate::{
    instance,
    process::RelayProcess,
    redis::{Fsync, RedisProcess},
    report::{self, Row},
};

/// Sessions of one instance: fewer than it may make in a minute.
const OF_INSTANCE: usize = 100;
/// Sessions that are made, or joined, at once.
const AT_ONCE: usize = 32;
/// How long handshakes may take to end when nothing dies any more: longer than the longest wait between two dials.
const PATIENCE: Duration = Duration::from_secs(60);
/// More of them say nothing new.
const VIOLATIONS_SHOWN: usize = 10;

/// `signal chaos`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Sessions, of two peers each
    #[arg(long, default_value_t = 500)]
    sessions: usize,
    /// How long replicas die
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Replicas
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// Seconds from one kill to the next
    #[arg(long, default_value_t = 5)]
    kill_every: u64,
    /// Milliseconds between two messages of a peer
    #[arg(long, default_value_t = 1000)]
    every: u64,
    /// When Redis writes to the disk
    #[arg(long, value_enum, default_value = "always")]
    appendfsync: Fsync,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs, prints, and fails on any violation.
pub(super) async fn run(options: Options) -> anyhow::Result<()> {
    // Each peer has a socket here and two at the front.
    check_descriptors(6 * u64::try_from(options.sessions)?)?;
    let directory = tempfile::tempdir()?;
    let redis = RedisProcess::start(options.appendfsync).await?;
    let mut place = Place::start(&redis, options.replicas, directory.path()).await?;
    let peers = place.join(options.sessions).await?;
    let (over, is_over) = watch::channel(false);
    let course = Course {
        every: Duration::from_millis(options.every),
        is_over,
        began: now(),
    };
    let mut handshakes = JoinSet::new();
    for pair in peers {
        let course = course.clone();
        handshakes.spawn(async move { shake(pair, &course).await });
    }
    let kills = place.suffer(&options).await?;
    over.send_replace(true);
    let outcome = Outcome::of(handshakes).await;
    outcome.print(kills, &options)
}

/// Replicas, and the front before them.
struct Place {
    fleet: Fleet,
    front: Front,
}

impl Place {
    async fn start(redis: &RedisProcess, count: usize, directory: &Path) -> anyhow::Result<Self> {
        let fleet = Fleet::start(redis, count, directory).await?;
        let front = Front::start().await?;
        let place = Self { fleet, front };
        place.show()?;
        Ok(place)
    }

    fn show(&self) -> anyhow::Result<()> {
        let places = self.fleet.replicas.iter().map(RelayProcess::address);
        self.front.stands_before(places.collect::<anyhow::Result<_>>()?);
        Ok(())
    }

    /// Sessions, with both peers in each.
    async fn join(&self, count: usize) -> anyhow::Result<Vec<[Session; 2]>> {
        let trust = Trust::system()?;
        let relay = Relay::new(self.fleet.url()?, &trust)?;
        let keys = (0..count.div_ceil(OF_INSTANCE)).map(|_| instance::key(&self.fleet.secret));
        let instances = keys
            .map(|key| Ok(relay.instance(InstanceKey::new(key?))))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let (front, dialling) = (self.front.url(), Dialling::new(trust));
        stream::iter(0..count)
            .map(|number| pair(instances.get(number / OF_INSTANCE), &front, &dialling))
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }

    /// One replica after the other is killed and started again; how often.
    async fn suffer(&mut self, options: &Options) -> anyhow::Result<usize> {
        let every = Duration::from_secs(options.kill_every.max(1));
        let kills = usize::try_from(options.seconds / options.kill_every.max(1))?;
        let mut times = interval_at(now() + every, every);
        for number in (0..options.replicas).cycle().take(kills) {
            times.tick().await;
            self.fleet.replace(number).await?;
            self.show()?;
        }
        Ok(kills)
    }
}

async fn pair(instance: Option<&Instance>, front: &str, dialling: &Dialling) -> anyhow::Result<[Session; 2]> {
    let settings = SessionSettings {
        ttl_seconds: Some(600),
        ..SessionSettings::default()
    };
    let created = instance
        .context("no such instance")?
        .create_session(&settings)
        .await?;
    let secret = new_secret();
    let join = |slot: Slot| {
        let invitation = invitation(&created, slot, &secret).context("no ticket");
        let url = front.to_owned();
        async move { anyhow::Ok(Session::connect(Invitation { url, ..invitation? }, dialling).await?) }
    };
    let (a, b) = tokio::try_join!(join(Slot::A), join(Slot::B))?;
    Ok([a, b])
}

/// What became of all handshakes.
#[derive(Default)]
struct Outcome {
    completed: usize,
    violations: Vec<String>,
    peers: Vec<Seen>,
}

impl Outcome {
    async fn of(mut handshakes: JoinSet<anyhow::Result<[Seen; 2]>>) -> Self {
        let mut outcome = Self::default();
        let all = async {
            while let Some(ended) = handshakes.join_next().await {
                outcome.add(ended.map_err(anyhow::Error::from).flatten());
            }
        };
        if timeout(PATIENCE, all).await.is_err() {
            for _ in 0..handshakes.len() {
                outcome.violations.push("a handshake did not complete".to_owned());
            }
        }
        outcome
    }

    fn add(&mut self, ended: anyhow::Result<[Seen; 2]>) {
        match ended {
            Ok(peers) => {
                self.completed += 1;
                self.peers.extend(peers);
            }
            Err(violation) => self.violations.push(format!("{violation:#}")),
        }
    }

    fn print(&self, kills: usize, options: &Options) -> anyhow::Result<()> {
        let (acknowledged, delivered) = self.peers.iter().fold((0, 0), |(acknowledged, delivered), seen| {
            (acknowledged + seen.acknowledged, delivered + seen.delivered)
        });
        let load = format!(
            "{} of {} handshakes complete, {kills} kills of {} replicas, {acknowledged} messages acknowledged, {delivered} delivered",
            self.completed, options.sessions, options.replicas
        );
        let row = |what, times: fn(&Seen) -> &Vec<Duration>| {
            Distribution::of(what, self.peers.iter().flat_map(times).copied().collect())
        };
        let rows = [
            row("from a lost connection to the next welcome", |seen| {
                &seen.until_welcome
            }),
            row("from a lost connection to the next message of the peer", |seen| {
                &seen.until_message
            }),
            row("any message, from said to heard", |seen| &seen.delays),
        ];
        report::say(&load)?;
        report::print(&rows, options.json)?;
        if self.violations.is_empty() {
            return Ok(());
        }
        let shown = self.violations.iter().take(VIOLATIONS_SHOWN);
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        bail!("{} violations:\n{}", self.violations.len(), shown.join("\n"))
    }
}

/// Times in milliseconds.
#[derive(Serialize)]
struct Distribution {
    what: &'static str,
    count: usize,
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

impl Distribution {
    fn of(what: &'static str, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |quantile: f64| {
            let rank = (times.len() as f64 * quantile).ceil() as usize;
            let time = times.get(rank.saturating_sub(1)).copied().unwrap_or_default();
            time.as_secs_f64() * 1000.0
        };
        Self {
            what,
            count: times.len(),
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p99_ms: at(0.99),
            max_ms: at(1.0),
        }
    }
}

impl Row for Distribution {
    const COLUMNS: &'static [&'static str] = &["time", "count", "p50 ms", "p90 ms", "p99 ms", "max ms"];

    fn cells(&self) -> Vec<String> {
        let millis = |millis: f64| format!("{millis:.0}");
        vec![
            self.what.to_owned(),
            self.count.to_string(),
            millis(self.p50_ms),
            millis(self.p90_ms),
            millis(self.p99_ms),
            millis(self.max_ms),
        ]
    }
}
