//! The queue between callers and the writer's thread, and what both know of the database.
//!
//! Invariant: a job that was queued is answered, also when the thread dies: then its sender is dropped.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sovereign_relay_actors::ports::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    Urgency,
    job::{Job, stopped},
};

/// Most writes waiting: with 4,000 durable writes a second and more, a quarter of a second.
const WAITING_WRITES: usize = 1024;
/// Most writes in one transaction: keeps the time to an answer near that of one sync.
const WRITES_PER_COMMIT: usize = 256;

/// What the writer's callers and its thread share.
pub(super) struct Shared {
    permits: Arc<Semaphore>,
    queue: Mutex<Queue>,
    filled: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Box<dyn Job>>,
    closed: bool,
    /// The database is away.
    away: bool,
    /// A read has failed in a way that says the database is lost.
    suspect: bool,
    fault: Option<StoreError>,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(WAITING_WRITES)),
            queue: Mutex::default(),
            filled: Condvar::new(),
        }
    }

    /// The right to queue a job.
    pub(super) async fn permit(&self, urgency: Urgency) -> Result<OwnedSemaphorePermit, StoreError> {
        match urgency {
            Urgency::Durable => self.permits.clone().acquire_owned().await.map_err(|_| stopped()),
            Urgency::Lossy => self
                .permits
                .clone()
                .try_acquire_owned()
                .map_err(|error| StoreError(error.to_string())),
        }
    }

    /// Queues a job, unless nobody would take it.
    pub(super) fn push(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        let mut queue = self.lock();
        if queue.closed {
            return Err(stopped());
        }
        if queue.away {
            return Err(queue.fault.clone().unwrap_or_else(stopped));
        }
        queue.jobs.push_back(job);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for jobs; `None` when closed and empty. No jobs: the database is to be looked at.
    pub(super) fn next_batch(&self) -> Option<Vec<Box<dyn Job>>> {
        let queue = self.lock();
        let idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.closed && !queue.suspect;
        let mut queue = self
            .filled
            .wait_while(queue, idle)
            .unwrap_or_else(PoisonError::into_inner);
        let suspect = std::mem::take(&mut queue.suspect);
        let count = queue.jobs.len().min(WRITES_PER_COMMIT);
        (count > 0 || suspect).then(|| queue.jobs.drain(..count).collect())
    }

    /// Waits for the next try to open the database; `false` when closed.
    pub(super) fn pause(&self, pause: Duration) -> bool {
        let (queue, _) = self
            .filled
            .wait_timeout_while(self.lock(), pause, |queue| !queue.closed)
            .unwrap_or_else(PoisonError::into_inner);
        !queue.closed
    }

    /// From now on jobs are refused; those that wait are now.
    pub(super) fn leave(&self, fault: &StoreError) {
        let mut queue = self.lock();
        queue.away = true;
        let jobs = std::mem::take(&mut queue.jobs);
        drop(queue);
        for job in jobs {
            job.answer(Err(fault.clone()));
        }
    }

    /// Jobs are taken again.
    pub(super) fn come_back(&self) {
        let mut queue = self.lock();
        queue.away = false;
        queue.suspect = false;
        queue.fault = None;
    }

    /// Logs a failed commit and keeps it for `/readyz`.
    pub(super) fn report(&self, committed: Result<(), redb::Error>) -> Result<(), StoreError> {
        let outcome = committed.map_err(|error| StoreError(error.to_string()));
        if let Err(error) = &outcome {
            metrics::counter!("relay_store_failed_commits_total").increment(1);
            tracing::error!(%error, "the store could not commit");
        }
        self.lock().fault = outcome.as_ref().err().cloned();
        outcome
    }

    /// What went wrong with the last commit, if it did.
    pub(super) fn fault(&self) -> Option<StoreError> {
        let queue = self.lock();
        if queue.closed {
            Some(stopped())
        } else {
            queue.fault.clone()
        }
    }

    /// Has the database looked at: a read says that it is lost.
    pub(super) fn suspect(&self) {
        self.lock().suspect = true;
        self.filled.notify_one();
    }

    /// No more jobs are taken; the thread finishes those that wait.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.permits.close();
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the thread ends, also by a panic, nobody goes on waiting for it.
pub(super) struct CloseOnExit(pub(super) Arc<Shared>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.close();
        self.0.lock().jobs.clear();
    }
}
