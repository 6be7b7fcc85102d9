//! The device's key pair: made once, kept in a [`Store`], and never given out.
//!
//! An instance seals each notification for the public half. A second pair would make every notification that is under
//! way unreadable, so a pair is only ever made where a store says that it holds nothing: what can't be read is an error
//! that the app must deal with, by waiting, by asking for a passphrase, or by [`Store::forget`] and registering anew.
//!
//! Blocking: a store may ask the user to unlock it, and a file's passphrase costs a tenth of a second on purpose. Call
//! it off the thread that draws.

use std::fmt;

use sovereign_relay_protocol::seal::DeviceKey;
use thiserror::Error;

use crate::{
    entropy,
    notification::{self, Notification, OpenError},
    record,
    store::{Store, StoreError},
};

/// This device's key pair. It prints nothing and is wiped when dropped.
pub struct Keys {
    key: DeviceKey,
    store: Store,
}

/// There is no key pair to use.
#[derive(Debug, Error)]
pub enum KeysError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system gives no randomness: nothing secret can be made.
    #[error("the randomness source is broken")]
    Randomness,
}

impl Keys {
    /// The pair that `store` keeps, or else a new one, kept there. Whoever calls this at the same time, in whatever
    /// process, gets the same pair.
    pub fn open_or_make(store: Store) -> Result<Self, KeysError> {
        if let Some(keys) = Self::existing(store.clone())? {
            return Ok(keys);
        }
        let made = record::write(&make()?);
        let kept = store.keep_first(&made)?;
        let key = record::read(&kept)?;
        Ok(Self { key, store })
    }

    /// The pair that `store` keeps. For a part of the app that must not make one, such as an extension.
    pub fn existing(store: Store) -> Result<Option<Self>, StoreError> {
        let Some(kept) = store.read()? else {
            return Ok(None);
        };
        let key = record::read(&kept)?;
        Ok(Some(Self { key, store }))
    }

    /// What an instance seals for: base64 of the 65 bytes of the uncompressed point.
    pub fn public_key(&self) -> String {
        self.key.public_key().to_base64()
    }

    /// Opens a sealed notification, as the push brought it.
    pub fn open(&self, sealed: &str) -> Result<Notification, OpenError> {
        notification::open(sealed, &self.key)
    }

    /// Signing out: nothing that was sealed for this pair can be read by anyone from then on. Revoke the registration
    /// first, or the instance goes on sending.
    pub fn forget(self) -> Result<(), StoreError> {
        self.store.forget()
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

fn make() -> Result<DeviceKey, KeysError> {
    // Bytes that could not be filled stay zero, which is no key: the draws end with an error.
    DeviceKey::generate(|bytes| {
        if entropy::fill(bytes).is_err() {
            bytes.fill(0);
        }
    })
    .map_err(|_| KeysError::Randomness)
}

#[cfg(test)]
mod tests;
