//! The open database, which can be closed and opened again.
//!
//! redb gives a database up for good at the first error of the disk, a full one too, and says so at every call until it
//! is opened anew. That is done here, by the writer's thread (`writer.rs`); readers find no database meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Database, ReadTransaction, ReadableDatabase};

use super::data_dir::OpenError;

/// Opens the database, as often as it is called.
pub(super) type Opener = Box<dyn Fn() -> Result<Database, OpenError> + Send + Sync>;

/// The database while it is open.
pub(super) struct Handle {
    opener: Opener,
    database: Mutex<Option<Arc<Database>>>,
}

impl Handle {
    /// Opens it.
    pub(super) fn open(opener: Opener) -> Result<Self, OpenError> {
        let database = Mutex::new(Some(Arc::new(opener()?)));
        Ok(Self { opener, database })
    }

    /// The database. `None`: it is closed.
    pub(super) fn get(&self) -> Option<Arc<Database>> {
        self.lock().clone()
    }

    /// Reads from a snapshot.
    pub(super) fn read<T>(
        &self,
        query: impl FnOnce(&ReadTransaction) -> Result<T, redb::Error>,
    ) -> Result<T, redb::Error> {
        let database = self.get().ok_or(redb::Error::DatabaseClosed)?;
        query(&database.begin_read()?)
    }

    /// Closes it, at the latest when the reads under way end.
    pub(super) fn close(&self) {
        self.lock().take();
    }

    /// Opens it again. While a read still holds the closed one, it is in use, and the next try is as good.
    pub(super) fn reopen(&self) -> Result<Arc<Database>, OpenError> {
        let database = Arc::new((self.opener)()?);
        *self.lock() = Some(database.clone());
        Ok(database)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Database>>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the database must be opened again before it serves.
pub(super) fn is_lost(error: &redb::Error) -> bool {
    matches!(
        error,
        redb::Error::Io(_) | redb::Error::PreviousIo | redb::Error::LockPoisoned(_)
    )
}
