//! Whether a relay could start on a data directory, found out without changing anything there.
//!
//! Called by `check-config`. It says what [`DataDir::open`](super::DataDir::open) and
//! [`EmbeddedStore::open`](super::EmbeddedStore::open) would say of permissions, locks and files that are missing or hold
//! something else; only opening the database itself tells whether that is whole.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::Path,
};

use super::{
    DATABASE, OpenError,
    data_dir::{self, ADMIN_TOKEN, ENROLLMENT_SECRET, LOCK},
};

/// Which secrets the relay would keep there itself, because none are configured.
#[derive(Clone, Copy, Debug)]
pub struct OwnSecrets {
    /// The enrollment secret.
    pub enrollment: bool,
    /// The admin token.
    pub admin_token: bool,
}

/// What would stop a start on this directory. [`OpenError::Locked`] is said of a relay that runs on it, which has nothing
/// else to be told of it.
pub fn check(directory: &Path, own: OwnSecrets) -> Result<(), OpenError> {
    if !directory.try_exists().map_err(data_dir::at(directory))? {
        return can_be_made(directory).map_err(data_dir::at(directory));
    }
    if !directory.is_dir() {
        return Err(data_dir::at(directory)(io::ErrorKind::AlreadyExists.into()));
    }
    let lock = open_existing(&directory.join(LOCK))?;
    if let Some(lock) = &lock {
        is_free(lock, directory)?;
    }
    takes_files(directory).map_err(data_dir::at(directory))?;
    let database = directory.join(DATABASE);
    let has_database = open_existing(&database)?.is_some();
    let enrollment = directory.join(ENROLLMENT_SECRET);
    if own.enrollment && data_dir::read_secret(&enrollment)?.is_some() && !has_database {
        return Err(OpenError::StoreMissing(database));
    }
    if own.admin_token {
        data_dir::read_secret(&directory.join(ADMIN_TOKEN))?;
    }
    Ok(())
}

/// Another process would keep its lock for as long as it lives; this one is given back at once.
fn is_free(lock: &File, directory: &Path) -> Result<(), OpenError> {
    match lock.try_lock_shared() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked(directory.to_owned())),
        Err(TryLockError::Error(cause)) => Err(data_dir::at(&directory.join(LOCK))(cause)),
    }
}

/// A file that is there, opened as the relay opens it.
fn open_existing(path: &Path) -> Result<Option<File>, OpenError> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(data_dir::at(path)(cause)),
    }
}

/// It would be made in the nearest directory above it that is there.
fn can_be_made(directory: &Path) -> io::Result<()> {
    for above in directory.ancestors().skip(1) {
        let above = if above.as_os_str().is_empty() {
            Path::new(".")
        } else {
            above
        };
        if above.try_exists()? {
            return takes_files(above);
        }
    }
    Ok(())
}

#[cfg(unix)]
fn takes_files(directory: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};

    Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Elsewhere only the attempt would tell.
#[cfg(not(unix))]
fn takes_files(_directory: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        entropy::SystemEntropy,
        store::embedded::{DataDir, EmbeddedStore},
    };

    const OWN: OwnSecrets = OwnSecrets {
        enrollment: true,
        admin_token: true,
    };

    /// What the check says, and what opening says after it.
    fn both(path: &Path) -> (Option<String>, Option<String>) {
        let checked = check(path, OWN).err().map(|error| error.to_string());
        let opened = DataDir::open(path)
            .and_then(|directory| EmbeddedStore::open_with_secret(directory, &SystemEntropy))
            .and_then(|(store, _)| store.admin_token(&SystemEntropy));
        (checked, opened.err().map(|error| error.to_string()))
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_the_check_says_is_what_opening_says() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, "").unwrap();
        let (checked, opened) = both(&file.join("data"));
        assert!(opened.is_some());
        assert_eq!(checked, opened);
        assert!(check(&file, OWN).is_err() && DataDir::open(&file).is_err());
        let data = temporary.path().join("deep/data");
        assert_eq!(both(&data), (None, None));
        fs::write(data.join(ADMIN_TOKEN), "short").unwrap();
        let (checked, opened) = both(&data);
        assert!(opened.is_some());
        assert_eq!(checked, opened);
        fs::remove_file(data.join(DATABASE)).unwrap();
        let (checked, opened) = both(&data);
        assert!(opened.as_deref().unwrap().contains("is missing"), "{opened:?}");
        assert_eq!(checked, opened);
        fs::remove_file(data.join(LOCK)).unwrap();
        fs::create_dir(data.join(LOCK)).unwrap();
        let (checked, opened) = both(&data);
        assert!(opened.is_some());
        assert_eq!(checked, opened);
    }

    #[test]
    fn a_directory_in_use_is_said_to_be_and_stays_in_use() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = DataDir::open(temporary.path()).unwrap();
        for _ in 0..2 {
            let checked = check(temporary.path(), OWN).unwrap_err();
            assert!(matches!(&checked, OpenError::Locked(path) if path == temporary.path()));
        }
        drop(directory);
        assert!(check(temporary.path(), OWN).is_ok());
    }

    #[test]
    fn nothing_is_made() {
        let temporary = tempfile::tempdir().unwrap();
        check(&temporary.path().join("deep/data"), OWN).unwrap();
        check(temporary.path(), OWN).unwrap();
        assert!(names(temporary.path()).is_empty());
    }
}
