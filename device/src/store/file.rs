//! A file that a passphrase seals: for systems without a credential store.
//!
//! [`mod@format`] says what is in it. It comes to be whole or not at all: written beside its place, on the disk before it
//! is there, and put there only if nothing is (`renameat2`, else a hard link), so that of two processes one is first
//! and the other reads what that one wrote. Mode 0600; one that others may read is refused, as `ssh` does.

mod format;

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use sovereign_relay_protocol::redacted::Redacted;
use tempfile::NamedTempFile;

use self::format::Cost;
use super::{Entry, Keep, StoreError};

/// A file is about 250 bytes; what is longer is another's.
const FILE_BYTES: u64 = 4096;
/// How often another process may delete the file between "there is one" and reading it, before this is given up.
const ROUNDS: usize = 8;

/// One sealed file.
pub(super) struct FileStore {
    path: PathBuf,
    passphrase: Redacted,
    cost: Cost,
}

/// Seals the file at `path` with another passphrase: the old file is there until the new one is on the disk.
pub fn change_passphrase(path: impl Into<PathBuf>, old: Redacted, new: Redacted) -> Result<(), StoreError> {
    let path = path.into();
    let entry = FileStore::new(path.clone(), old)?.read()?;
    let entry = entry.ok_or_else(|| StoreError::Io(io::ErrorKind::NotFound.into()))?;
    FileStore::new(path, new)?.replace(&entry)
}

impl FileStore {
    pub(super) fn new(path: PathBuf, passphrase: Redacted) -> Result<Self, StoreError> {
        if passphrase.expose().trim().is_empty() {
            return Err(StoreError::NoPassphrase);
        }
        let cost = Cost::default();
        Ok(Self {
            path,
            passphrase,
            cost,
        })
    }

    fn directory(&self) -> &Path {
        match self.path.parent() {
            Some(directory) if directory != Path::new("") => directory,
            Some(_) | None => Path::new("."),
        }
    }

    fn written_beside(&self, entry: &Entry) -> Result<NamedTempFile, StoreError> {
        make_directory(self.directory())?;
        let sealed = format::seal(entry, &self.passphrase, self.cost)?;
        let mut file = tempfile::Builder::new()
            .prefix(".sovereign-device-")
            .tempfile_in(self.directory())?;
        file.write_all(&sealed)?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    fn replace(&self, entry: &Entry) -> Result<(), StoreError> {
        let file = self.written_beside(entry)?;
        file.persist(&self.path).map_err(|error| error.error)?;
        sync_directory(self.directory())
    }
}

impl Keep for FileStore {
    fn read(&self) -> Result<Option<Entry>, StoreError> {
        // A pipe would be waited for.
        if fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
            return Err(error.into());
        }
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        refuse_exposed(&file)?;
        let mut sealed = Vec::new();
        file.take(FILE_BYTES + 1).read_to_end(&mut sealed)?;
        format::open(&sealed, &self.passphrase).map(Some)
    }

    fn keep_first(&self, entry: &Entry) -> Result<Entry, StoreError> {
        let mut file = self.written_beside(entry)?;
        for _ in 0..ROUNDS {
            match file.persist_noclobber(&self.path) {
                Ok(_) => {
                    sync_directory(self.directory())?;
                    return Ok(entry.clone());
                }
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
                Err(error) => return Err(error.error.into()),
            }
            if let Some(kept) = self.read()? {
                return Ok(kept);
            }
        }
        Err(StoreError::NotKept)
    }

    fn delete(&self) -> Result<(), StoreError> {
        match fs::remove_file(&self.path) {
            Ok(()) => sync_directory(self.directory()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(unix)]
fn make_directory(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::DirBuilderExt as _;

    Ok(fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?)
}

#[cfg(not(unix))]
fn make_directory(path: &Path) -> Result<(), StoreError> {
    Ok(fs::create_dir_all(path)?)
}

/// A name that was made or removed is so after a crash, too.
#[cfg(unix)]
fn sync_directory(path: &Path) -> Result<(), StoreError> {
    Ok(File::open(path)?.sync_all()?)
}

/// Windows writes names through by itself.
#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(unix)]
fn refuse_exposed(file: &File) -> Result<(), StoreError> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = file.metadata()?.permissions().mode();
    if mode & 0o077 == 0 {
        Ok(())
    } else {
        Err(StoreError::Exposed)
    }
}

/// A file has the permissions of its directory there, which in a user's profile are that user's.
#[cfg(not(unix))]
fn refuse_exposed(_file: &File) -> Result<(), StoreError> {
    Ok(())
}

#[cfg(test)]
mod tests;
