//! The data directory: who may use it, and the secrets that a single node makes for itself.
//!
//! Called at start, before anything is bound, and by the CLI for the admin token. Directory 0700, files 0600.
//!
//! Invariant: one process at a time. The lock is the system's (`flock`), so it ends with the process however that
//! ends, and no stale lock file ever has to be removed by hand.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sovereign_relay_actors::ports::Entropy;
use sovereign_relay_protocol::redacted::Redacted;
use zeroize::Zeroizing;

/// The lock's file. It stays empty.
pub(super) const LOCK: &str = "lock";
/// The enrollment secret's file.
pub(super) const ENROLLMENT_SECRET: &str = "enrollment-secret";
/// The admin token's file.
pub(super) const ADMIN_TOKEN: &str = "admin-token";
/// Characters of a secret as we write it: 32 bytes in base64url without padding.
const SECRET_LENGTH: usize = 43;
/// Of a secret's file as much is read as tells that it is too long.
const SECRET_FILE_BYTES: u64 = 64;

/// The data directory of one relay process, locked while this lives.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why a data directory or the database in it can't be used. It stops the start, and names the path, never content.
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
        cause: io::Error,
    },
    /// Not a database, or a damaged one.
    #[error(
        "{path} is damaged ({cause}): restore it from a backup. To start anew, move it away; where enrollment-secret lies \
         beside it, move that away too, and every key issued so far is refused, or keep the keys by naming the moved file \
         in RELAY_ENROLLMENT_SECRET_FILE, which lets every revoked key in again"
    )]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A secret's file that holds something else.
    #[error(
        "{0} is damaged (a secret of the relay's own making has 43 characters of A-Z, a-z, 0-9, - and _): restore it \
         from a backup, or move it away to have a new one made. With a new enrollment secret every key issued so far \
         is refused. A secret of your own belongs in RELAY_ENROLLMENT_SECRET or RELAY_ADMIN_TOKEN"
    )]
    SecretDamaged(PathBuf),
    /// The enrollment secret is gone, and keys may be out.
    #[error(
        "{0} holds the store of a relay in use but no enrollment-secret: restore that file from a backup, or set \
         RELAY_ENROLLMENT_SECRET to the secret that signed the keys. To start anew, with every key refused, move \
         store.redb away"
    )]
    SecretMissing(PathBuf),
    /// The database is gone, and there was one.
    #[error(
        "{0} is missing beside the enrollment-secret that was made with it: restore it from a backup. To go on without \
         it, which lets every revoked key in again, move enrollment-secret out of the folder and name it in \
         RELAY_ENROLLMENT_SECRET_FILE"
    )]
    StoreMissing(PathBuf),
    /// Written by a newer relay.
    #[error("{path} has schema version {found} and this relay knows {known}: start the newer relay again")]
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
    /// Makes the directory where there is none, and locks it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |cause| OpenError::Io {
            path: path.to_owned(),
            cause,
        };
        make_private_directory(path).map_err(io)?;
        let lock_path = path.join(LOCK);
        let lock = private_file()
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(at(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(OpenError::Locked(path.to_owned())),
            Err(TryLockError::Error(cause)) => Err(OpenError::Io {
                path: lock_path,
                cause,
            }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The node's own enrollment secret, made at the first call: 32 random bytes as 43 characters, which are the
    /// secret as it would stand in `RELAY_ENROLLMENT_SECRET`.
    pub fn enrollment_secret(&self, entropy: &dyn Entropy) -> Result<Redacted, OpenError> {
        self.secret(ENROLLMENT_SECRET, entropy)
    }

    /// The same, if it was made before.
    pub(super) fn kept_enrollment_secret(&self) -> Result<Option<Redacted>, OpenError> {
        let path = self.path.join(ENROLLMENT_SECRET);
        let secret = read_secret(&path)?;
        if secret.is_some() {
            keep_private(&path);
        }
        Ok(secret)
    }

    /// The node's own admin token, made at the first call.
    pub fn admin_token(&self, entropy: &dyn Entropy) -> Result<Redacted, OpenError> {
        self.secret(ADMIN_TOKEN, entropy)
    }

    fn secret(&self, name: &str, entropy: &dyn Entropy) -> Result<Redacted, OpenError> {
        let path = self.path.join(name);
        if let Some(secret) = read_secret(&path)? {
            keep_private(&path);
            return Ok(secret);
        }
        let mut bytes = Zeroizing::new([0; 32]);
        entropy.fill(bytes.as_mut());
        let secret = Redacted::new(URL_SAFE_NO_PAD.encode(bytes.as_ref()));
        self.write_secret(&path, &secret).map_err(at(&path))?;
        tracing::info!(file = %path.display(), "made a secret");
        Ok(secret)
    }

    /// All or nothing, on disk before it is used: a key signed with a secret that a crash took back would be lost.
    fn write_secret(&self, path: &Path, secret: &Redacted) -> io::Result<()> {
        let unfinished = path.with_extension("new");
        let mut file = private_file().create(true).truncate(true).open(&unfinished)?;
        file.write_all(secret.expose().as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        self.sync()
    }

    /// Makes renames and new files in the directory durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// The admin token that a relay keeps in this data directory, for the CLI beside a running relay. `None`: no relay
/// has made one there.
pub fn read_admin_token(directory: &Path) -> Result<Option<Redacted>, OpenError> {
    read_secret(&directory.join(ADMIN_TOKEN))
}

pub(super) fn read_secret(path: &Path) -> Result<Option<Redacted>, OpenError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => {
            return Err(OpenError::Io {
                path: path.to_owned(),
                cause,
            });
        }
    };
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(SECRET_FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(at(path))?;
    let secret = std::str::from_utf8(&bytes)
        .ok()
        .map(|text| text.strip_suffix('\n').unwrap_or(text))
        .filter(|text| is_own_secret(text));
    let secret = secret.ok_or_else(|| OpenError::SecretDamaged(path.to_owned()))?;
    Ok(Some(Redacted::new(secret)))
}

fn is_own_secret(text: &str) -> bool {
    text.len() == SECRET_LENGTH && URL_SAFE_NO_PAD.decode(text).map(Zeroizing::new).is_ok()
}

/// Names the file an error is about.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> OpenError {
    move |cause| OpenError::Io {
        path: path.to_owned(),
        cause,
    }
}

/// Options for a file that only the relay's user may read.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Takes group's and others' rights away from a file that a restore or a copy has opened up.
#[cfg(unix)]
pub(super) fn keep_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;

    let Ok(metadata) = fs::metadata(path) else { return };
    if metadata.permissions().mode() & 0o077 == 0 {
        return;
    }
    let closed = fs::set_permissions(path, fs::Permissions::from_mode(0o600)).is_ok();
    tracing::warn!(file = %path.display(), closed, "a private file was open to other users");
}

#[cfg(not(unix))]
pub(super) fn keep_private(_path: &Path) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SystemEntropy;

    #[test]
    fn a_second_process_is_told_that_the_directory_is_in_use() {
        let temporary = tempfile::tempdir().unwrap();
        let first = DataDir::open(temporary.path()).unwrap();
        let refused = DataDir::open(temporary.path()).unwrap_err();
        assert!(matches!(&refused, OpenError::Locked(path) if path == temporary.path()));
        assert!(refused.to_string().contains("in use by another relay"));
        drop(first);
        assert!(DataDir::open(temporary.path()).is_ok());
    }

    #[test]
    fn secrets_are_made_once_and_differ() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = DataDir::open(temporary.path()).unwrap();
        assert!(read_admin_token(temporary.path()).unwrap().is_none());
        let secret = directory.enrollment_secret(&SystemEntropy).unwrap();
        let token = directory.admin_token(&SystemEntropy).unwrap();
        assert_eq!((secret.len(), token.len()), (43, 43));
        assert_ne!(secret, token);
        drop(directory);
        let directory = DataDir::open(temporary.path()).unwrap();
        assert_eq!(directory.enrollment_secret(&SystemEntropy).unwrap(), secret);
        assert_eq!(read_admin_token(temporary.path()).unwrap(), Some(token));
    }

    #[test]
    fn a_newline_at_a_secrets_end_is_dropped_and_whatever_we_would_not_write_is_refused_and_left_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = DataDir::open(temporary.path()).unwrap();
        let secret = directory.enrollment_secret(&SystemEntropy).unwrap();
        let path = temporary.path().join(ENROLLMENT_SECRET);
        let text = secret.expose().to_owned();
        fs::write(&path, format!("{text}\n")).unwrap();
        assert_eq!(directory.enrollment_secret(&SystemEntropy).unwrap(), secret);
        let damaged = [
            String::new(),
            "\n".to_owned(),
            text[..42].to_owned(),
            format!("{text}A"),
            format!("{text}\0\0\0"),
            "\0".repeat(43),
            text.replacen(char::is_alphanumeric, "+", 1),
            "x".repeat(5000),
        ];
        for content in damaged
            .iter()
            .map(String::as_bytes)
            .chain([[0xff; 43].as_slice()])
        {
            fs::write(&path, content).unwrap();
            let refused = directory.enrollment_secret(&SystemEntropy).unwrap_err();
            assert!(matches!(refused, OpenError::SecretDamaged(_)), "{refused}");
            assert!(refused.to_string().contains("restore it from a backup"));
            assert!(directory.kept_enrollment_secret().is_err());
            assert_eq!(fs::read(&path).unwrap(), content, "the evidence is left alone");
        }
        fs::write(temporary.path().join(ADMIN_TOKEN), "\n").unwrap();
        assert!(directory.admin_token(&SystemEntropy).is_err());
        assert!(read_admin_token(temporary.path()).is_err());
    }

    #[test]
    fn a_path_that_can_not_be_a_directory_is_named() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = DataDir::open(&file.join("data")).unwrap_err();
        assert!(refused.to_string().contains("data can't be used"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_anything() {
        use std::os::unix::fs::PermissionsExt;

        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("deep").join("data");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let directory = DataDir::open(&path).unwrap();
        directory.enrollment_secret(&SystemEntropy).unwrap();
        assert_eq!(mode(&path), 0o700);
        let secret = path.join(ENROLLMENT_SECRET);
        assert_eq!((mode(&secret), mode(&path.join(LOCK))), (0o600, 0o600));
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
        directory.enrollment_secret(&SystemEntropy).unwrap();
        assert_eq!(mode(&secret), 0o600);
    }
}
