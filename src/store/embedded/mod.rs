//! The store of a single node: redb in the data directory.
//!
//! Opened once at start. Reads run on tokio's blocking threads against a snapshot and never wait for a write;
//! writes go through one thread with group commit (`writer.rs`). The changes themselves are plain functions on a
//! transaction (`changes.rs`, `purge.rs`).
//!
//! Invariant: a durable change is answered after redb's synced commit, which survives the end of the process at any
//! moment; after such an end redb verifies and repairs the file when it is opened again. <https://docs.rs/redb>

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, Once},
};

use futures_util::future::BoxFuture;
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, StorageError, WriteTransaction,
    backends::FileBackend,
};
use sovereign_relay_actors::ports::{InstanceStore, Standing, StoreError, Suspension};
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};
use tokio::sync::Semaphore;

mod changes;
mod data_dir;
mod purge;
mod tables;
mod writer;

pub use data_dir::{DataDir, OpenError, read_admin_token};

use super::{
    Enrolled, Invite, NewEnrollment, Purged, RECORDS_PAGE, Record, Store, Swap,
    revocation::{Entry, Kid},
};
use tables::{META, SCHEMA, SCHEMA_VERSION};
use writer::{Urgency, Writer};

/// The database's file in the data directory.
const DATABASE: &str = "store.redb";
/// redb's page cache: the hot records of a node. redb's own default is 1 GiB.
const CACHE_BYTES: usize = 32 * 1024 * 1024;
/// Reads at the same time; the rest wait. They take microseconds, unless a page must come from the disk.
const READERS: usize = 8;

/// The store of a single node. Dropped: what is queued is written, then the directory is free for another.
pub struct EmbeddedStore {
    writer: Writer,
    database: Arc<Database>,
    readers: Arc<Semaphore>,
    cursors: Arc<purge::Cursors>,
    _directory: DataDir,
}

impl EmbeddedStore {
    /// Opens the database, or makes it.
    pub fn open(directory: DataDir) -> Result<Self, OpenError> {
        let path = directory.path().join(DATABASE);
        if !path.try_exists().map_err(data_dir::at(&path))? {
            create(&directory, &path)?;
        }
        data_dir::keep_private(&path);
        let database = Arc::new(open_database(&path)?);
        let writer = Writer::start(database.clone()).map_err(data_dir::at(&path))?;
        Ok(Self {
            writer,
            database,
            readers: Arc::new(Semaphore::new(READERS)),
            cursors: Arc::default(),
            _directory: directory,
        })
    }

    fn read<T, F>(&self, query: F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: FnOnce(&ReadTransaction) -> Result<T, redb::Error> + Send + 'static,
    {
        let (database, readers) = (self.database.clone(), self.readers.clone());
        Box::pin(async move {
            let permit = readers.acquire_owned().await.map_err(unavailable)?;
            let answer = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                query(&database.begin_read()?)
            });
            answer.await.map_err(unavailable)?.map_err(unavailable)
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

/// Makes the database beside its final name, so that a crash in between leaves none rather than half of one.
fn create(directory: &DataDir, path: &Path) -> Result<(), OpenError> {
    let io = data_dir::at(path);
    let unfinished = path.with_extension("new");
    let file = data_dir::private_file()
        .create(true)
        .truncate(true)
        .open(&unfinished)
        .map_err(&io)?;
    let backend = FileBackend::new(file).map_err(|error| refused(path, error))?;
    let database = Database::builder()
        .create_with_backend(backend)
        .map_err(|error| refused(path, error))?;
    initialize(&database).map_err(|error| corrupt(path, error))?;
    drop(database);
    fs::rename(&unfinished, path).map_err(&io)?;
    directory.sync().map_err(&io)
}

fn initialize(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    tables::create_all(&transaction)?;
    transaction.open_table(META)?.insert(SCHEMA, SCHEMA_VERSION)?;
    Ok(transaction.commit()?)
}

fn open_database(path: &Path) -> Result<Database, OpenError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    // Every page's checksum, at every start: an entry that rot has taken must not be missed in silence.
    builder.set_check_integrity_on_open(true);
    // The library calls back at each step of its progress.
    let told = Once::new();
    builder.set_repair_callback(move |_| told.call_once(|| tracing::info!("the store is being verified")));
    // A damaged file can make the library panic as well as fail; either way the operator gets the same sentence.
    let open = || {
        builder
            .open(path)
            .map(|database| (schema_version(&database), database))
    };
    let opened = catch_unwind(AssertUnwindSafe(open));
    let (version, database) = opened
        .map_err(|_| corrupt(path, "its structure makes no sense"))?
        .map_err(|error| refused(path, error))?;
    match version.map_err(|error| corrupt(path, error))? {
        Some(SCHEMA_VERSION) => Ok(database),
        Some(found) if found > SCHEMA_VERSION => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: SCHEMA_VERSION,
        }),
        Some(_) | None => Err(corrupt(path, "it has no known schema version")),
    }
}

fn schema_version(database: &Database) -> Result<Option<u64>, redb::Error> {
    Ok(database
        .begin_read()?
        .open_table(META)?
        .get(SCHEMA)?
        .map(|version| version.value()))
}

fn corrupt(path: &Path, cause: impl std::fmt::Display) -> OpenError {
    OpenError::Corrupt {
        path: path.to_owned(),
        cause: cause.to_string(),
    }
}

fn refused(path: &Path, error: DatabaseError) -> OpenError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            OpenError::Locked(path.to_owned())
        }
        DatabaseError::Storage(StorageError::Io(cause))
            if !matches!(
                cause.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
            ) =>
        {
            OpenError::Io {
                path: path.to_owned(),
                cause,
            }
        }
        other => corrupt(path, other),
    }
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
