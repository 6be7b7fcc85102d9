//! What the writer's thread does: commits, answers, and opens the database again when it was lost.

use std::time::Duration;

use redb::{Database, Durability};
use sovereign_relay_actors::ports::StoreError;

use super::{
    Urgency,
    job::{Job, stopped},
    queue::Shared,
};
use crate::store::embedded::handle::{Handle, is_lost};

/// After so many commits without a sync comes one with: redb can't reuse pages before.
const COMMITS_PER_SYNC: u32 = 1000;
/// From the disk's failure to the first try to open the database again; doubles with each that fails.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between two tries: opening reads the whole file.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The thread's own state.
pub(super) struct Thread<'a> {
    handle: &'a Handle,
    shared: &'a Shared,
    /// Commits since the last one that was synced.
    unsynced: u32,
    /// Before the next try to open the database.
    pause: Duration,
}

impl<'a> Thread<'a> {
    pub(super) fn new(handle: &'a Handle, shared: &'a Shared) -> Self {
        Self {
            handle,
            shared,
            unsynced: 0,
            pause: FIRST_PAUSE,
        }
    }

    /// Until the queue is closed and empty.
    pub(super) fn write_until_closed(mut self) {
        while let Some(batch) = self.shared.next_batch() {
            if let Err(fault) = self.write(batch)
                && !self.is_back_after(&fault)
            {
                return;
            }
        }
        if self.unsynced > 0
            && let Some(database) = self.handle.get()
            && let Err(error) = commit(&database, Durability::Immediate, &mut [])
        {
            tracing::error!(%error, "the store's last counters could not be written");
        }
    }

    /// Writes and answers. An error: the database is lost.
    fn write(&mut self, mut batch: Vec<Box<dyn Job>>) -> Result<(), StoreError> {
        let Some(database) = self.handle.get() else {
            return Err(stopped());
        };
        let durable = batch.is_empty()
            || self.unsynced >= COMMITS_PER_SYNC
            || batch.iter().any(|job| job.urgency() == Urgency::Durable);
        let durability = if durable {
            Durability::Immediate
        } else {
            Durability::None
        };
        let together = commit(&database, durability, &mut batch);
        if batch.len() > 1 && together.as_ref().is_err_and(|error| !is_lost(error)) {
            self.unsynced = 0;
            return self.write_each_alone(&database, batch);
        }
        self.unsynced = if durable { 0 } else { self.unsynced + 1 };
        self.settle(together, batch)
    }

    fn write_each_alone(&mut self, database: &Database, batch: Vec<Box<dyn Job>>) -> Result<(), StoreError> {
        let mut state = Ok(());
        for mut job in batch {
            if let Err(fault) = &state {
                job.answer(Err(StoreError::clone(fault)));
                continue;
            }
            let outcome = commit(database, Durability::Immediate, std::slice::from_mut(&mut job));
            state = self.settle(outcome, vec![job]);
        }
        state
    }

    fn settle(
        &mut self,
        committed: Result<(), redb::Error>,
        jobs: Vec<Box<dyn Job>>,
    ) -> Result<(), StoreError> {
        let lost = committed.as_ref().is_err_and(is_lost);
        let outcome = self.shared.report(committed);
        for job in jobs {
            job.answer(outcome.clone());
        }
        if lost {
            return outcome;
        }
        self.pause = FIRST_PAUSE;
        Ok(())
    }

    /// Closes the database and opens it again, as often as it takes. `false`: the store was closed meanwhile.
    fn is_back_after(&mut self, fault: &StoreError) -> bool {
        self.shared.leave(fault);
        self.unsynced = 0;
        self.handle.close();
        while self.shared.pause(self.pause) {
            self.pause = LONGEST_PAUSE.min(self.pause * 2);
            match self.reopen() {
                Ok(()) => {
                    metrics::counter!("relay_store_reopened_total").increment(1);
                    tracing::info!("the store works again");
                    self.shared.come_back();
                    return true;
                }
                Err(error) => {
                    self.handle.close();
                    tracing::warn!(%error, "the store can't be opened again yet");
                }
            }
        }
        false
    }

    /// It is back when it can commit.
    fn reopen(&self) -> Result<(), StoreError> {
        let told = |error: &dyn std::fmt::Display| StoreError(error.to_string());
        let database = self.handle.reopen().map_err(|error| told(&error))?;
        commit(&database, Durability::Immediate, &mut []).map_err(|error| told(&error))
    }
}

fn commit(
    database: &Database,
    durability: Durability,
    batch: &mut [Box<dyn Job>],
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(durability)?;
    for job in batch {
        job.apply(&transaction)?;
    }
    Ok(transaction.commit()?)
}
