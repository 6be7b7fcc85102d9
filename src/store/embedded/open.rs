//! Opening the database's file, or making it, and what may be wrong with it.
//!
//! Called at start and again by `handle.rs` after the disk has failed.

use std::{
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Once,
};

use redb::{Builder, Database, DatabaseError, ReadableDatabase, StorageError, backends::FileBackend};

use super::{
    data_dir::{self, DataDir, OpenError},
    tables::{self, META, SCHEMA, SCHEMA_VERSION},
};

/// redb's page cache: the hot records of a node. redb's own default is 1 GiB.
const CACHE_BYTES: usize = 32 * 1024 * 1024;

/// Makes the database beside its final name, so that a crash in between leaves none rather than half of one.
pub(super) fn create(directory: &DataDir, path: &Path) -> Result<(), OpenError> {
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
    initialize(&database).map_err(failed(path))?;
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

/// Opens the file.
pub(super) fn open(path: &Path) -> Result<Database, OpenError> {
    open_by(path, |builder| builder.open(path))
}

/// Opens the database in whatever way `open` does.
pub(super) fn open_by(
    path: &Path,
    open: impl Fn(&Builder) -> Result<Database, DatabaseError>,
) -> Result<Database, OpenError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    // Every page's checksum, at every start: an entry that rot has taken must not be missed in silence.
    builder.set_check_integrity_on_open(true);
    // The library calls back at each step of its progress.
    let told = Once::new();
    builder.set_repair_callback(move |_| told.call_once(|| tracing::info!("the store is being verified")));
    // A damaged file can make the library panic as well as fail; either way the operator gets the same sentence.
    let opened = catch_unwind(AssertUnwindSafe(|| {
        open(&builder).map(|database| (schema_version(&database), database))
    }));
    let (version, database) = opened
        .map_err(|_| corrupt(path, "its structure makes no sense"))?
        .map_err(|error| refused(path, error))?;
    match version.map_err(failed(path))? {
        Some(SCHEMA_VERSION) => Ok(database),
        Some(found) if found > SCHEMA_VERSION => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: SCHEMA_VERSION,
        }),
        Some(_) | None => Err(corrupt(path, "it has no known schema version")),
    }
}

/// What a failed transaction says of the file: an error of the disk (it is full, say) is no damage.
pub(super) fn failed(path: &Path) -> impl Fn(redb::Error) -> OpenError {
    move |error| match error {
        redb::Error::Io(cause) => io_or_corrupt(path, cause),
        redb::Error::PreviousIo => OpenError::Io {
            path: path.to_owned(),
            cause: io::Error::other("an earlier write has failed"),
        },
        other => corrupt(path, other),
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
        DatabaseError::Storage(StorageError::Io(cause)) => io_or_corrupt(path, cause),
        other => corrupt(path, other),
    }
}

/// A file that ends too early is damaged, whatever call has noticed it.
fn io_or_corrupt(path: &Path, cause: io::Error) -> OpenError {
    match cause.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => corrupt(path, cause),
        _ => OpenError::Io {
            path: path.to_owned(),
            cause,
        },
    }
}
