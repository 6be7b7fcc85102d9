//! A store that the host writes: on iOS over the Keychain, on Android over preferences that a key of the Keystore seals.

use zeroize::Zeroizing;

use super::{Entry, Keep, StoreError};

/// Why a host's store failed, in its own words. They are shown and logged: they must not hold the entry.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// A place for one entry, about 160 bytes of ASCII, which holds the private key: give it to nothing but the place.
pub trait KeyStore: Send + Sync {
    /// What is kept; `None` only if it is certain that nothing is. A new key is made then, and notifications sealed for
    /// another are lost: what can't be read right now is an error.
    fn read(&self) -> Result<Option<Vec<u8>>, HostError>;

    /// Keeps `entry` if nothing is kept, and gives what is kept then. In one step: of two that call this at once, also
    /// in two processes, both must get the same.
    fn put_if_absent(&self, entry: &[u8]) -> Result<Vec<u8>, HostError>;

    /// Keeps nothing from then on. Fine if nothing was.
    fn delete(&self) -> Result<(), HostError>;
}

pub(super) struct HostStore<S>(pub(super) S);

impl<S: KeyStore> Keep for HostStore<S> {
    fn read(&self) -> Result<Option<Entry>, StoreError> {
        let kept = self.0.read().map_err(StoreError::Host)?;
        Ok(kept.map(Zeroizing::new))
    }

    fn keep_first(&self, entry: &Entry) -> Result<Entry, StoreError> {
        self.0
            .put_if_absent(entry)
            .map(Zeroizing::new)
            .map_err(StoreError::Host)
    }

    fn delete(&self) -> Result<(), StoreError> {
        self.0.delete().map_err(StoreError::Host)
    }
}
