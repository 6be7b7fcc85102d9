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

use std::{sync::Arc, thread::JoinHandle};

use futures_util::future::BoxFuture;
use redb::WriteTransaction;
use sovereign_relay_actors::ports::StoreError;
use tokio::sync::oneshot;

mod job;
mod queue;
mod thread;

use self::{
    job::{Pending, stopped},
    queue::{CloseOnExit, Shared},
    thread::Thread,
};
use super::handle::{Handle, is_lost};

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

impl Writer {
    /// Starts the thread.
    pub(super) fn start(handle: Arc<Handle>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::new());
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
        self.shared.fault()
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
            self.0.suspect();
        }
    }
}
