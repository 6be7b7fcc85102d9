//! Messages at a fixed rate, whatever the answers do: one-way latency, and the server's processor time for each.
//!
//! ```text
//! pacer (a thread) -> socket 1, 2, 3 .. in turn -> server -> the peer's socket (relay) or the same one (echo)
//! ```
//!
//! Both ends of a message are in this process, so one clock measures its way. The pacer is a thread because timers of
//! the runtime are good to a millisecond only, which is more than a message takes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::ensure;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hdrhistogram::Histogram;
use serde::Serialize;
use sovereign_relay_protocol::{limits, redacted::Redacted};
use tokio::{
    sync::{
        mpsc::{UnboundedSender, unbounded_channel},
        watch,
    },
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    check_descriptors,
    conversation::{Conversation, Speaks, now},
    echo::EchoProcess,
    sessions,
    socket::Socket,
    start_relay,
};
use crate::{
    process::Process,
    report::{self, Row},
};

/// Not measured: code, caches and the processors' clocks warm up.
const WARM_UP: Duration = Duration::from_secs(3);
/// How long the last messages may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// Handshakes at once.
const AT_ONCE: usize = 64;
/// Latencies up to a minute, to three digits.
const HIGHEST_MICROS: u64 = 60_000_000;

/// `signal rate`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Messages a second, over all pairs and both ways
    #[arg(long, default_value_t = 5000)]
    rate: u32,
    /// Pairs of peers
    #[arg(long, default_value_t = 500)]
    pairs: usize,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// How often both servers are measured, in turn
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub(super) async fn run(options: Options) -> anyhow::Result<()> {
    check_descriptors(2 * u64::try_from(options.pairs)?)?;
    check_limits(&options)?;
    let mut rows = Vec::new();
    for _ in 0..options.rounds {
        let echo = EchoProcess::start().await?;
        let sockets = open(2 * options.pairs, |number| Socket::open(&echo.url, "/", number)).await?;
        rows.push(
            measure(
                "bare actix-ws echo",
                Speaks::Echo,
                &echo.process,
                sockets,
                &options,
            )
            .await?,
        );
        drop(echo);
        let directory = tempfile::tempdir()?;
        let (relay, secret) = start_relay(directory.path()).await?;
        let tickets = sessions::make(&relay.url, &secret, options.pairs).await?;
        let ticket = |number: usize| tickets.get(number).cloned().unwrap_or_else(|| Redacted::new(""));
        let join = |number| Socket::join(&relay.url, ticket(number), number);
        let sockets = open(2 * options.pairs, join).await?;
        rows.push(measure("relay", Speaks::Signaling, &relay.process, sockets, &options).await?);
    }
    report::print(&rows, options.json)
}

/// Refuses a load that the relay would rightly refuse.
fn check_limits(options: &Options) -> anyhow::Result<()> {
    let of_slot = f64::from(options.rate) / (2 * options.pairs.max(1)) as f64;
    let of_session = 2.0 * of_slot * (WARM_UP.as_secs_f64() + options.seconds as f64);
    ensure!(
        of_slot <= f64::from(limits::MESSAGES_PER_SECOND) / 2.0
            && of_session < f64::from(limits::SESSION_MESSAGES),
        "more than a session may carry: {of_slot:.1} messages a second for each peer, {of_session:.0} in all; take more pairs"
    );
    Ok(())
}

async fn open<F: Future<Output = anyhow::Result<Socket>>>(
    count: usize,
    open: impl Fn(usize) -> F,
) -> anyhow::Result<Vec<Socket>> {
    stream::iter(0..count)
        .map(open)
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

async fn measure(
    target: &'static str,
    speaks: Speaks,
    process: &Process,
    sockets: Vec<Socket>,
    options: &Options,
) -> anyhow::Result<Measurement> {
    let began = now();
    let (stop, stopped) = watch::channel(false);
    let arrived = Arc::new(AtomicU64::new(0));
    let (mut conversations, mut senders) = (JoinSet::new(), Vec::new());
    for socket in sockets {
        let (sender, due) = unbounded_channel();
        senders.push(sender);
        let (arrived, stop) = (arrived.clone(), stopped.clone());
        conversations.spawn(
            Conversation {
                socket,
                speaks,
                due,
                began,
                arrived,
                stop,
            }
            .run(),
        );
    }
    let duration = Duration::from_secs(options.seconds);
    let rate = options.rate;
    let pacer = thread::spawn(move || pace(began, rate, WARM_UP + duration, &senders));
    sleep_until(began + WARM_UP).await;
    let cpu = process.cpu_seconds()?;
    let sent = tokio::task::spawn_blocking(move || pacer.join()).await?;
    let sent = sent.map_err(|_| anyhow::anyhow!("the pacer panicked"))?;
    wait_for(&arrived, sent).await;
    let cpu = process.cpu_seconds()? - cpu;
    stop.send_replace(true);
    let mut latency = Histogram::<u64>::new_with_max(HIGHEST_MICROS, 3)?;
    while let Some(arrivals) = conversations.join_next().await {
        for arrival in arrivals??.iter().filter(|arrival| arrival.due >= WARM_UP) {
            latency.saturating_record(u64::try_from(arrival.took.as_micros()).unwrap_or(HIGHEST_MICROS));
        }
    }
    Ok(Measurement {
        target,
        load: format!("{rate}/s over {} pairs, open loop", options.pairs),
        per_second: latency.len() as f64 / duration.as_secs_f64(),
        p50_ms: latency.value_at_quantile(0.5) as f64 / 1000.0,
        p99_ms: latency.value_at_quantile(0.99) as f64 / 1000.0,
        lost: sent.saturating_sub(arrived.load(Ordering::Relaxed)),
        cpu_micros: cpu * 1e6 / latency.len().max(1) as f64,
        resident_kib: process.resident_kib()?,
    })
}

/// Tells the sockets in turn when to send. Gives how often it did.
fn pace(began: Instant, rate: u32, duration: Duration, sockets: &[UnboundedSender<Duration>]) -> u64 {
    let mut sent: u64 = 0;
    for socket in sockets.iter().cycle() {
        let due = Duration::from_secs_f64(sent as f64 / f64::from(rate));
        if due >= duration {
            break;
        }
        thread::sleep(due.saturating_sub(began.elapsed()));
        // One that has ended says why when it is joined.
        let _ = socket.send(due);
        sent += 1;
    }
    sent
}

async fn wait_for(arrived: &AtomicU64, sent: u64) {
    let begun = now();
    while arrived.load(Ordering::Relaxed) < sent && begun.elapsed() < PATIENCE {
        sleep(Duration::from_millis(5)).await;
    }
}

/// One measurement.
#[derive(Serialize)]
struct Measurement {
    target: &'static str,
    load: String,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    lost: u64,
    /// Processor time of the server for each message, user and system.
    cpu_micros: f64,
    resident_kib: u64,
}

impl Row for Measurement {
    const COLUMNS: &'static [&'static str] = &[
        "target",
        "load",
        "messages/s",
        "p50 ms",
        "p99 ms",
        "lost",
        "server CPU us/message",
        "server RSS MiB",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.target.to_owned(),
            self.load.clone(),
            format!("{:.0}", self.per_second),
            format!("{:.2}", self.p50_ms),
            format!("{:.2}", self.p99_ms),
            self.lost.to_string(),
            format!("{:.0}", self.cpu_micros),
            (self.resident_kib / 1024).to_string(),
        ]
    }
}
