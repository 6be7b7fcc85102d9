//! A disk that is full for a while.

use std::{
    io,
    ops::Bound,
    sync::atomic::{AtomicBool, Ordering},
};

use redb::{BackendError, StorageBackend, backends::FileBackend};

use super::*;

/// A file on a disk that can be full.
#[derive(Debug)]
struct FullDisk {
    file: FileBackend,
    is_full: Arc<AtomicBool>,
}

impl FullDisk {
    fn check(&self) -> io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

impl StorageBackend for FullDisk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

fn opener(path: PathBuf, is_full: Arc<AtomicBool>) -> Opener {
    Box::new(move || {
        open::open_by(&path, |builder| {
            let file = fs::OpenOptions::new().read(true).write(true).open(&path)?;
            builder.create_with_backend(FullDisk {
                file: FileBackend::new(file)?,
                is_full: is_full.clone(),
            })
        })
    })
}

fn on_a_disk() -> (EmbeddedStore, Arc<AtomicBool>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory).unwrap());
    let is_full = Arc::new(AtomicBool::new(false));
    let opener = opener(file(&directory), is_full.clone());
    let store = EmbeddedStore::open_with(DataDir::open(directory.path()).unwrap(), opener).unwrap();
    (store, is_full, directory)
}

/// Repeats a write until it takes, as a caller that is answered 503 does.
async fn until_it_takes(write: impl Fn() -> BoxFuture<'static, Result<(), StoreError>>) {
    let tries = async { while write().await.is_err() {} };
    tokio::time::timeout(std::time::Duration::from_secs(30), tries)
        .await
        .expect("the store comes back");
}

#[tokio::test]
async fn a_disk_that_was_full_for_a_moment_costs_no_restart_and_nothing_that_was_acknowledged() {
    let (store, is_full, directory) = on_a_disk();
    store.enroll(enrollment(1)).await.unwrap();
    let withdraw = || store.join_revocations(vec![(instance(1), revoked())], true);
    is_full.store(true, Ordering::SeqCst);
    assert!(withdraw().await.is_err());
    assert!(store.fault().is_some());
    let many = (2..100).map(|number| store.enroll(enrollment(number)));
    let refused = futures_util::future::join_all(many).await;
    assert!(refused.iter().all(Result::is_err));
    is_full.store(false, Ordering::SeqCst);
    until_it_takes(withdraw).await;
    assert!(store.fault().is_none());
    assert_eq!(store.record(instance(1)).await.unwrap(), None);
    store.enroll(enrollment(7)).await.unwrap();
    drop(store);
    let store = open(&directory).unwrap();
    assert_eq!(store.revocations().await.unwrap(), [(instance(1), revoked())]);
    assert!(store.record(instance(7)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_full_disk_again_and_again_loses_nothing_either() {
    let (store, is_full, directory) = on_a_disk();
    for number in 1..=5 {
        store.set_limit(instance(number), Some(7)).await.unwrap();
        is_full.store(true, Ordering::SeqCst);
        let _ = store.set_limit(instance(100 + number), Some(7)).await;
        is_full.store(false, Ordering::SeqCst);
        until_it_takes(|| store.set_limit(instance(50 + number), Some(7))).await;
    }
    drop(store);
    let store = open(&directory).unwrap();
    for number in (1..=5).chain(51..=55) {
        assert_eq!(
            store.record(instance(number)).await.unwrap().unwrap().per_minute,
            Some(7)
        );
    }
}

#[tokio::test]
async fn a_store_whose_disk_stays_full_can_be_closed() {
    let (store, is_full, directory) = on_a_disk();
    is_full.store(true, Ordering::SeqCst);
    assert!(store.set_limit(instance(1), Some(7)).await.is_err());
    drop(store);
    assert!(open(&directory).is_ok(), "the directory is free");
}

#[test]
fn a_disk_that_is_full_at_the_start_is_called_full_and_not_damaged() {
    let full = || redb::Error::Io(io::ErrorKind::StorageFull.into());
    let said = open::failed(std::path::Path::new("store.redb"))(full()).to_string();
    assert!(said.contains("no storage space"), "{said}");
    assert!(!said.contains("damaged"), "{said}");
}
