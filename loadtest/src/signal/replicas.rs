//! Messages from peer to peer over replicas that share a Redis: their one-way latency beside a bare publish and
//! subscribe at the same Redis, and what a message costs Redis and the relays.
//!
//! ```text
//! peer -> replica 1 -> redis (append, publish) -> replica 2 -> redis (read) -> replica 2 -> peer
//! bare:   this program -> redis (publish) -> this program
//! ```

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use hdrhistogram::Histogram;
use serde::Serialize;
use sovereign_relay_protocol::redacted::Redacted;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use super::{
    check_descriptors,
    conversation::{Speaks, now},
    drive::{Load, WARM_UP, histogram, millis, open, record},
    fleet::Fleet,
    sessions,
    socket::Socket,
};
use crate::{
    redis::{Fsync, RedisProcess, Work},
    report::{self, Row},
};

/// Between two bare messages.
const BARE_EVERY: Duration = Duration::from_millis(5);
const BARE_CHANNEL: &str = "bare";
/// How long idle sessions are looked at.
const QUIET: Duration = Duration::from_secs(5);

/// `signal replicas`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Messages a second, over all pairs and both ways
    #[arg(long, default_value_t = 2000)]
    rate: u32,
    /// Pairs of peers
    #[arg(long, default_value_t = 500)]
    pairs: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// How often everything is measured
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Replicas
    #[arg(long, default_value_t = 3)]
    replicas: usize,
    /// When Redis writes to the disk
    #[arg(long, value_enum, default_value = "always")]
    appendfsync: Fsync,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Where the peers of a pair are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peers {
    Together,
    Apart,
}

/// Measures and prints.
pub(super) async fn run(options: Options) -> anyhow::Result<()> {
    check_descriptors(2 * u64::try_from(options.pairs)?)?;
    options.load().check(options.pairs)?;
    let mut rows = Vec::new();
    for _ in 0..options.rounds {
        for peers in [Peers::Together, Peers::Apart] {
            rows.push(options.measure(peers).await?);
        }
    }
    report::print(&rows, options.json)
}

impl Options {
    fn load(&self) -> Load {
        Load {
            rate: self.rate,
            duration: Duration::from_secs(self.seconds),
        }
    }

    async fn measure(&self, peers: Peers) -> anyhow::Result<Measurement> {
        let directory = tempfile::tempdir()?;
        let redis = RedisProcess::start(self.appendfsync).await?;
        let fleet = Fleet::start(&redis, self.replicas, directory.path()).await?;
        let sockets = self.join(&redis, &fleet, peers).await?;
        let bare = Bare::start(&redis).await?;
        let probe = async || {
            let relays = fleet.replicas.iter().map(|replica| replica.process.cpu_seconds());
            let relays = relays.sum::<anyhow::Result<f64>>()?;
            anyhow::Ok((redis.work().await?, relays, bare.said()))
        };
        let driven = self.load().drive(Speaks::Signaling, sockets, probe).await?;
        let ((before, relays_before, bare_before), (after, relays, bare_said)) =
            (driven.before, driven.after);
        let (redis, latency, bare_latency) = (after.since(before), &driven.latency, bare.heard());
        let each = |total: f64| total / latency.len().max(1) as f64;
        Ok(Measurement {
            peers: match peers {
                Peers::Together => "on one replica",
                Peers::Apart => "on two replicas",
            },
            load: format!(
                "{}/s over {} pairs, {} replicas",
                self.rate, self.pairs, self.replicas
            ),
            per_second: latency.len() as f64 / self.seconds as f64,
            p50_ms: millis(latency, 0.5),
            p99_ms: millis(latency, 0.99),
            bare_p50_ms: millis(&bare_latency, 0.5),
            bare_p99_ms: millis(&bare_latency, 0.99),
            lost: driven.lost,
            scripts: each(redis.scripts as f64),
            commands: each(redis.commands.saturating_sub(bare_said - bare_before) as f64),
            redis_cpu_micros: each(redis.cpu_seconds * 1e6),
            redis_main_micros: each(redis.main_thread_seconds * 1e6),
            relay_cpu_micros: each((relays - relays_before) * 1e6),
        })
    }

    /// Makes the sessions and joins them; says what that and their silence cost Redis.
    async fn join(&self, redis: &RedisProcess, fleet: &Fleet, peers: Peers) -> anyhow::Result<Vec<Socket>> {
        let before = redis.work().await?;
        let tickets = sessions::make(fleet.url()?, &fleet.secret, self.pairs).await?;
        let ticket = |number: usize| tickets.get(number).cloned().unwrap_or_else(|| Redacted::new(""));
        let join = |number: usize| {
            let (pair, slot) = (number / 2, number % 2);
            let replica = match peers {
                Peers::Together => pair,
                Peers::Apart => pair + slot,
            };
            let replica = fleet.replicas.get(replica % fleet.replicas.len().max(1));
            let url = replica.map(|replica| replica.url.as_str()).unwrap_or_default();
            Socket::join(url, ticket(number), number)
        };
        let sockets = open(2 * self.pairs, join).await?;
        let joined = redis.work().await?;
        sleep(QUIET).await;
        let quiet = redis.work().await?.since(joined);
        self.say(joined.since(before), quiet)?;
        Ok(sockets)
    }

