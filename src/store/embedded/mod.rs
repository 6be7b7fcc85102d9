//! The store of a single node: redb in the data directory.
//!
//! Opened at start (`open.rs`). Reads run on tokio's blocking threads against a snapshot and never wait for a write;
//! writes go through one thread with group commit (`writer.rs`), which also closes a database that the disk has failed
//! and opens it again (`handle.rs`). The changes themselves are plain functions on a transaction (`changes.rs`,
//! `purge.rs`).
//!
//! Invariant: a durable change is answered after redb's synced commit, which survives the end of the process at any
//! moment; after such an end redb verifies and repairs the file when it is opened again. <https://docs.rs/redb>

use std::sync::Arc;

use futures_util::future::BoxFuture;
use redb::{ReadTransaction, WriteTransaction};
use sovereign_relay_actors::ports::{Entropy, InstanceStore, Standing, StoreError, Suspension};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};
use tokio::sync::Semaphore;

mod changes;
mod check;
mod data_dir;
mod handle;
mod open;
mod outcomes;
mod purge;
mod tables;
mod writer;

pub use check::{OwnSecrets, check};
pub use data_dir::{DataDir, OpenError, read_admin_token};
pub use outcomes::KeptOutcome;

use super::{
    Enrolled, Invite, NewEnrollment, Purged, RECORDS_PAGE, Record, Store, Swap,
    revocation::{Entry, Kid},
};
use handle::{Handle, Opener};
use writer::{Urgency, Writer};

/// The database's file in the data directory.
const DATABASE: &str = "store.redb";
/// Reads at the same time; the rest wait. They take microseconds, unless a page must come from the disk.
const READERS: usize = 8;

/// The store of a single node. Dropped: what is queued is written, then the directory is free for another.
pub struct EmbeddedStore {
    writer: Writer,
    handle: Arc<Handle>,
    readers: Arc<Semaphore>,
    cursors: Arc<purge::Cursors>,
    directory: DataDir,
}

impl EmbeddedStore {
    /// Opens the database, or makes it.
    pub fn open(directory: DataDir) -> Result<Self, OpenError> {
        let path = directory.path().join(DATABASE);
        if !path.try_exists().map_err(data_dir::at(&path))? {
            open::create(&directory, &path)?;
        }
        data_dir::keep_private(&path);
        Self::open_with(directory, Box::new(move || open::open(&path)))
    }

    /// Opens the database together with the node's own enrollment secret; both are made where neither is there. Either
    /// alone stops the start: a new secret would end every key, and a new database every revocation, in silence.
    pub fn open_with_secret(
        directory: DataDir,
        entropy: &dyn Entropy,
    ) -> Result<(Self, Redacted), OpenError> {
        let kept = directory.kept_enrollment_secret()?;
        let database = directory.path().join(DATABASE);
        if kept.is_some() && !database.try_exists().map_err(data_dir::at(&database))? {
            return Err(OpenError::StoreMissing(database));
        }
        let store = Self::open(directory)?;
        let secret = match kept {
            Some(secret) => secret,
            None if store
                .handle
                .read(tables::is_in_use)
                .map_err(open::failed(&database))? =>
            {
                return Err(OpenError::SecretMissing(store.directory.path().to_owned()));
            }
            None => store.directory.enrollment_secret(entropy)?,
        };
        Ok((store, secret))
    }

    /// The node's own admin token, made at the first call.
    pub fn admin_token(&self, entropy: &dyn Entropy) -> Result<Redacted, OpenError> {
        self.directory.admin_token(entropy)
    }

    fn open_with(directory: DataDir, opener: Opener) -> Result<Self, OpenError> {
        let handle = Arc::new(Handle::open(opener)?);
        let writer = Writer::start(handle.clone()).map_err(data_dir::at(directory.path()))?;
        Ok(Self {
            writer,
            handle,
            readers: Arc::new(Semaphore::new(READERS)),
            cursors: Arc::default(),
            directory,
        })
    }

