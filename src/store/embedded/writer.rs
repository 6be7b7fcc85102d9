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
//! Full: callers wait for a permit, in order; a job that nobody would miss is turned away
//! ([`Urgency::Lossy`]).

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
};

use futures_util::future::BoxFuture;
use redb::{Database, Durability, WriteTransaction};
use sovereign_relay_actors::ports::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Most writes waiting: with 4,000 durable writes a second and more, a quarter of a second.
const WAITING_WRITES: usize = 1024;
/// Most writes in one transaction: keeps the time to an answer near that of one sync.
const WRITES_PER_COMMIT: usize = 256;
/// After so many commits without a sync comes one with: redb can't reuse pages before.
const COMMITS_PER_SYNC: u32 = 1000;

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
    fault: Option<StoreError>,
}

trait Job: Send {
    fn urgency(&self) -> Urgency;
    fn apply(&mut self, transaction: &WriteTransaction) -> Result<(), redb::Error>;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(database: Arc<Database>) -> std::io::Result<Self> {
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
                write_until_closed(&database, &closing.0);
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
        queue.jobs.push_back(job);
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for jobs; `None` when closed and empty.
    fn next_batch(&self) -> Option<Vec<Box<dyn Job>>> {
        let queue = self.lock();
        let mut queue = self
            .filled
            .wait_while(queue, |queue| queue.jobs.is_empty() && !queue.closed)
            .unwrap_or_else(PoisonError::into_inner);
        let count = queue.jobs.len().min(WRITES_PER_COMMIT);
        (count > 0).then(|| queue.jobs.drain(..count).collect())
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

fn write_until_closed(database: &Database, shared: &Shared) {
    let mut unsynced = 0;
    while let Some(mut batch) = shared.next_batch() {
        let durable =
            unsynced >= COMMITS_PER_SYNC || batch.iter().any(|job| job.urgency() == Urgency::Durable);
        let durability = if durable {
            Durability::Immediate
        } else {
            Durability::None
        };
        let together = commit(database, durability, &mut batch);
        if together.is_err() && batch.len() > 1 {
            unsynced = 0;
            batch
                .into_iter()
                .for_each(|job| write_alone(database, shared, job));
            continue;
        }
        unsynced = if durable { 0 } else { unsynced + 1 };
        let outcome = shared.report(together);
        batch.into_iter().for_each(|job| job.answer(outcome.clone()));
    }
    if unsynced > 0
        && let Err(error) = commit(database, Durability::Immediate, &mut [])
    {
        tracing::error!(%error, "the store's last counters could not be written");
    }
}

fn write_alone(database: &Database, shared: &Shared, mut job: Box<dyn Job>) {
    let outcome = commit(database, Durability::Immediate, std::slice::from_mut(&mut job));
    job.answer(shared.report(outcome));
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
