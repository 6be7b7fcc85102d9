//! A store that ends with the process, for tests of hosts.

use std::sync::{Mutex, PoisonError};

use super::{Entry, Keep, StoreError};

#[derive(Default)]
pub(super) struct MemoryStore(Mutex<Option<Entry>>);

impl Keep for MemoryStore {
    fn read(&self) -> Result<Option<Entry>, StoreError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn keep_first(&self, entry: &Entry) -> Result<Entry, StoreError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(kept.get_or_insert_with(|| entry.clone()).clone())
    }

    fn delete(&self) -> Result<(), StoreError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }
}
