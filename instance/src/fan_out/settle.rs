//! Verdicts into the store: registrations that are gone, rows that are done or wait, the log, the times of last use.

use std::collections::HashSet;

use metrics::counter;
use tracing::{error, warn};
use uuid::Uuid;

use super::{
    FanOut,
    verdict::{Action, Verdict},
};
use crate::{
    store::{Channel, Claim, LogEntry, OutboxRow, Outcome, Settled, StoreError, Used},
    user::User,
};

impl FanOut {
    /// Carries out the verdicts. If the database fails, the rows stay leased and are sent again under their keys.
    pub(super) async fn settle(&self, decided: Vec<(OutboxRow, Verdict)>, now: u64) -> Vec<Outcome> {
        let mut settling = Settling::default();
        let crowded = self.crowded(&decided, now).await;
        for (row, verdict) in &decided {
            let has_room = !crowded.contains(&row.user);
            let (outcome, reason) = self.carry_out(row, verdict, has_room, &mut settling).await;
            settling.note(row, outcome, reason, now);
        }
        let used = Used {
            devices: &settling.devices,
            browsers: &settling.browsers,
            at: now,
        };
        let settled = self.store.settle_used(&settling.settled, &settling.log, &used);
        if let Err(error) = settled.await {
            error!(%error, "what became of pushes could not be kept, they are sent again");
        }
        if settling.waits {
            self.waiting.notify_one();
        }
        settling.outcomes
    }

    async fn carry_out(
        &self,
        row: &OutboxRow,
        verdict: &Verdict,
        has_room: bool,
        settling: &mut Settling,
    ) -> (Outcome, &'static str) {
        let said = (verdict.outcome, verdict.reason);
        match verdict.action {
            Action::Used => settling.used(row),
            Action::Done => settling.done(row),
            Action::Prune { since } => match self.prune(row, since).await {
                Ok(became) => {
                    settling.done(row);
                    return match became {
                        Registration::Removed => said,
                        Registration::GoneAlready => (Outcome::Gone, verdict.reason),
                        Registration::Again => (Outcome::Kept, "registered_again"),
                    };
                }
                Err(error) => {
                    // The row stays leased: the other side says the same again.
                    error!(%error, "a registration that is gone could not be removed");
                    return (Outcome::Retrying, "store");
                }
            },
            Action::Retry { at, forgotten } if has_room => {
                settling.retry(row, Settled::Retry { at, forgotten });
            }
            Action::Retry { .. } => {
                settling.done(row);
                return (Outcome::Dropped, "outbox_full");
            }
        }
        said
    }

    async fn prune(&self, row: &OutboxRow, since: Option<u64>) -> Result<Registration, StoreError> {
        let (id, created_at, key) = (row.target_id, row.target_created_at, &row.target_public_key);
        let is_removed = match row.channel {
            Channel::Relay => {
                let since = since.unwrap_or(u64::MAX);
                self.store.prune_device_as(id, created_at, key, since).await?
            }
            Channel::Web => self.store.prune_subscription(id, created_at, key).await?,
        };
        if is_removed {
            return Ok(Registration::Removed);
        }
        // Its user has signed out meanwhile, or another fan-out was told the same.
        Ok(match self.store.is_registered(row.channel, id).await? {
            true => Registration::Again,
            false => Registration::GoneAlready,
        })
    }

    /// Users for whose rows there is no room to wait. Asked only where some have to.
    async fn crowded(&self, decided: &[(OutboxRow, Verdict)], now: u64) -> HashSet<User> {
        let waits = |(_, verdict): &&(OutboxRow, Verdict)| matches!(verdict.action, Action::Retry { .. });
        let waiting: Vec<&OutboxRow> = decided.iter().filter(waits).map(|(row, _)| row).collect();
        if waiting.is_empty() {
            return HashSet::new();
        }
        self.crowded_of(&waiting, now).await.unwrap_or_else(|error| {
            warn!(%error, "the outbox could not be counted");
            HashSet::new()
        })
    }

    async fn crowded_of(&self, waiting: &[&OutboxRow], now: u64) -> Result<HashSet<User>, StoreError> {
        let users = |rows: &[&OutboxRow]| rows.iter().map(|row| row.user.clone()).collect::<HashSet<_>>();
        if self.store.outbox_counts(now).await?.rows > self.limits.waiting_rows {
            return Ok(users(waiting));
        }
        // What waits already was counted when it began to.
        let new: Vec<&OutboxRow> = waiting.iter().copied().filter(|row| row.attempts <= 1).collect();
        let mut crowded = HashSet::new();
        for user in users(&new) {
            if self.store.outbox_rows_of(&user).await? > self.limits.waiting_rows_per_user {
                crowded.insert(user);
            }
        }
        Ok(crowded)
    }
}

/// What became of a registration that was called gone.
enum Registration {
    Removed,
    GoneAlready,
    Again,
}

/// What is written in the end.
#[derive(Default)]
struct Settling {
    settled: Vec<(Claim, Settled)>,
    log: Vec<LogEntry>,
    devices: Vec<(Uuid, u64)>,
    browsers: Vec<(Uuid, u64)>,
    outcomes: Vec<Outcome>,
    waits: bool,
}

impl Settling {
    fn used(&mut self, row: &OutboxRow) {
        let used = (row.target_id, row.target_created_at);
        match row.channel {
            Channel::Relay => self.devices.push(used),
            Channel::Web => self.browsers.push(used),
        }
        self.done(row);
    }

    fn done(&mut self, row: &OutboxRow) {
        self.settled.push((row.claim(), Settled::Done));
    }

    fn retry(&mut self, row: &OutboxRow, retry: Settled) {
        self.settled.push((row.claim(), retry));
        self.waits = true;
    }

    fn note(&mut self, row: &OutboxRow, outcome: Outcome, reason: &'static str, now: u64) {
        let labels = [("channel", row.channel.as_str()), ("outcome", outcome.as_str())];
        counter!("relay_instance_pushes_total", &labels).increment(1);
        self.outcomes.push(outcome);
        // That it waits is said once, and how it ended: a relay that is away for a day is not logged a hundred times.
        if outcome != Outcome::Retrying || row.attempts <= 1 {
            self.log.push(LogEntry::of(row, outcome, reason.into(), now));
        }
    }
}
