//! The revocation list in memory, and the rules of rotation.
//!
//! Called by `authority.rs`: [`Revocations::check`] for every request, [`decide`] for a rotation. Loaded at start;
//! afterwards changed only by what is already in the store.
//!
//! ```text
//! rotate with key n            newest n: n+1 is made, n gets its grace
//!                              newest n+1, n+1 not used yet: n+1 again, also past the grace of n
//!                              newest n+1, n+1 in use: refused
//! any call with key n          newest, or in its grace: valid; else revoked
//! ```
//!
//! Invariant: no change makes a revoked key valid, and no grace ever ends later than it was said to.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use dashmap::DashMap;
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};
use tokio::sync::Notify;

use crate::store::revocation::{Entry, GENERATIONS_IN_GRACE, Grace, Kid, Rotated, State};

/// Most entries before instances' own withdrawals and rotations are refused (the operator's revocations never
/// are): some 250 MB of memory, and no relay is near it unless somebody enrolls and withdraws by machine.
const ENTRIES: usize = 1_000_000;

/// What the list says of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Check {
    /// Nothing against it.
    Valid,
    /// Withdrawn, revoked, or past its grace.
    Revoked,
}

/// A wish to rotate.
pub(super) struct Ask<'a> {
    /// Of the key that asks.
    pub(super) generation: u32,
    /// How long that key shall go on working.
    pub(super) grace_seconds: u64,
    /// Now.
    pub(super) now: UnixMillis,
    /// All configured secrets.
    pub(super) kids: &'a [Kid],
}

/// What becomes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Rotation {
    /// A new key is made: the entry to write.
    Fresh(Entry),
    /// The newest key is handed out again; the entry may shorten the old one's grace.
    Again(Entry),
    /// The key is valid, but a newer one is in use.
    NotNewest,
    /// The key is not valid.
    Revoked,
}

/// Decides a rotation.
pub(super) fn decide(entry: Option<&Entry>, ask: &Ask<'_>) -> Rotation {
    let Some(entry) = entry else {
        return fresh(None, &[], ask);
    };
    let rotated = match &entry.state {
        State::Gone(_) => return Rotation::Revoked,
        State::Rotated(rotated) => rotated,
    };
    if ask.generation >= rotated.newest {
        return fresh(Some(rotated), &entry.kids, ask);
    }
    if ask.generation.checked_add(1) == Some(rotated.newest) && !rotated.used {
        return again(&entry.kids, rotated, ask);
    }
    if entry.allows(ask.generation, ask.now) {
        Rotation::NotNewest
    } else {
        Rotation::Revoked
    }
}

fn fresh(present: Option<&Rotated>, kids: &[Kid], ask: &Ask<'_>) -> Rotation {
    // The last generation there can be: it stays the newest for good.
    let Some(newest) = ask.generation.checked_add(1) else {
        return Rotation::NotNewest;
    };
    let until = end_of_grace(ask);
    let earlier = present
        .map(|rotated| rotated.grace.as_slice())
        .unwrap_or_default();
    let mut grace: Vec<Grace> = earlier
        .iter()
        .filter(|grace| ask.now < grace.until)
        .map(|grace| Grace {
            until: grace.until.min(until),
            ..*grace
        })
        .chain([Grace {
            generation: ask.generation,
            until,
        }])
        .collect();
    grace.drain(..grace.len().saturating_sub(GENERATIONS_IN_GRACE));
    let state = State::Rotated(Rotated {
        newest,
        issued_at: ask.now.seconds(),
        used: false,
        grace,
    });
    // Earlier generations may be signed by secrets that are not configured just now.
    let mut all_kids = [kids, ask.kids].concat();
    all_kids.sort_unstable();
    all_kids.dedup();
    Rotation::Fresh(Entry {
        kids: all_kids,
        state,
    })
}

fn again(kids: &[Kid], rotated: &Rotated, ask: &Ask<'_>) -> Rotation {
    let until = end_of_grace(ask);
    let grace = rotated
        .grace
        .iter()
        .map(|grace| Grace {
            until: grace.until.min(until),
            ..*grace
        })
        .collect();
    Rotation::Again(Entry {
        kids: kids.to_vec(),
        state: State::Rotated(Rotated {
            grace,
            ..rotated.clone()
        }),
    })
}

