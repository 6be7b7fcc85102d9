//! Where the key pair is kept: the operating system's credential store, else a sealed file, else where the host says.
//!
//! Called by [`crate::Keys`]. The four kinds have the same three verbs:
//! ```text
//! read         what is kept, or that nothing ever was
//! keep_first   keeps an entry unless there is one; in any case what is kept afterwards (atomic over processes)
//! delete       keeps nothing from then on; fine when there is nothing
//! ```
//! Invariant: "nothing is kept" is said only where that is certain. Locked, unreachable, damaged and foreign are
//! errors, since the answer to "nothing" is a new key.

mod file;
mod host;
mod memory;
#[cfg(not(any(target_os = "ios", target_os = "android")))]
mod os;

use std::{io, path::PathBuf, sync::Arc};

use sovereign_relay_protocol::redacted::Redacted;
use thiserror::Error;
use zeroize::Zeroizing;

pub use self::{
    file::change_passphrase,
    host::{HostError, KeyStore},
};

/// What is kept, wiped when dropped.
pub(crate) type Entry = Zeroizing<Vec<u8>>;

/// A place for a key pair. Cheap to clone; clones are the same place.
#[derive(Clone)]
pub struct Store(Arc<dyn Keep>);

/// The three verbs, see the module's head. Not public, so that nobody but [`crate::Keys`] is given an entry.
trait Keep: Send + Sync {
    fn read(&self) -> Result<Option<Entry>, StoreError>;
    fn keep_first(&self, entry: &Entry) -> Result<Entry, StoreError>;
    fn delete(&self) -> Result<(), StoreError>;
}

/// A store did not do what it was asked. What to do about it stands with each.
#[derive(Debug, Error)]
pub enum StoreError {
    /// There is no credential store here, or it can't be reached: try later, or use a file.
    #[error("the credential store can't be reached: {0}")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The credential store is locked, or the user refused: ask again when the user is there.
    #[error("the credential store is locked: {0}")]
    Locked(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is kept there is not of this crate. It is left alone.
    #[error("another program keeps something in this place")]
    Foreign,
    /// What is kept there is no longer whole: [`Store::forget`] it and register anew.
    #[error("what was kept is damaged")]
    Damaged,
    /// It was written by a later version of this crate.
    #[error("what was kept was written by a later version")]
    Newer,
    /// A file is never kept without one.
    #[error("a file needs a passphrase")]
    NoPassphrase,
    /// Ask for it again.
    #[error("the passphrase is not the one that the file was sealed with")]
    WrongPassphrase,
    /// Others can read the file: `chmod 600` it, if it is known how that came to be.
    #[error("the file may be read by others than its owner")]
    Exposed,
    /// The store took the key and does not hold it.
    #[error("the store did not keep the key")]
    NotKept,
    /// The file system.
    #[error("the file could not be read or written: {0}")]
    Io(#[from] io::Error),
    /// The operating system gives no randomness to seal with.
    #[error("the randomness source is broken")]
    Randomness,
    /// The host's own store.
    #[error("the app's store failed: {0}")]
    Host(#[source] HostError),
}

impl Store {
    /// The operating system's: macOS Keychain, Windows Credential Manager, Linux Secret Service. `service` names the
    /// app, as in `org.example.app`, and `account` whose key it is: one per instance and user.
    ///
    /// Not there on iOS and Android, where an app brings its own: [`Store::host`].
    #[cfg(not(any(target_os = "ios", target_os = "android")))]
    pub fn os(service: &str, account: &str) -> Self {
        Self(Arc::new(os::OsStore::new(service, account)))
    }

    /// A file, sealed with a passphrase. For systems without a credential store, where the app asks its user.
    pub fn file(path: impl Into<PathBuf>, passphrase: Redacted) -> Result<Self, StoreError> {
        Ok(Self(Arc::new(file::FileStore::new(path.into(), passphrase)?)))
    }

    /// The host's own.
    pub fn host(store: impl KeyStore + 'static) -> Self {
        Self(Arc::new(host::HostStore(store)))
    }

    /// Forgotten with the process: for tests.
    pub fn memory() -> Self {
        Self(Arc::new(memory::MemoryStore::default()))
    }

    /// Keeps nothing from then on, whatever is there: the way out of a damaged entry.
    pub fn forget(&self) -> Result<(), StoreError> {
        self.0.delete()
    }

    pub(crate) fn read(&self) -> Result<Option<Entry>, StoreError> {
        self.0.read()
    }

    pub(crate) fn keep_first(&self, entry: &Entry) -> Result<Entry, StoreError> {
        self.0.keep_first(entry)
    }
}
