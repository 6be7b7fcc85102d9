//! The store and the node's own secret, which are worth something only together.

use super::*;
use crate::entropy::SystemEntropy;

fn open_both(directory: &TempDir) -> Result<(EmbeddedStore, Redacted), OpenError> {
    EmbeddedStore::open_with_secret(DataDir::open(directory.path())?, &SystemEntropy)
}

fn secret_file(directory: &TempDir) -> PathBuf {
    directory.path().join("enrollment-secret")
}

#[tokio::test]
async fn both_are_made_once_and_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let (store, secret) = open_both(&directory).unwrap();
    store.enroll(enrollment(1)).await.unwrap();
    drop(store);
    let (store, again) = open_both(&directory).unwrap();
    assert_eq!(again, secret);
    assert!(store.record(instance(1)).await.unwrap().is_some());
}

#[tokio::test]
async fn a_secret_missing_beside_a_store_in_use_stops_the_start_and_none_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = open_both(&directory).unwrap();
    store
        .purge(UnixMillis(1), vec![Kid([1; 6])])
        .await
        .expect("notes that a secret was seen");
    drop(store);
    fs::remove_file(secret_file(&directory)).unwrap();
    let refused = open_both(&directory).err().unwrap();
    assert!(matches!(refused, OpenError::SecretMissing(_)), "{refused}");
    assert!(!secret_file(&directory).exists());
    assert!(open(&directory).is_ok(), "with a configured secret it starts");
}

#[tokio::test]
async fn a_first_start_that_ended_before_its_secret_was_made_is_gone_on_with() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&directory).unwrap());
    assert!(open_both(&directory).is_ok());
}

#[tokio::test]
async fn a_store_missing_beside_its_secret_stops_the_start_and_none_is_made() {
    let directory = tempfile::tempdir().unwrap();
    drop(open_both(&directory).unwrap());
    fs::remove_file(file(&directory)).unwrap();
    let refused = open_both(&directory).err().unwrap();
    assert!(matches!(refused, OpenError::StoreMissing(_)), "{refused}");
    assert!(!file(&directory).exists());
}

#[tokio::test]
async fn a_damaged_secret_stops_the_start() {
    let directory = tempfile::tempdir().unwrap();
    drop(open_both(&directory).unwrap());
    fs::write(secret_file(&directory), [0; 43]).unwrap();
    let refused = open_both(&directory).err().unwrap();
    assert!(matches!(refused, OpenError::SecretDamaged(_)), "{refused}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_secret_that_a_copy_has_opened_to_others_is_closed_at_the_start() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    drop(open_both(&directory).unwrap());
    let secret = secret_file(&directory);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open_both(&directory).unwrap());
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn the_ways_on_that_a_damaged_store_is_told_lead_to_a_start() {
    let damaged = || {
        let directory = tempfile::tempdir().unwrap();
        drop(open_both(&directory).unwrap());
        fs::write(file(&directory), "no store").unwrap();
        let refused = open_both(&directory).err().unwrap().to_string();
        assert!(refused.contains("enrollment-secret") && refused.contains("RELAY_ENROLLMENT_SECRET_FILE"));
        fs::remove_file(file(&directory)).unwrap();
        fs::remove_file(secret_file(&directory)).unwrap();
        directory
    };
    let anew = damaged();
    assert!(open_both(&anew).is_ok(), "both are moved away");
    let configured = damaged();
    assert!(open(&configured).is_ok(), "the secret is named from elsewhere");
}
