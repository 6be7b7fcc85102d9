//! Runs one load: so many callers at once, or so many calls a second whatever the answers do.
//!
//! In an open loop the latency of a call counts from the moment it was due, not from the moment a free caller got
//! round to it: a server that stalls for a second is charged for every call that second.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hdrhistogram::Histogram;
use tokio::{task::JoinSet, time::Instant};

/// Latencies up to a minute, to three digits.
const HIGHEST_MICROS: u64 = 60_000_000;
/// Most callers an open loop uses: beyond that the generator itself would be what is measured.
const OPEN_LOOP_CALLERS: usize = 4096;

/// How the calls come.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// This many callers, each calling again as soon as it has its answer.
    Callers(usize),
    /// This many calls a second.
    PerSecond(u32),
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Callers(callers) => write!(f, "{callers} callers, closed loop"),
            Self::PerSecond(rate) => write!(f, "{rate}/s, open loop"),
        }
    }
}

/// What came out.
pub(crate) struct Measured {
    /// Microseconds from due to answered, of the calls that succeeded.
    pub(crate) latency: Histogram<u64>,
    /// Calls that failed.
    pub(crate) failed: u64,
    /// From the first call to the last answer.
    pub(crate) elapsed: Duration,
}

impl Measured {
    /// Successful calls a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.latency.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// A quantile in milliseconds.
    pub(crate) fn millis(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1000.0
    }
}

/// One call: its number in, whether it succeeded out.
pub(crate) trait Call: Send + Sync + 'static {
    /// Makes the call.
    fn call(&self, number: u64) -> impl Future<Output = bool> + Send;
}

/// Calls for `duration`.
pub(crate) async fn run<C: Call>(target: Arc<C>, pace: Pace, duration: Duration) -> anyhow::Result<Measured> {
    let start = now();
    let end = start + duration;
    let next = Arc::new(AtomicU64::new(0));
    let callers = match pace {
        Pace::Callers(callers) => callers,
        Pace::PerSecond(rate) => OPEN_LOOP_CALLERS.min(rate as usize),
    };
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        tasks.spawn(caller(Arc::clone(&target), pace, Arc::clone(&next), start, end));
    }
    let mut latency = Histogram::new_with_max(HIGHEST_MICROS, 3)?;
    let mut failed = 0;
    while let Some(done) = tasks.join_next().await {
        let (own_latency, own_failed) = done??;
        latency.add(own_latency)?;
        failed += own_failed;
    }
    Ok(Measured {
        latency,
        failed,
        elapsed: start.elapsed(),
    })
}

async fn caller<C: Call>(
    target: Arc<C>,
    pace: Pace,
    next: Arc<AtomicU64>,
    start: Instant,
    end: Instant,
) -> anyhow::Result<(Histogram<u64>, u64)> {
    let mut latency = Histogram::new_with_max(HIGHEST_MICROS, 3)?;
    let mut failed = 0;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let due = match pace {
            Pace::Callers(_) => now(),
            Pace::PerSecond(rate) => start + Duration::from_secs_f64(number as f64 / f64::from(rate)),
        };
        if due >= end {
            return Ok((latency, failed));
        }
        tokio::time::sleep_until(due).await;
        if target.call(number).await {
            latency.saturating_record(u64::try_from(due.elapsed().as_micros()).unwrap_or(HIGHEST_MICROS));
        } else {
            failed += 1;
        }
    }
}

/// The time that calls are due by.
#[allow(
    clippy::disallowed_methods,
    reason = "measuring time is what this program is for"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
