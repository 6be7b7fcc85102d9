//! Offers a load: sockets send in turn at a fixed rate, whatever the answers do.
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
use sovereign_relay_protocol::limits;
use tokio::{
    sync::{
        mpsc::{UnboundedSender, unbounded_channel},
        watch,
    },
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    conversation::{Conversation, Speaks, now},
    socket::Socket,
};

/// Not measured: code, caches and the processors' clocks warm up.
pub(super) const WARM_UP: Duration = Duration::from_secs(3);
/// How long the last messages may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);
/// Handshakes at once.
const AT_ONCE: usize = 64;
/// Latencies up to a minute, to three digits.
const HIGHEST_MICROS: u64 = 60_000_000;

/// How much is offered.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// Messages a second, over all sockets.
    pub(super) rate: u32,
    /// After the warm-up.
    pub(super) duration: Duration,
}

/// What came of it.
pub(super) struct Driven<P> {
    /// Microseconds from due to arrived.
    pub(super) latency: Histogram<u64>,
    pub(super) lost: u64,
    /// What was probed after the warm-up, and after the last arrival.
    pub(super) before: P,
    pub(super) after: P,
}

impl Load {
    /// Refuses a load that the relay would rightly refuse.
    pub(super) fn check(self, pairs: usize) -> anyhow::Result<()> {
        let of_slot = f64::from(self.rate) / (2 * pairs.max(1)) as f64;
        let of_session = 2.0 * of_slot * (WARM_UP + self.duration).as_secs_f64();
        ensure!(
            of_slot <= f64::from(limits::MESSAGES_PER_SECOND) / 2.0
                && of_session < f64::from(limits::SESSION_MESSAGES),
            "more than a session may carry: {of_slot:.1} messages a second for each peer, {of_session:.0} in all; take more pairs"
        );
        Ok(())
    }

    /// Sends, and waits until everything has arrived.
    pub(super) async fn drive<P>(
        self,
        speaks: Speaks,
        sockets: Vec<Socket>,
        probe: impl AsyncFn() -> anyhow::Result<P>,
    ) -> anyhow::Result<Driven<P>> {
        let began = now();
        let (stop, stopped) = watch::channel(false);
        let arrived = Arc::new(AtomicU64::new(0));
        let (mut conversations, mut senders) = (JoinSet::new(), Vec::new());
        for socket in sockets {
            let (sender, due) = unbounded_channel();
            senders.push(sender);
            let conversation = Conversation {
                socket,
                speaks,
                due,
                began,
                arrived: arrived.clone(),
                stop: stopped.clone(),
            };
            conversations.spawn(conversation.run());
        }
        let pacer = thread::spawn(move || pace(began, self.rate, WARM_UP + self.duration, &senders));
        sleep_until(began + WARM_UP).await;
        let before = probe().await?;
        let sent = tokio::task::spawn_blocking(move || pacer.join()).await?;
        let sent = sent.map_err(|_| anyhow::anyhow!("the pacer panicked"))?;
        wait_for(&arrived, sent).await;
        let after = probe().await?;
        stop.send_replace(true);
        let mut latency = histogram()?;
        while let Some(arrivals) = conversations.join_next().await {
            for arrival in arrivals??.iter().filter(|arrival| arrival.due >= WARM_UP) {
                record(&mut latency, arrival.took);
            }
        }
        Ok(Driven {
            latency,
            lost: sent.saturating_sub(arrived.load(Ordering::Relaxed)),
            before,
            after,
        })
    }
}

/// Opens sockets, and keeps their order.
pub(super) async fn open<F: Future<Output = anyhow::Result<Socket>>>(
    count: usize,
    open: impl Fn(usize) -> F,
) -> anyhow::Result<Vec<Socket>> {
    stream::iter(0..count)
        .map(open)
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

/// For latencies.
pub(super) fn histogram() -> anyhow::Result<Histogram<u64>> {
    Ok(Histogram::new_with_max(HIGHEST_MICROS, 3)?)
}

/// Notes one.
pub(super) fn record(latency: &mut Histogram<u64>, took: Duration) {
    latency.saturating_record(u64::try_from(took.as_micros()).unwrap_or(HIGHEST_MICROS));
}

/// A quantile in milliseconds.
pub(super) fn millis(latency: &Histogram<u64>, quantile: f64) -> f64 {
    latency.value_at_quantile(quantile) as f64 / 1000.0
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
