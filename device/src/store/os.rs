//! The operating system's credential store, through the `keyring-core` crate and the store of each system.
//!
//! Not through the `keyring` crate: its `v1` face takes the process's default store, which may be the host's, remembers
//! forever that a store was not there yet when the app was started, and on Windows lets entries roam with the user's
//! profile. This key stays on its device.
//!
//! None of the stores can write "unless there is one", so that the processes of a user take turns by a lock on a file
//! of that user's. Each operation connects anew: a Secret Service that was started again is found again.

use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::PathBuf,
    sync::Arc,
};

use keyring_core::{CredentialStore, Entry as Credential, Error};
use zeroize::Zeroizing;

use super::{Entry, Keep, StoreError};

/// One entry of the operating system's store.
pub(super) struct OsStore {
    service: String,
    account: String,
}

impl OsStore {
    pub(super) fn new(service: &str, account: &str) -> Self {
        Self {
            service: service.to_owned(),
            account: account.to_owned(),
        }
    }

    fn credential(&self) -> Result<Credential, StoreError> {
        let store = system_store().map_err(of_keyring)?;
        let label = format!("{}: notification key of {}", self.service, self.account);
        let modifiers: HashMap<&str, &str> = modifiers(&label).collect();
        store
            .build(&self.service, &self.account, Some(&modifiers))
            .map_err(of_keyring)
    }
}

impl Keep for OsStore {
    fn read(&self) -> Result<Option<Entry>, StoreError> {
        read(&self.credential()?)
    }

    fn keep_first(&self, entry: &Entry) -> Result<Entry, StoreError> {
        let _turn = turn()?;
        let credential = self.credential()?;
        if let Some(kept) = read(&credential)? {
            return Ok(kept);
        }
        credential.set_secret(entry).map_err(of_keyring)?;
        read(&credential)?.ok_or(StoreError::NotKept)
    }

    fn delete(&self) -> Result<(), StoreError> {
        let _turn = turn()?;
        match self.credential()?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(of_keyring(error)),
        }
    }
}

fn read(credential: &Credential) -> Result<Option<Entry>, StoreError> {
    match credential.get_secret() {
        Ok(secret) => Ok(Some(Zeroizing::new(secret))),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(of_keyring(error)),
    }
}

/// The library's enum is open; an error that is not known is one of the store.
fn of_keyring(error: Error) -> StoreError {
    match error {
        Error::NoStorageAccess(cause) => StoreError::Locked(cause),
        Error::PlatformFailure(cause) => StoreError::Unavailable(cause),
        Error::Ambiguous(_) => StoreError::Foreign,
        // These two carry what was kept: it must not be shown.
        Error::BadEncoding(_) | Error::BadDataFormat(..) => StoreError::Damaged,
        other => StoreError::Unavailable(Box::new(other)),
    }
}

#[cfg(target_os = "macos")]
fn system_store() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(apple_native_keyring_store::keychain::Store::new()?)
}

#[cfg(windows)]
fn system_store() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(windows_native_keyring_store::Store::new()?)
}

#[cfg(all(unix, not(target_os = "macos")))]
fn system_store() -> keyring_core::Result<Arc<CredentialStore>> {
    Ok(zbus_secret_service_keyring_store::Store::new()?)
}

/// What the store is told beside the names.
fn modifiers(label: &str) -> impl Iterator<Item = (&'static str, &str)> {
    let label = ("label", label);
    // The default is to roam with the user's profile.
    let persistence = ("persistence", "Local");
    let shown = cfg!(all(unix, not(target_os = "macos"))).then_some(label);
    let local = cfg!(windows).then_some(persistence);
    shown.into_iter().chain(local)
}

/// Waits until no other process of this user is making or deleting a key. The turn ends with the file.
fn turn() -> Result<File, StoreError> {
    let directory = lock_directory().ok_or_else(|| {
        StoreError::Io(io::Error::new(
            io::ErrorKind::NotFound,
            "no directory of the user's own",
        ))
    })?;
    fs::create_dir_all(&directory)?;
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(directory.join("sovereign-device.lock"))?;
    file.lock()?;
    Ok(file)
}

/// One that others can't write to: who holds the lock decides when this user may sign in.
#[cfg(unix)]
fn lock_directory() -> Option<PathBuf> {
    let of = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    of("XDG_RUNTIME_DIR").or_else(|| of("HOME").map(|home| home.join(".cache")))
}

#[cfg(windows)]
fn lock_directory() -> Option<PathBuf> {
    Some(std::env::temp_dir())
}