    fn read<T, F>(&self, query: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    {
        let (handle, readers) = (self.handle.clone(), self.readers.clone());
        let watch = self.writer.watch();
        Box::pin(async move {
            let permit = readers.acquire_owned().await.map_err(unavailable)?;
            let answer = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                handle.read(query)
            });
            let answer = answer.await.map_err(unavailable)?;
            answer.map_err(|error| {
                watch.read_failed(&error);
                unavailable(error)
            })
        })
    }

    fn write<T, F>(&self, change: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&WriteTransaction) -> Result<T, redb::Error> + Send + 'static,
    {
        self.writer.submit(Urgency::Durable, change)
    }
}

fn unavailable(error: impl std::fmt::Display) -> StoreError {
    tracing::error!(%error, "the store could not be read");
    StoreError(error.to_string())
}

impl InstanceStore for EmbeddedStore {
    fn standing(&self, instance: InstanceId) -> BoxFuture<'static, Result<Option<Standing>, StoreError>> {
        self.read(move |snapshot| Ok(tables::read_record(snapshot, instance)?.map(standing)))
    }

    fn note_use(
        &self,
        instance: InstanceId,
        sent: u64,
        at: UnixMillis,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.writer.submit(Urgency::Lossy, move |transaction| {
            changes::note_use(transaction, instance, sent, at)
        })
    }

    fn suspend(
        &self,
        instance: InstanceId,
        suspension: Suspension,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(move |transaction| {
            changes::change(transaction, instance, |record| {
                changes::suspend(record, suspension.clone())
            })
        })
    }
}

impl Store for EmbeddedStore {
    fn enroll(&self, new: NewEnrollment) -> BoxFuture<'static, Result<Enrolled, StoreError>> {
        self.write(move |transaction| changes::enroll(transaction, &new))
    }

    fn record(&self, instance: InstanceId) -> BoxFuture<'static, Result<Option<Record>, StoreError>> {
        self.read(move |snapshot| tables::read_record(snapshot, instance))
    }

    fn records(
        &self,
        after: Option<InstanceId>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<Record>, StoreError>> {
        self.read(move |snapshot| tables::read_records(snapshot, after, limit.min(RECORDS_PAGE)))
    }

    fn set_suspension(
        &self,
        instance: InstanceId,
        suspension: Option<Suspension>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(move |transaction| {
            changes::change(transaction, instance, |record| {
                record.suspension.clone_from(&suspension)
            })
        })
    }

    fn set_limit(
        &self,
        instance: InstanceId,
        per_minute: Option<u32>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(move |transaction| {
            changes::change(transaction, instance, |record| record.per_minute = per_minute)
        })
    }

    fn set_turn(
        &self,
        instance: InstanceId,
        turn: Option<bool>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(move |transaction| changes::change(transaction, instance, |record| record.turn = turn))
    }

    fn revocations(&self) -> BoxFuture<'static, Result<Vec<(InstanceId, Entry)>, StoreError>> {
        self.read(tables::read_revocations)
    }

    fn join_revocations(
        &self,
        entries: Vec<(InstanceId, Entry)>,
        erase: bool,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.write(move |transaction| changes::join(transaction, &entries, erase))
    }

    fn swap_revocation(
        &self,
        instance: InstanceId,
        expected: Option<Entry>,
        new: Entry,
    ) -> BoxFuture<'static, Result<Swap, StoreError>> {
        self.write(move |transaction| changes::swap(transaction, instance, expected.as_ref(), &new))
    }

    fn add_invite(&self, invite: Invite) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.write(move |transaction| changes::add_invite(transaction, &invite))
    }

    fn invites(&self, now: UnixMillis) -> BoxFuture<'static, Result<Vec<Invite>, StoreError>> {
        self.read(move |snapshot| tables::read_invites(snapshot, now))
    }

    fn purge(&self, now: UnixMillis, configured: Vec<Kid>) -> BoxFuture<'static, Result<Purged, StoreError>> {
        let cursors = self.cursors.clone();
        self.write(move |transaction| purge::step(transaction, &cursors, now, &configured))
    }

    fn fault(&self) -> Option<StoreError> {
        self.writer.fault()
    }
}

fn standing(record: Record) -> Standing {
    Standing {
        enrolled_at: record.enrolled_at,
        group: record.group,
        sent: record.sent,
        per_minute: record.per_minute,
        turn: record.turn,
        suspension: record.suspension,
    }
}

#[cfg(test)]
mod tests;
