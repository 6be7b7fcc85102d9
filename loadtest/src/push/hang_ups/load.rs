//! The load of [`hang_ups`](super): callers side by side, some of whose pushes are left alone at a random moment.
//!
//! A push that is left has a connection of its own. Half of them end at a random byte of the request, the others when
//! it is written and a random part of the time has passed that the answer takes; half in order, half with a reset.

use std::{
    io,
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinSet, time::sleep};

use super::{random, run::Call};

/// Pushes of which the answer is waited for ([`Call`]), or which are left alone.
pub(super) trait Pushes: Call {
    /// The bytes of the request.
    fn request(&self, number: u64) -> anyhow::Result<Vec<u8>>;

    /// Who listens.
    fn relay(&self) -> anyhow::Result<SocketAddr>;
}

/// Callers, of whom some hang up.
pub(super) struct HangUps<P> {
    pushes: Arc<P>,
    share: f64,
    /// About what an answer takes.
    within: Duration,
}

/// What became of the pushes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tally {
    pub(super) sent: u64,
    /// Those that were waited for and not sent.
    pub(super) failed: u64,
    pub(super) hung_up: u64,
    /// Of those, before anything of the answer had come.
    pub(super) before_the_answer: u64,
}

impl<P: Pushes> HangUps<P> {
    pub(super) fn new(pushes: Arc<P>, share: f64, within: Duration) -> Self {
        Self {
            pushes,
            share,
            within,
        }
    }

    /// Makes the pushes of these numbers; so many callers, each as soon as it has its answer.
    pub(super) async fn push(&self, numbers: Range<u64>, callers: usize) -> anyhow::Result<Tally> {
        let next = Arc::new(AtomicU64::new(numbers.start));
        let mut tasks = JoinSet::new();
        for _ in 0..callers {
            let (pushes, share, within) = (Arc::clone(&self.pushes), self.share, self.within);
            let (next, end) = (Arc::clone(&next), numbers.end);
            tasks.spawn(async move { caller(&*pushes, &next, end, share, within).await });
        }
        let mut tally = Tally::default();
        while let Some(done) = tasks.join_next().await {
            tally.add(done??);
        }
        Ok(tally)
    }
}

async fn caller<P: Pushes>(
    pushes: &P,
    next: &AtomicU64,
    end: u64,
    share: f64,
    within: Duration,
) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return Ok(tally);
        }
        if random_below_one() < share {
            let request = pushes.request(number)?;
            let leaving = Leaving::at_random(request.len(), within);
            let is_before = leaving.leave(pushes.relay()?, &request).await?;
            tally.hung_up += 1;
            tally.before_the_answer += u64::from(is_before);
        } else if pushes.call(number).await {
            tally.sent += 1;
        } else {
            tally.failed += 1;
        }
    }
}

/// When and how a caller leaves.
struct Leaving {
    /// Bytes of the request that are written.
    bytes: usize,
    /// After that.
    wait: Duration,
    with_a_reset: bool,
}

impl Leaving {
    fn at_random(bytes: usize, within: Duration) -> Self {
        let is_whole = random_below_one() < 0.5;
        let with_a_reset = random_below_one() < 0.5;
        let part = random_below_one();
        match is_whole {
            true => Self {
                bytes,
                wait: within.mul_f64(part),
                with_a_reset,
            },
            false => Self {
                bytes: (bytes as f64 * part) as usize,
                wait: Duration::ZERO,
                with_a_reset,
            },
        }
    }

    /// Whether it was before the answer.
    async fn leave(&self, relay: SocketAddr, request: &[u8]) -> io::Result<bool> {
        let mut stream = TcpStream::connect(relay).await?;
        stream.set_nodelay(true)?;
        stream
            .write_all(request.get(..self.bytes).unwrap_or(request))
            .await?;
        sleep(self.wait).await;
        let answer = stream.try_read(&mut [0]);
        if self.with_a_reset {
            stream.set_zero_linger()?;
        }
        Ok(answer.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.failed += other.failed;
        self.hung_up += other.hung_up;
        self.before_the_answer += other.before_the_answer;
    }
}

fn random_below_one() -> f64 {
    let mut bytes = [0; 4];
    random(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
}