fn end_of_grace(ask: &Ask<'_>) -> UnixMillis {
    ask.now.plus_millis(ask.grace_seconds.saturating_mul(1000))
}

/// The list.
pub(super) struct Revocations {
    capacity: usize,
    entries: DashMap<InstanceId, Entry>,
    /// Whose newest key was used for the first time since the last save. At most one per entry.
    unsaved: Mutex<BTreeSet<InstanceId>>,
    /// Rung when there is something to save.
    first_uses: Notify,
}

impl Revocations {
    /// As loaded.
    pub(super) fn new(entries: Vec<(InstanceId, Entry)>) -> Self {
        Self {
            capacity: ENTRIES,
            entries: entries.into_iter().collect(),
            unsaved: Mutex::default(),
            first_uses: Notify::new(),
        }
    }

    /// What is to be said of a key. Notes the first use of a rotated one.
    pub(super) fn check(&self, instance: InstanceId, generation: u32, now: UnixMillis) -> Check {
        let Some(entry) = self.entries.get(&instance) else {
            return Check::Valid;
        };
        let (allowed, first) = (entry.allows(generation, now), is_first_use(&entry, generation));
        drop(entry);
        if allowed && first {
            self.note_first_use(instance, generation);
        }
        if allowed { Check::Valid } else { Check::Revoked }
    }

    /// One entry.
    pub(super) fn get(&self, instance: InstanceId) -> Option<Entry> {
        self.entries.get(&instance).map(|entry| entry.clone())
    }

    /// All entries, as they are while they are walked.
    pub(super) fn all(&self) -> Vec<(InstanceId, Entry)> {
        self.entries
            .iter()
            .map(|entry| (*entry.key(), entry.value().clone()))
            .collect()
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether an instance's own wish can add an entry.
    pub(super) fn has_room_for(&self, instance: InstanceId) -> bool {
        self.entries.len() < self.capacity || self.entries.contains_key(&instance)
    }

    /// Takes in what is in the store.
    pub(super) fn join(&self, instance: InstanceId, entry: &Entry) {
        self.entries
            .entry(instance)
            .and_modify(|present| *present = present.join(entry))
            .or_insert_with(|| entry.clone());
    }

    /// Forgets entries that the store has forgotten, unless they have changed since.
    pub(super) fn forget(&self, gone: &[(InstanceId, Entry)]) {
        for (instance, entry) in gone {
            self.entries.remove_if(instance, |_, present| present == entry);
        }
    }

    /// Returns when a new key was used for the first time since the last call.
    pub(super) async fn first_use(&self) {
        self.first_uses.notified().await;
    }

    /// The entries whose first use is not in the store yet. Once taken they count as saved.
    pub(super) fn take_unsaved(&self) -> Vec<(InstanceId, Entry)> {
        let instances = std::mem::take(&mut *self.lock_unsaved());
        instances
            .into_iter()
            .filter_map(|instance| Some((instance, self.get(instance)?)))
            .collect()
    }

    /// They could not be saved.
    pub(super) fn put_back(&self, entries: Vec<(InstanceId, Entry)>) {
        self.lock_unsaved()
            .extend(entries.into_iter().map(|(instance, _)| instance));
    }

    fn note_first_use(&self, instance: InstanceId, generation: u32) {
        let Some(mut entry) = self.entries.get_mut(&instance) else {
            return;
        };
        if !is_first_use(&entry, generation) {
            return;
        }
        if let State::Rotated(rotated) = &mut entry.state {
            rotated.used = true;
        }
        drop(entry);
        self.lock_unsaved().insert(instance);
        self.first_uses.notify_one();
    }

    fn lock_unsaved(&self) -> MutexGuard<'_, BTreeSet<InstanceId>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_first_use(entry: &Entry, generation: u32) -> bool {
    matches!(&entry.state, State::Rotated(rotated) if !rotated.used && generation >= rotated.newest)
}

#[cfg(test)]
mod tests;
