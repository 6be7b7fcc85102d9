//! How the revocation list in memory follows a store that other replicas write too. Called by `app/follow.rs`.
//!
//! ```text
//! a change in the store -> learn, unlearn
//! changes may have been missed -> learn_all: the whole list is read and taken in
//!                              -> write_back: the store is told what it lacks
//! ```
//!
//! Invariant: following makes no revoked key valid. What memory knows and the store does not is not forgotten but
//! written back (the store was restored, or restarted without persistence); only the news that an entry's secrets are
//! retired takes it away.

use std::collections::HashMap;

use sovereign_relay_actors::ports::StoreError;
use sovereign_relay_protocol::id::InstanceId;

use super::authority::Authority;
use crate::store::revocation::{Entry, State};

/// What reading the whole list has shown.
#[derive(Debug)]
pub struct Learned {
    /// Instances that it ended here. Nothing says so again.
    pub ended: Vec<InstanceId>,
    /// What is known here and not there.
    pub lacking: Vec<(InstanceId, Entry)>,
}

impl Authority {
    /// Takes in an entry of the store; whether it ended the instance here.
    pub fn learn(&self, instance: InstanceId, entry: &Entry) -> bool {
        let was_gone = self.is_gone(instance);
        self.revocations.join(instance, entry);
        !was_gone && matches!(entry.state, State::Gone(_))
    }

    /// Forgets an entry whose secrets are retired, unless it has changed since.
    pub fn unlearn(&self, instance: InstanceId, entry: Entry) {
        self.revocations.forget(&[(instance, entry)]);
    }

    /// Takes in the whole list.
    pub async fn learn_all(&self) -> Result<Learned, StoreError> {
        let stored = self.store.revocations().await?;
        let ended = stored
            .iter()
            .filter(|(instance, entry)| self.learn(*instance, entry))
            .map(|(instance, _)| *instance)
            .collect();
        let lacking = self.lacking(&stored.into_iter().collect());
        Ok(Learned { ended, lacking })
    }

    /// Tells the store what it lacks.
    pub async fn write_back(&self, lacking: Vec<(InstanceId, Entry)>) -> Result<(), StoreError> {
        if lacking.is_empty() {
            return Ok(());
        }
        self.store.join_revocations(lacking, false).await
    }

    /// An entry under secrets of which none is configured here says nothing of any key that could be valid, and may
    /// have been forgotten for that.
    fn lacking(&self, stored: &HashMap<InstanceId, Entry>) -> Vec<(InstanceId, Entry)> {
        let matters =
            |entry: &Entry| entry.kids.is_empty() || entry.kids.iter().any(|kid| self.kids().contains(kid));
        let is_stored = |instance: &InstanceId, entry: &Entry| {
            let found = stored.get(instance);
            found.is_some_and(|found| found.join(entry) == *found)
        };
        self.revocations
            .all()
            .into_iter()
            .filter(|(instance, entry)| matters(entry) && !is_stored(instance, entry))
            .filter(|(instance, _)| !self.store.is_unreadable(*instance))
            .collect()
    }
}

#[cfg(test)]
mod tests;
