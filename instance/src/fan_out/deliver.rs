//! A lane's rows to their relay or push services, and what became of them back into the store.

use std::iter::zip;

use futures_util::future::join_all;
use tracing::error;
use uuid::Uuid;

use super::{
    FanOut, Report,
    verdict::{self, Met, RowFacts, Verdict},
    worker::TROUBLE_SECONDS,
};
use crate::{
    entropy::random_bytes,
    store::{Lane, OutboxRow, Outcome},
};

/// How long rows are held, in seconds: two batches of 150 s each and an enrollment between them fit, and it is
/// well under the 10 minutes for which a relay remembers keys.
pub(super) const LEASE_SECONDS: u64 = 360;
/// Rows of a relay that are taken at once: a batch.
pub(super) const CLAIM_RELAY: usize = 500;
/// Batches of a lane at the same time: while one is at the relay, another is read or settled. A relay gives a batch 64 of
/// an instance's 256 pushes at once; half is left for what else there is to tell.
const BATCHES_AT_ONCE: usize = 2;
/// Rows of browsers that are taken at once, at most ...
const CLAIM_WEB: usize = 256;
/// ... and one after another, at up to 15 s each: done within the lease.
const TURNS_WEB: usize = 16;

impl FanOut {
    /// Sends what is due in a lane, or of one notification in it, until there is no more or the lane has to wait.
    pub(super) async fn drain(&self, lane: &Lane, notification_id: Option<Uuid>) -> Report {
        let (limit, at_once) = match lane {
            Lane::Relay(_) => (CLAIM_RELAY, BATCHES_AT_ONCE),
            Lane::Web => (self.claim_web(), 1),
        };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let turns = (0..at_once).map(|_| self.drain_by_turns(lane, notification_id, limit));
        let mut report = Report::new(notification_id.unwrap_or_default());
        for delivered in join_all(turns).await {
            report.merge(&delivered);
        }
        report
    }

    async fn drain_by_turns(&self, lane: &Lane, notification_id: Option<Uuid>, limit: u32) -> Report {
        let mut report = Report::new(notification_id.unwrap_or_default());
        while !self.is_stopping() {
            let now = self.clock.seconds();
            if self.pauses.until(lane, now).is_some() {
                break;
            }
            let claimed = self
                .store
                .claim_lane(lane, notification_id, now, LEASE_SECONDS, limit)
                .await;
            match claimed {
                Ok(taken) if taken.rows.is_empty() && taken.moved == 0 => break,
                Ok(taken) => {
                    report.dropped += taken.moved;
                    report.add(&self.deliver(lane, taken.rows).await);
                }
                Err(error) => {
                    error!(%error, "rows of the outbox could not be taken");
                    // Else the worker, who still sees them due, would try again at once: a full disk can be read.
                    self.pauses.set(lane, now.saturating_add(TROUBLE_SECONDS));
                    break;
                }
            }
        }
        report
    }

    /// Rows of browsers that are taken at once.
    pub(super) fn claim_web(&self) -> usize {
        CLAIM_WEB.min(self.limits.browsers_at_once.max(1).saturating_mul(TURNS_WEB))
    }

    /// Sends rows that this process holds, and settles them. Their outcomes, in their order.
    pub(super) async fn deliver(&self, lane: &Lane, rows: Vec<OutboxRow>) -> Vec<Outcome> {
        let met = self.meet(lane, &rows).await;
        let now = self.clock.seconds();
        if let Some(until) = verdict::pause_until(met.iter(), now) {
            self.pauses.set(lane, until);
        }
        let decided: Vec<(OutboxRow, Verdict)> = zip(rows, met)
            .map(|(row, met)| {
                let verdict = verdict::decide(facts(&row), &met, now, draw());
                (row, verdict)
            })
            .collect();
        self.settle(decided, now).await
    }

    async fn meet(&self, lane: &Lane, rows: &[OutboxRow]) -> Vec<Met> {
        if let Some(until) = self.pauses.until(lane, self.clock.seconds()) {
            let reason = "relay_paused";
            return vec![Met::Held { until, reason }; rows.len()];
        }
        match lane {
            Lane::Relay(url) => self.push_all(url, rows).await,
            Lane::Web => self.post_all(rows).await,
        }
    }
}

fn facts(row: &OutboxRow) -> RowFacts {
    let taken_at = row.leased_until.saturating_sub(LEASE_SECONDS);
    let first_attempt_at = row.first_attempt_at.unwrap_or(taken_at);
    RowFacts {
        first_attempt_at,
        is_remembered: first_attempt_at < taken_at,
        target_created_at: row.target_created_at,
        ttl_until: row.ttl_until,
        // The try that has just been made is counted already.
        attempts: row.attempts.saturating_sub(1),
    }
}

fn draw() -> u64 {
    u64::from_le_bytes(random_bytes())
}
