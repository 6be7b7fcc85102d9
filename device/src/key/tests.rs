//! Keys over a store in memory, and over hosts' stores that misbehave.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    thread,
};

use sovereign_relay_protocol::seal::{DevicePublicKey, seal};

use super::*;
use crate::store::{HostError, KeyStore};

/// A host's store that answers what it is told.
#[derive(Default, Clone)]
struct Host {
    kept: Arc<Mutex<Option<Vec<u8>>>>,
    fails: bool,
    forgets: bool,
}

impl KeyStore for Host {
    fn read(&self) -> Result<Option<Vec<u8>>, HostError> {
        if self.fails {
            return Err("the Keychain is locked".into());
        }
        Ok(self.kept.lock().unwrap().clone())
    }

    fn put_if_absent(&self, entry: &[u8]) -> Result<Vec<u8>, HostError> {
        if self.forgets {
            return Ok(Vec::new());
        }
        Ok(self
            .kept
            .lock()
            .unwrap()
            .get_or_insert_with(|| entry.to_vec())
            .clone())
    }

    fn delete(&self) -> Result<(), HostError> {
        *self.kept.lock().unwrap() = None;
        Ok(())
    }
}

fn sealed_for(keys: &Keys, text: &str) -> String {
    let public = DevicePublicKey::from_base64(&keys.public_key()).unwrap();
    seal(text, &public, |bytes| entropy::fill(bytes).unwrap()).unwrap()
}

#[test]
fn a_pair_is_made_once_and_found_again() {
    let store = Store::memory();
    assert!(Keys::existing(store.clone()).unwrap().is_none());
    let made = Keys::open_or_make(store.clone()).unwrap();
    let found = Keys::open_or_make(store.clone()).unwrap();
    assert_eq!(made.public_key(), found.public_key());
    let sealed = sealed_for(&made, r#"{"title":"Hello"}"#);
    let existing = Keys::existing(store).unwrap().unwrap();
    assert_eq!(existing.open(&sealed).unwrap().title, "Hello");
}

#[test]
fn pairs_of_two_stores_differ() {
    let one = Keys::open_or_make(Store::memory()).unwrap();
    let other = Keys::open_or_make(Store::memory()).unwrap();
    assert_ne!(one.public_key(), other.public_key());
    let sealed = sealed_for(&one, r#"{"title":"Hello"}"#);
    assert_eq!(other.open(&sealed), Err(OpenError::NotForThisKey));
}

#[test]
fn many_that_make_one_at_once_end_with_one() {
    for store in [Store::memory(), Store::host(Host::default())] {
        let makers = [(); 16].map(|()| {
            let store = store.clone();
            thread::spawn(move || Keys::open_or_make(store).unwrap().public_key())
        });
        let keys: HashSet<String> = makers.map(|maker| maker.join().unwrap()).into();
        assert_eq!(keys.len(), 1);
    }
}

#[test]
fn after_signing_out_there_is_no_pair_and_signing_in_makes_another() {
    let store = Store::memory();
    let first = Keys::open_or_make(store.clone()).unwrap();
    let public = first.public_key();
    first.forget().unwrap();
    assert!(Keys::existing(store.clone()).unwrap().is_none());
    assert_ne!(Keys::open_or_make(store).unwrap().public_key(), public);
}

#[test]
fn a_store_that_fails_is_an_error_and_no_new_pair() {
    let host = Host {
        fails: true,
        ..Host::default()
    };
    let error = Keys::open_or_make(Store::host(host.clone())).unwrap_err();
    assert!(matches!(error, KeysError::Store(StoreError::Host(_))), "{error}");
    assert!(host.kept.lock().unwrap().is_none());
}

#[test]
fn a_foreign_or_damaged_entry_is_an_error_and_stays_until_the_app_forgets_it() {
    let host = Host::default();
    for (entry, expected) in [
        ("hunter2", "Foreign"),
        ("sovereign-device-key 1 AAAA AAAA", "Damaged"),
        ("", "Foreign"),
    ] {
        *host.kept.lock().unwrap() = Some(entry.into());
        let KeysError::Store(error) = Keys::open_or_make(Store::host(host.clone())).unwrap_err() else {
            panic!("an error of the store");
        };
        assert_eq!(format!("{error:?}"), expected);
        assert_eq!(host.kept.lock().unwrap().as_deref(), Some(entry.as_bytes()));
    }
    Store::host(host.clone()).forget().unwrap();
    Keys::open_or_make(Store::host(host)).unwrap();
}

#[test]
fn a_store_that_did_not_keep_the_pair_is_not_believed() {
    let host = Host {
        forgets: true,
        ..Host::default()
    };
    let error = Keys::open_or_make(Store::host(host)).unwrap_err();
    assert!(matches!(error, KeysError::Store(_)), "{error}");
}

#[test]
fn a_pair_is_not_printed() {
    let keys = Keys::open_or_make(Store::memory()).unwrap();
    assert_eq!(format!("{keys:?}"), "Keys { .. }");
}
