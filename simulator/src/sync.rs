//! A lock that goes on after a panic of its holder: a simulator's counters are still worth reading then.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, whatever happened to earlier holders.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