    fn say(&self, making: Work, quiet: Work) -> anyhow::Result<()> {
        let pairs = self.pairs as f64;
        report::say(&format!(
            "making a session and joining it twice: {:.1} scripts, {:.0} us of Redis's main thread; {} idle sessions: {:.1} commands/s, {:.2} % of a core",
            making.scripts as f64 / pairs,
            making.main_thread_seconds * 1e6 / pairs,
            self.pairs,
            quiet.commands as f64 / QUIET.as_secs_f64(),
            quiet.main_thread_seconds * 100.0 / QUIET.as_secs_f64(),
        ))
    }
}

/// Messages that are published and heard by this program, beside whatever else Redis does.
struct Bare {
    said: Arc<AtomicU64>,
    heard: Arc<Mutex<Histogram<u64>>>,
    _tasks: JoinSet<redis::RedisResult<()>>,
}

impl Bare {
    async fn start(redis: &RedisProcess) -> anyhow::Result<Self> {
        let mut hearing = redis.subscription().await?;
        hearing.subscribe(BARE_CHANNEL).await?;
        let saying = redis.connect().await?;
        let (said, heard) = (Arc::<AtomicU64>::default(), Arc::new(Mutex::new(histogram()?)));
        let (began, mut tasks) = (now(), JoinSet::new());
        tasks.spawn(say(saying, began, Arc::clone(&said)));
        tasks.spawn(hear(hearing, began, Arc::clone(&heard)));
        Ok(Self {
            said,
            heard,
            _tasks: tasks,
        })
    }

    fn said(&self) -> u64 {
        self.said.load(Ordering::Relaxed)
    }

    fn heard(&self) -> Histogram<u64> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn say(
    mut connection: redis::aio::MultiplexedConnection,
    began: Instant,
    said: Arc<AtomicU64>,
) -> redis::RedisResult<()> {
    let mut times = interval(BARE_EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let mut command = redis::cmd("PUBLISH");
        // From here: a timer that is late is not the server's doing.
        command
            .arg(BARE_CHANNEL)
            .arg(began.elapsed().as_nanos().to_string());
        command.query_async::<()>(&mut connection).await?;
        said.fetch_add(1, Ordering::Relaxed);
    }
}

async fn hear(
    mut subscription: redis::aio::PubSub,
    began: Instant,
    heard: Arc<Mutex<Histogram<u64>>>,
) -> redis::RedisResult<()> {
    let mut messages = subscription.on_message();
    while let Some(message) = messages.next().await {
        let at = Duration::from_nanos(message.get_payload::<String>()?.parse().unwrap_or_default());
        if at >= WARM_UP {
            let took = began.elapsed().saturating_sub(at);
            record(&mut heard.lock().unwrap_or_else(PoisonError::into_inner), took);
        }
    }
    Ok(())
}

/// One measurement.
#[derive(Serialize)]
struct Measurement {
    peers: &'static str,
    load: String,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// A bare publish and subscribe in the same seconds.
    bare_p50_ms: f64,
    bare_p99_ms: f64,
    lost: u64,
    /// Of each message: round trips to Redis, and the commands in them.
    scripts: f64,
    commands: f64,
    /// Processor time of Redis for each message, and of its main thread alone.
    redis_cpu_micros: f64,
    redis_main_micros: f64,
    /// Processor time of all replicas for each message.
    relay_cpu_micros: f64,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "peers",
        "load",
        "messages/s",
        "p50 ms",
        "p99 ms",
        "bare p50 ms",
        "bare p99 ms",
        "lost",
        "scripts/message",
        "commands/message",
        "Redis CPU us/message",
        "its main thread",
        "relay CPU us/message",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.peers.to_owned(),
            self.load.clone(),
            format!("{:.0}", self.per_second),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
            format!("{:.2}", self.bare_p50_ms),
            format!("{:.2}", self.bare_p99_ms),
            self.lost.to_string(),
            format!("{:.2}", self.scripts),
            format!("{:.1}", self.commands),
            format!("{:.0}", self.redis_cpu_micros),
            format!("{:.0}", self.redis_main_micros),
            format!("{:.0}", self.relay_cpu_micros),
        ]
    }
}
