//! Files on a real disk: made once, whole or not at all, for their owner alone.
#![cfg(unix)]

use std::{
    collections::HashSet,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Barrier},
    thread,
};

use tempfile::TempDir;
use zeroize::Zeroizing;

use super::*;

const CHEAP: Cost = Cost {
    memory_kib: 8,
    passes: 1,
    lanes: 1,
};

struct Place {
    directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("below").join("key");
        Self { directory, path }
    }

    fn store(&self, passphrase: &str) -> FileStore {
        let store = FileStore::new(self.path.clone(), Redacted::new(passphrase)).unwrap();
        FileStore { cost: CHEAP, ..store }
    }

    fn mode(&self, path: &Path) -> u32 {
        fs::metadata(self.directory.path().join(path))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.directory.path().join("below")).unwrap();
        names
            .map(|name| name.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

fn entry(text: &str) -> Entry {
    Zeroizing::new(text.as_bytes().to_vec())
}

#[test]
fn a_file_needs_a_passphrase() {
    for empty in ["", " ", "\t\n"] {
        let refused = FileStore::new("key".into(), Redacted::new(empty));
        assert!(matches!(refused, Err(StoreError::NoPassphrase)));
    }
}

#[test]
fn what_is_kept_is_read_by_its_passphrase_alone_and_is_its_owners() {
    let place = Place::new();
    let store = place.store("one");
    assert!(store.read().unwrap().is_none());
    assert_eq!(store.keep_first(&entry("first")).unwrap(), entry("first"));
    assert_eq!(store.keep_first(&entry("second")).unwrap(), entry("first"));
    assert_eq!(place.store("one").read().unwrap(), Some(entry("first")));
    assert!(matches!(
        place.store("two").read(),
        Err(StoreError::WrongPassphrase)
    ));
    let late = place.store("two").keep_first(&entry("second"));
    assert!(matches!(late, Err(StoreError::WrongPassphrase)));
    assert_eq!(
        (place.mode(Path::new("below/key")), place.mode(Path::new("below"))),
        (0o600, 0o700)
    );
    assert_eq!(place.names(), ["key"], "nothing is left beside it");
}

#[test]
fn many_that_keep_at_once_end_with_one() {
    let place = Place::new();
    let barrier = Arc::new(Barrier::new(16));
    let keepers: Vec<_> = (0..16)
        .map(|number| {
            let (store, barrier) = (place.store("one"), barrier.clone());
            thread::spawn(move || {
                barrier.wait();
                store.keep_first(&entry(&number.to_string())).unwrap().to_vec()
            })
        })
        .collect();
    let kept: HashSet<_> = keepers.into_iter().map(|keeper| keeper.join().unwrap()).collect();
    assert_eq!(kept.len(), 1);
    assert_eq!(place.names(), ["key"]);
}

#[test]
fn a_file_that_others_may_read_is_refused() {
    let place = Place::new();
    place.store("one").keep_first(&entry("first")).unwrap();
    for mode in [0o640, 0o604, 0o610] {
        fs::set_permissions(&place.path, fs::Permissions::from_mode(mode)).unwrap();
        assert!(
            matches!(place.store("one").read(), Err(StoreError::Exposed)),
            "{mode:o}"
        );
    }
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o400)).unwrap();
    assert_eq!(place.store("one").read().unwrap(), Some(entry("first")));
}

#[test]
fn what_is_in_the_place_already_is_never_written_over() {
    let place = Place::new();
    fs::create_dir(place.path.parent().unwrap()).unwrap();
    for (content, expected) in [
        (&b""[..], "Damaged"),
        (b"somebody's notes", "Foreign"),
        (&[7; 9000], "Foreign"),
    ] {
        fs::write(&place.path, content).unwrap();
        fs::set_permissions(&place.path, fs::Permissions::from_mode(0o600)).unwrap();
        let store = place.store("one");
        for result in [
            store.read().map(|_| ()),
            store.keep_first(&entry("new")).map(|_| ()),
        ] {
            assert_eq!(format!("{:?}", result.unwrap_err()), expected);
        }
        assert_eq!(fs::read(&place.path).unwrap(), content);
    }
}

#[test]
fn a_place_that_is_no_file_is_an_error_and_not_nothing() {
    let place = Place::new();
    fs::create_dir_all(&place.path).unwrap();
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o700)).unwrap();
    let store = place.store("one");
    assert!(matches!(store.read(), Err(StoreError::Io(_))));
    assert!(matches!(store.keep_first(&entry("new")), Err(StoreError::Io(_))));
}

#[test]
fn what_was_deleted_is_gone_and_deleting_again_is_fine() {
    let place = Place::new();
    let store = place.store("one");
    store.delete().unwrap();
    store.keep_first(&entry("first")).unwrap();
    store.delete().unwrap();
    store.delete().unwrap();
    assert!(store.read().unwrap().is_none());
    assert_eq!(store.keep_first(&entry("second")).unwrap(), entry("second"));
}

#[test]
fn a_passphrase_is_changed_in_place_and_the_old_one_opens_nothing() {
    let place = Place::new();
    let change =
        |old: &str, new: &str| change_passphrase(&place.path, Redacted::new(old), Redacted::new(new));
    let Err(StoreError::Io(error)) = change("one", "two") else {
        panic!("there is no file yet");
    };
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    place.store("one").keep_first(&entry("first")).unwrap();
    assert!(matches!(change("one", " "), Err(StoreError::NoPassphrase)));
    assert!(matches!(change("three", "two"), Err(StoreError::WrongPassphrase)));
    change("one", "two").unwrap();
    assert!(matches!(
        place.store("one").read(),
        Err(StoreError::WrongPassphrase)
    ));
    assert_eq!(place.store("two").read().unwrap(), Some(entry("first")));
    assert_eq!(
        (place.mode(Path::new("below/key")), place.names()),
        (0o600, vec!["key".to_owned()])
    );
}

#[test]
fn a_file_costs_a_guess_what_the_standard_recommends() {
    let place = Place::new();
    let store = FileStore::new(place.path.clone(), Redacted::new("one")).unwrap();
    store.keep_first(&entry("first")).unwrap();
    let written = fs::read(&place.path).unwrap();
    let numbers: Vec<u32> = written[8..20]
        .chunks(4)
        .map(|four| u32::from_be_bytes(four.try_into().unwrap()))
        .collect();
    assert_eq!(numbers, [65_536, 3, 4]);
    assert_eq!(store.read().unwrap(), Some(entry("first")));
}

#[test]
fn a_pipe_is_not_waited_for() {
    let place = Place::new();
    let store = place.store("a passphrase");
    fs::create_dir_all(place.path.parent().unwrap()).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(&place.path).status();
    assert!(pipe.unwrap().success());
    assert!(matches!(store.read(), Err(StoreError::Io(_))));
    assert!(matches!(store.keep_first(&entry("key")), Err(StoreError::Io(_))));
    assert_eq!(place.names(), ["key"], "nothing is left beside it");
}
