//! Instances whose entry in the revocation list a newer relay has written, in a form that this one can't read: during a
//! rolling deploy, or after one that was taken back.
//!
//! To stop following for one of them would let in whoever is revoked after it. To take it for revoked would end an
//! instance that has changed its key and no more. So it is read over, and the instance's keys are neither valid nor revoked
//! here (503, ask again: the other replicas know). Its sessions go on, which live ten minutes at most.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use sovereign_relay_protocol::id::InstanceId;
use tracing::error;

use super::revocations::decode;
use crate::store::revocation::Entry;

/// The instances; as many as the list has entries at most.
#[derive(Default)]
pub(super) struct Unreadable {
    /// Asked for every key, and false nearly always.
    are_any: AtomicBool,
    instances: Mutex<BTreeSet<InstanceId>>,
}

impl Unreadable {
    /// Whether it is one of them.
    pub(super) fn has(&self, instance: InstanceId) -> bool {
        self.are_any.load(Ordering::Acquire) && self.lock().contains(&instance)
    }

    /// Reads an entry, and notes whether it can be read.
    pub(super) fn read(&self, instance: InstanceId, text: &str) -> Option<Entry> {
        let entry = decode(text);
        let mut instances = self.lock();
        match &entry {
            Ok(_) => {
                instances.remove(&instance);
            }
            Err(cause) => {
                if instances.insert(instance) {
                    error!(
                        %instance,
                        %cause,
                        "a newer relay wrote this instance's revocation entry: its keys get 503 here until this replica is \
                         updated"
                    );
                }
            }
        }
        self.are_any.store(!instances.is_empty(), Ordering::Release);
        entry.ok()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<InstanceId>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
