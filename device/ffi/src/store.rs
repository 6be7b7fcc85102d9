//! Where the key pair is kept.
//!
//! An app on iOS or Android implements [`DeviceKeyStore`] over the Keychain or the Keystore; one on a desktop takes the
//! operating system's store, or a file.

use std::sync::Arc;

use sovereign_device::{
    Keys, Store,
    store::{HostError, KeyStore, change_passphrase},
};
use sovereign_relay_protocol::redacted::Redacted;

use crate::{
    error::{KeyStoreError, StoreError},
    keys::DeviceKeys,
};

/// An app's own place for one entry, about 160 bytes of ASCII, which holds the private key: give it to nothing but the
/// place. Called from the thread that asked for the keys.
#[uniffi::export(with_foreign)]
pub trait DeviceKeyStore: Send + Sync {
    /// What is kept; nothing only if it is certain that nothing is. A new key is made then, and notifications sealed
    /// for another are lost: what can't be read right now is an error.
    fn read(&self) -> Result<Option<Vec<u8>>, KeyStoreError>;

    /// Keeps `entry` if nothing is kept, and gives what is kept then. In one step: of two that call this at once, also
    /// in an extension of the app, both must get the same. (`SecItemAdd`, which refuses a duplicate, is such a step.)
    fn put_if_absent(&self, entry: Vec<u8>) -> Result<Vec<u8>, KeyStoreError>;

    /// Keeps nothing from then on. Fine if nothing was.
    fn forget(&self) -> Result<(), KeyStoreError>;
}

/// A place for a key pair.
#[derive(uniffi::Object)]
pub struct DeviceStore(Store);

struct Foreign(Arc<dyn DeviceKeyStore>);

#[uniffi::export]
impl DeviceStore {
    /// The operating system's: macOS Keychain, Windows Credential Manager, Linux Secret Service. `service` names the
    /// app, `account` whose key it is: one per instance and user. Unavailable on iOS and Android.
    #[uniffi::constructor]
    pub fn system(service: &str, account: &str) -> Result<Arc<Self>, StoreError> {
        system(service, account).map(|store| Arc::new(Self(store)))
    }

    /// A file, sealed with a passphrase.
    #[uniffi::constructor]
    pub fn file(path: String, passphrase: String) -> Result<Arc<Self>, StoreError> {
        let store = Store::file(path, Redacted::new(passphrase))?;
        Ok(Arc::new(Self(store)))
    }

    /// The app's own.
    #[uniffi::constructor]
    pub fn own(store: Arc<dyn DeviceKeyStore>) -> Arc<Self> {
        Arc::new(Self(Store::host(Foreign(store))))
    }

    /// Forgotten with the process: for tests.
    #[uniffi::constructor]
    pub fn memory() -> Arc<Self> {
        Arc::new(Self(Store::memory()))
    }

    /// The pair that is kept, or else a new one, kept from then on. Whoever calls this at the same time gets the same.
    pub fn open_or_make_keys(&self) -> Result<Arc<DeviceKeys>, StoreError> {
        let keys = Keys::open_or_make(self.0.clone())?;
        Ok(Arc::new(DeviceKeys(keys)))
    }

    /// The pair that is kept. For an extension, which must not make one.
    pub fn existing_keys(&self) -> Result<Option<Arc<DeviceKeys>>, StoreError> {
        let keys = Keys::existing(self.0.clone())?;
        Ok(keys.map(|keys| Arc::new(DeviceKeys(keys))))
    }

    /// Signing out: revoke the registration, forget, and let go of the keys.
    pub fn forget(&self) -> Result<(), StoreError> {
        Ok(self.0.forget()?)
    }
}

/// Seals the file of [`DeviceStore::file`] with another passphrase.
#[uniffi::export]
pub fn change_file_passphrase(path: String, old: String, new: String) -> Result<(), StoreError> {
    Ok(change_passphrase(path, Redacted::new(old), Redacted::new(new))?)
}

impl KeyStore for Foreign {
    fn read(&self) -> Result<Option<Vec<u8>>, HostError> {
        Ok(self.0.read()?)
    }

    fn put_if_absent(&self, entry: &[u8]) -> Result<Vec<u8>, HostError> {
        Ok(self.0.put_if_absent(entry.to_vec())?)
    }

    fn delete(&self) -> Result<(), HostError> {
        Ok(self.0.forget()?)
    }
}

#[cfg(not(any(target_os = "ios", target_os = "android")))]
fn system(service: &str, account: &str) -> Result<Store, StoreError> {
    Ok(Store::os(service, account))
}

#[cfg(any(target_os = "ios", target_os = "android"))]
fn system(_service: &str, _account: &str) -> Result<Store, StoreError> {
    let reason = "an app on this system brings its own store";
    Err(StoreError::Unavailable(reason.to_owned()))
}
