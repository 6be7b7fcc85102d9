//! The one thread that writes, and group commit.
//!
//! Called by the store for every change. redb takes one write transaction at a time and a durable commit costs a
//! sync of the disk, so all writes that wait share one transaction: the more callers, the fewer syncs each.
//!
//! ```text
//! submit -> permit -> queue -> writer thread: begin, apply every job, commit (synced if one job asks) -> replies
//! ```
//!
//! Invariant: a job is answered after the commit that has it. A thread of its own, because a sync may take long
//! and must stall neither an actor nor the threads that readers use.
//!
//! ```text
//! Serving --the disk fails (it is full, say)--> Away: jobs are refused, the database is closed
//!    ^---opened again, an empty commit succeeds---|   next try after a pause that doubles
//! ```
//!
//! What was answered before is on the disk and is found again. Of the jobs in the failed commit nobody knows whether
//! they are, so they must be such as can be repeated.
//!
//! Full: callers wait for a permit, in order; a job that nobody would miss is turned away
//! ([`Urgency::Lossy`]).

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use futures_util::future::BoxFuture;
use redb::{Database, Durability, WriteTransaction};
use sovereign_relay_actors::ports::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::handle::{Handle, is_lost};

/// Most writes waiting: with 4,000 durable writes a second and more, a quarter of a second.
const WAITING_WRITES: usize = 1024;
/// Most writes in one transaction: keeps the time to an answer near that of one sync.
const WRITES_PER_COMMIT: usize = 256;
/// After so many commits without a sync comes one with: redb can't reuse pages before.
const COMMITS_PER_SYNC: u32 = 1000;
/// From the disk's failure to the first try to open the database again; doubles with each that fails.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between two tries: opening reads the whole file.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How much a write matters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// On disk before it is answered.
    Durable,
    /// A counter: on disk with the next durable write, or with the next thousand; turned away when full.
    Lossy,
}

/// Hands jobs to the writer thread. Dropped: the thread finishes what is queued, syncs, and is joined.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
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

trait Job: Send {
    fn urgency(&self) -> Urgency;
    fn apply(&mut self, transaction: &WriteTransaction) -> Result<(), redb::Error>;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(handle: Arc<Handle>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            permits: Arc::new(Semaphore::new(WAITING_WRITES)),
            queue: Mutex::default(),
            filled: Condvar::new(),
        });
        let seen_by_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                let closing = CloseOnExit(seen_by_thread);
                Thread::new(&handle, &closing.0).write_until_closed();
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Runs `apply` in a transaction with others' jobs. When any of them fails, each runs again in a transaction
    /// of its own, so that one unreadable value fails its own caller only. What a caller did wrong is part of `T`.
    pub(super) fn submit<T, F>(&self, urgency: Urgency, apply: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&WriteTransaction) -> Result<T, redb::Error> + Send + 'static,
    {
        let shared = self.shared.clone();
        Box::pin(async move {
            let permit = shared.permit(urgency).await?;
            let (reply, answer) = oneshot::channel();
            shared.push(Box::new(Pending {
                urgency,
                apply,
                outcome: None,
                reply,
                _permit: permit,
            }))?;
            answer.await.unwrap_or_else(|_| Err(stopped()))
        })
    }

    /// For readers, who may notice first that the database is lost.
    pub(super) fn watch(&self) -> Watch {
        Watch(self.shared.clone())
    }

    /// What went wrong with the last commit, if it did.
    pub(super) fn fault(&self) -> Option<StoreError> {
        let queue = self.shared.lock();
        if queue.closed {
            Some(stopped())
        } else {
            queue.fault.clone()
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.close();
        // Waits for the disk alone, never for a task, so it can't deadlock on the runtime that drops it.
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's writer thread had panicked");
        }
    }
}

/// Hears of reads that failed.
pub(super) struct Watch(Arc<Shared>);

impl Watch {
    /// Lets the writer look at the database if the read failed for the database's sake.
    pub(super) fn read_failed(&self, error: &redb::Error) {
        if is_lost(error) {
            self.0.lock().suspect = true;
            self.0.filled.notify_one();
        }
    }
}

impl Shared {
    async fn permit(&self, urgency: Urgency) -> Result<OwnedSemaphorePermit, StoreError> {
        match urgency {
            Urgency::Durable => self.permits.clone().acquire_owned().await.map_err(|_| stopped()),
            Urgency::Lossy => self
                .permits
                .clone()
                .try_acquire_owned()
                .map_err(|error| StoreError(error.to_string())),
        }
    }

    fn push(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
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
    fn next_batch(&self) -> Option<Vec<Box<dyn Job>>> {
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
    fn pause(&self, pause: Duration) -> bool {
        let (queue, _) = self
            .filled
            .wait_timeout_while(self.lock(), pause, |queue| !queue.closed)
            .unwrap_or_else(PoisonError::into_inner);
        !queue.closed
    }

    /// From now on jobs are refused; those that wait are now.
    fn leave(&self, fault: &StoreError) {
        let mut queue = self.lock();
        queue.away = true;
        let jobs = std::mem::take(&mut queue.jobs);
        drop(queue);
        for job in jobs {
            job.answer(Err(fault.clone()));
        }
    }

    /// Jobs are taken again.
    fn come_back(&self) {
        let mut queue = self.lock();
        queue.away = false;
        queue.suspect = false;
        queue.fault = None;
    }

    /// Logs a failed commit and keeps it for `/readyz`.
    fn report(&self, committed: Result<(), redb::Error>) -> Result<(), StoreError> {
        let outcome = committed.map_err(|error| StoreError(error.to_string()));
        if let Err(error) = &outcome {
            metrics::counter!("relay_store_failed_commits_total").increment(1);
            tracing::error!(%error, "the store could not commit");
        }
        self.lock().fault = outcome.as_ref().err().cloned();
        outcome
    }

    fn close(&self) {
        self.lock().closed = true;
        self.permits.close();
        self.filled.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the thread ends, also by a panic, nobody goes on waiting for it.
struct CloseOnExit(Arc<Shared>);

impl Drop for CloseOnExit {
    fn drop(&mut self) {
        self.0.close();
        self.0.lock().jobs.clear();
    }
}

struct Pending<T, F> {
    urgency: Urgency,
    apply: F,
    outcome: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    _permit: OwnedSemaphorePermit,
}

impl<T, F> Job for Pending<T, F>
where
    T: Send,
    F: Fn(&WriteTransaction) -> Result<T, redb::Error> + Send,
{
    fn urgency(&self) -> Urgency {
        self.urgency
    }

    fn apply(&mut self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        self.outcome = Some((self.apply)(transaction)?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Self { outcome, reply, .. } = *self;
        // A caller that went away wants no answer.
        let _ = reply.send(committed.and_then(|()| outcome.ok_or_else(stopped)));
    }
}

/// What the writer's thread does.
struct Thread<'a> {
    handle: &'a Handle,
    shared: &'a Shared,
    /// Commits since the last one that was synced.
    unsynced: u32,
    /// Before the next try to open the database.
    pause: Duration,
}

impl<'a> Thread<'a> {
    fn new(handle: &'a Handle, shared: &'a Shared) -> Self {
        Self {
            handle,
            shared,
            unsynced: 0,
            pause: FIRST_PAUSE,
        }
    }

    fn write_until_closed(mut self) {
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

fn stopped() -> StoreError {
    StoreError("the store is closed".to_owned())
}
