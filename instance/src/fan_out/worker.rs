//! The retry worker: sends what is due, drops what is too old, and keeps the log within its bounds.
//!
//! ```text
//! run: housekeeping -> a task for each lane that is due and idle -> wait (next due row | a retry | a lane done | stop)
//! ```
//!
//! Owned by the host's task, which ends it by the future it passes in. Each lane has one task at most, so that a relay
//! that takes minutes to fail delays nobody but itself.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use metrics::counter;
use tokio::task::{JoinError, JoinSet};
use tracing::{error, info, warn};
use uuid::Uuid;

use super::{FanOut, Report};
use crate::store::{Lane, StoreError};

/// Longest pause between two looks, in seconds: another process may have died and left its rows.
const LONGEST_PAUSE_SECONDS: u64 = 15;
/// After the database failed, in seconds.
pub(super) const TROUBLE_SECONDS: u64 = 5;
/// What was staged and not published for so long is nobody's, in seconds: sealing 10,000 takes a few.
const STAGED_SECONDS: u64 = 600;
/// Between two trims of the log, in seconds.
const TRIM_SECONDS: u64 = 3600;
/// Rows that are dropped in one transaction.
const DROP_AT_ONCE: u32 = 500;

impl FanOut {
    /// Works until `stop` is there, then finishes what is in flight. Run one of them in each process that sends.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let mut tasks: JoinSet<Lane> = JoinSet::new();
        let mut busy: HashSet<Lane> = HashSet::new();
        let mut trimmed_at = 0;
        self.stopping.store(false, Ordering::Release);
        tokio::pin!(stop);
        loop {
            let pause = match self.start_due(&mut tasks, &mut busy, &mut trimmed_at).await {
                Ok(seconds) => Duration::from_secs(seconds),
                Err(error) => {
                    error!(%error, "the outbox could not be worked on");
                    Duration::from_secs(TROUBLE_SECONDS)
                }
            };
            tokio::select! {
                () = &mut stop => break,
                () = self.waiting.notified() => {}
                () = tokio::time::sleep(pause) => {}
                Some(done) = tasks.join_next(), if !tasks.is_empty() => self.finished(done, &mut busy),
            }
        }
        self.stopping.store(true, Ordering::Release);
        while tasks.join_next().await.is_some() {}
        info!("retry worker stopped");
    }

    /// One turn of the worker by itself, for hosts with a scheduler of their own: drops what is too old, sends what is
    /// due, and returns when that is done. The report counts tries: a row that is due twice meanwhile is in it twice.
    pub async fn turn(&self) -> Result<Report, StoreError> {
        let now = self.clock.seconds();
        self.drop_old(now).await?;
        let lanes = self.store.due_lanes(now).await?;
        let mut report = Report::new(Uuid::nil());
        let lanes = lanes.iter().map(|lane| self.drain(lane, None));
        for delivered in join_all(lanes).await {
            report.merge(&delivered);
        }
        Ok(report)
    }

    /// Seconds until there may be more to do.
    async fn start_due(
        self: &Arc<Self>,
        tasks: &mut JoinSet<Lane>,
        busy: &mut HashSet<Lane>,
        trimmed_at: &mut u64,
    ) -> Result<u64, StoreError> {
        let now = self.clock.seconds();
        self.drop_old(now).await?;
        // A clock that was ahead puts it off no longer.
        if now.abs_diff(*trimmed_at) >= TRIM_SECONDS {
            self.store.trim_log(now).await?;
            *trimmed_at = now;
        }
        for lane in self.store.due_lanes(now).await? {
            let has_room = tasks.len() < self.limits.lanes_at_once;
            let waits = self.pauses.until(&lane, now).is_some();
            if has_room && !waits && busy.insert(lane.clone()) {
                let fan_out = Arc::clone(self);
                tasks.spawn(async move {
                    fan_out.drain(&lane, None).await;
                    lane
                });
            }
        }
        let next = self.store.next_due().await?.unwrap_or(u64::MAX);
        Ok(next.saturating_sub(now).clamp(1, LONGEST_PAUSE_SECONDS))
    }

    fn finished(&self, done: Result<Lane, JoinError>, busy: &mut HashSet<Lane>) {
        match done {
            Ok(lane) => {
                busy.remove(&lane);
            }
            Err(error) => {
                // Which lane it was is not known; a lane that is asked twice is asked for other rows.
                error!(%error, "a lane of the retry worker failed");
                busy.clear();
            }
        }
    }

    async fn drop_old(&self, now: u64) -> Result<(), StoreError> {
        let begun_before = now.saturating_sub(STAGED_SECONDS);
        loop {
            let staged = self.store.drop_staged(begun_before, now, DROP_AT_ONCE).await?;
            if staged > 0 {
                warn!(rows = staged, "a fan-out that was never finished is dropped");
            }
            if staged < u64::from(DROP_AT_ONCE) {
                break;
            }
        }
        loop {
            let dropped = self.store.drop_expired(now, DROP_AT_ONCE).await?;
            for row in &dropped {
                let labels = [("channel", row.channel.as_str()), ("outcome", "expired")];
                counter!("relay_instance_pushes_total", &labels).increment(1);
            }
            if dropped.len() < DROP_AT_ONCE as usize {
                return Ok(());
            }
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}
