//! The embedded store on redb.
use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use sovereign_relay_actors::ports::{Entropy, InstanceStore, Standing, StoreError, Suspension};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

use super::{
    Enrolled, Invite, NewEnrollment, Purged, Record, Store, Swap,
    revocation::{Entry, Kid},
};

/// The data directory of one relay process, locked while this lives.
pub struct DataDir {}

/// Why a data directory or the database in it can't be used. Stops the start; names the path, never content.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("{0} is in use by another relay process")]
    Locked(PathBuf),
    /// Permissions, disk.
    #[error("{path} can't be used: {cause}")]
    Io {
        /// Which file or directory.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// Not a database, or damaged.
    #[error(
        "{path} is damaged ({cause}): restore it from a backup, or move it away to start anew (revocations in it are then lost)"
    )]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What the database says.
        cause: String,
    },
    /// Written by a newer relay.
    #[error("{path} has schema version {found}, this relay knows {known}: start the newer relay again")]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its version.
        found: u64,
        /// Ours.
        known: u64,
    },
}

impl DataDir {
    /// Makes the directory (mode 0700) where there is none, and locks it.
    pub fn open(_path: &Path) -> Result<Self, OpenError> {
        unimplemented!()
    }

    /// The node's own enrollment secret; made at first call (43 characters, 32 random bytes).
    pub fn enrollment_secret(&self, _entropy: &dyn Entropy) -> Result<Redacted, OpenError> {
        unimplemented!()
    }

    /// The node's own admin token; made at first call.
    pub fn admin_token(&self, _entropy: &dyn Entropy) -> Result<Redacted, OpenError> {
        unimplemented!()
    }
}

/// The admin token that a relay keeps in this data directory, for the CLI beside a running relay; `None` = none yet.
pub fn read_admin_token(_path: &Path) -> Result<Option<Redacted>, OpenError> {
    unimplemented!()
}

/// The store of a single node.
pub struct EmbeddedStore {}

impl EmbeddedStore {
    /// Opens, or makes, the database; keeps the directory's lock until dropped.
    pub fn open(_directory: DataDir) -> Result<Self, OpenError> {
        unimplemented!()
    }
}

impl InstanceStore for EmbeddedStore {
    fn standing(&self, _instance: InstanceId) -> BoxFuture<'static, Result<Option<Standing>, StoreError>> {
        unimplemented!()
    }
    fn note_use(&self, _: InstanceId, _: u64, _: UnixMillis) -> BoxFuture<'static, Result<(), StoreError>> {
        unimplemented!()
    }
    fn suspend(&self, _: InstanceId, _: Suspension) -> BoxFuture<'static, Result<(), StoreError>> {
        unimplemented!()
    }
}

impl Store for EmbeddedStore {
    fn enroll(&self, _: NewEnrollment) -> BoxFuture<'static, Result<Enrolled, StoreError>> {
        unimplemented!()
    }
    fn record(&self, _: InstanceId) -> BoxFuture<'static, Result<Option<Record>, StoreError>> {
        unimplemented!()
    }
    fn records(
        &self,
        _: Option<InstanceId>,
        _: usize,
    ) -> BoxFuture<'static, Result<Vec<Record>, StoreError>> {
        unimplemented!()
    }
    fn set_suspension(
        &self,
        _: InstanceId,
        _: Option<Suspension>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        unimplemented!()
    }
    fn set_limit(&self, _: InstanceId, _: Option<u32>) -> BoxFuture<'static, Result<(), StoreError>> {
        unimplemented!()
    }
    fn revocations(&self) -> BoxFuture<'static, Result<Vec<(InstanceId, Entry)>, StoreError>> {
        unimplemented!()
    }
    fn join_revocations(
        &self,
        _: Vec<(InstanceId, Entry)>,
        _: bool,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        unimplemented!()
    }
    fn swap_revocation(
        &self,
        _: InstanceId,
        _: Option<Entry>,
        _: Entry,
    ) -> BoxFuture<'static, Result<Swap, StoreError>> {
        unimplemented!()
    }
    fn add_invite(&self, _: Invite) -> BoxFuture<'static, Result<bool, StoreError>> {
        unimplemented!()
    }
    fn invites(&self, _: UnixMillis) -> BoxFuture<'static, Result<Vec<Invite>, StoreError>> {
        unimplemented!()
    }
    fn purge(&self, _: UnixMillis, _: Vec<Kid>) -> BoxFuture<'static, Result<Purged, StoreError>> {
        unimplemented!()
    }
    fn fault(&self) -> Option<StoreError> {
        unimplemented!()
    }
}
