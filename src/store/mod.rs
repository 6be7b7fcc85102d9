//! What outlives a restart: enrollment records, the revocation list, invites and address groups.
//!
//! Called by `auth` (everything) and by the instances' actors (their part, [`InstanceStore`]). [`embedded`] is the
//! store of a single node; a store shared by replicas implements the same [`Store`] and passes the same contract
//! tests (`contract.rs`).
//!
//! ```text
//! auth, actors -> dyn Store -> embedded (redb in the data directory)
//! ```
//!
//! Invariant: what a call acknowledges about revocations, rotations, invites, suspensions, limits and TURN survives a
//! crash at any moment afterwards. Use counters ([`InstanceStore::note_use`]) may lose their last minute.
//!
//! No decision is made here: a rotation is decided by `auth` on the entry it read and written with
//! [`Store::swap_revocation`], which refuses when the entry has changed in between.

use futures_util::future::BoxFuture;
use sovereign_relay_actors::ports::{InstanceStore, StoreError, Suspension};
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted, time::UnixMillis};

pub mod embedded;
pub mod redis;
pub mod revocation;
pub mod sessions;

#[cfg(test)]
mod contract;

use revocation::{Entry, Kid};

/// Longest page of [`Store::records`]: what one admin answer holds comfortably.
pub const RECORDS_PAGE: usize = 500;
/// Most invites outstanding at a time. An operator who needs more wants `RELAY_ENROLLMENT=open`.
pub const INVITES_OUTSTANDING: usize = 10_000;
/// How long the enrollments of one address share a group, in milliseconds; longer must no address hash be kept.
pub const GROUP_MILLIS: u64 = 24 * 3600 * 1000;

/// An enrolled instance, or what the operator decided about one that has no enrollment here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// Whose.
    pub instance: InstanceId,
    /// What it called itself.
    pub name: Option<Redacted>,
    /// Its operator's mail address.
    pub contact: Option<Redacted>,
    /// `None`: no enrollment is known (it lapsed, or the earlier relay made it); the record only carries the
    /// operator's limit or a suspension.
    pub enrolled_at: Option<UnixMillis>,
    /// Shared by the enrollments of one address within 24 h.
    pub group: Option<u64>,
    /// Pushes `sent` so far.
    pub sent: u64,
    /// `None`: never used.
    pub last_used_at: Option<UnixMillis>,
    /// Operator's limit in pushes a minute.
    pub per_minute: Option<u32>,
    /// Operator's word on TURN credentials.
    pub turn: Option<bool>,
    /// Operator's or abuse policy's.
    pub suspension: Option<Suspension>,
}

impl Record {
    /// A record that says nothing.
    pub fn bare(instance: InstanceId) -> Self {
        Self {
            instance,
            name: None,
            contact: None,
            enrolled_at: None,
            group: None,
            sent: 0,
            last_used_at: None,
            per_minute: None,
            turn: None,
            suspension: None,
        }
    }
}

/// An enrollment about to be written.
#[derive(Clone, Debug)]
pub struct NewEnrollment {
    /// Its fresh id.
    pub instance: InstanceId,
    /// What it calls itself.
    pub name: Option<Redacted>,
    /// Its operator's mail address.
    pub contact: Option<Redacted>,
    /// Now.
    pub at: UnixMillis,
    /// Keyed hash of the address (IPv4, or the IPv6 /64), which finds the group.
    pub address: u64,
    /// The group's random number, should this be the address's first enrollment within 24 h.
    pub fresh_group: u64,
    /// The invite to use up, where one is needed.
    pub invite: Option<InviteHash>,
}

/// What became of [`Store::enroll`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enrolled {
    /// Written; the invite, if any, is used up.
    Made {
        /// The group it was put in.
        group: u64,
    },
    /// No such invite, used, or expired. Nothing was written.
    InviteRefused,
}

/// SHA-256 of an invite: all that is kept of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InviteHash(pub [u8; 32]);

/// An invite that can still be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Invite {
    /// Of its text.
    pub hash: InviteHash,
    /// When the operator made it.
    pub created_at: UnixMillis,
    /// When it can no longer be used.
    pub expires_at: UnixMillis,
}

/// What became of [`Store::swap_revocation`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Swap {
    /// Written.
    Done,
    /// Not written: the list says something else than was expected, namely this.
    Changed(Option<Entry>),
}

/// What one [`Store::purge`] step removed.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Purged {
    /// Records lapsed.
    pub records: usize,
    /// Invites expired.
    pub invites: usize,
    /// Address groups forgotten.
    pub groups: usize,
    /// Entries of the revocation list whose secrets are all retired, exactly as they were.
    pub revocations: Vec<(InstanceId, Entry)>,
}

/// The store. Every future is `'static`, never blocks the thread that polls it, and may be dropped: what was
/// begun then still happens, or not, as a whole.
pub trait Store: InstanceStore {
    /// Writes an enrollment: uses up the invite, finds or opens the address's group, makes the record, in one
    /// step, so that an invite serves once whatever runs beside it.
    fn enroll(&self, new: NewEnrollment) -> BoxFuture<'static, Result<Enrolled, StoreError>>;

    /// One record.
    fn record(&self, instance: InstanceId) -> BoxFuture<'static, Result<Option<Record>, StoreError>>;

    /// Up to `limit` (at most [`RECORDS_PAGE`]) records in the order of their ids, after `after`.
    fn records(
        &self,
        after: Option<InstanceId>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<Record>, StoreError>>;

    /// Replaces the suspension by the operator's word; `None` ends it. Makes a record where there is none.
    fn set_suspension(
        &self,
        instance: InstanceId,
        suspension: Option<Suspension>,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Replaces the operator's limit; `None` = default. Makes a record where there is none.
    fn set_limit(
        &self,
        instance: InstanceId,
        per_minute: Option<u32>,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Replaces the operator's word on TURN credentials; `None` = none. Makes a record where there is none.
    fn set_turn(
        &self,
        instance: InstanceId,
        turn: Option<bool>,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// The whole revocation list, at start.
    fn revocations(&self) -> BoxFuture<'static, Result<Vec<(InstanceId, Entry)>, StoreError>>;

    /// Joins entries into the list ([`Entry::join`]): nothing that is refused today is let in again by it.
    /// With `erase`, the instances' records go in the same step.
    fn join_revocations(
        &self,
        entries: Vec<(InstanceId, Entry)>,
        erase: bool,
    ) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Replaces one entry if it is still as `expected`.
    fn swap_revocation(
        &self,
        instance: InstanceId,
        expected: Option<Entry>,
        new: Entry,
    ) -> BoxFuture<'static, Result<Swap, StoreError>>;

    /// Keeps an invite. `false`: [`INVITES_OUTSTANDING`] are.
    fn add_invite(&self, invite: Invite) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// The invites that can be used now, earliest expiry first.
    fn invites(&self, now: UnixMillis) -> BoxFuture<'static, Result<Vec<Invite>, StoreError>>;

    /// One bounded step of forgetting; also notes which secrets are `configured`. Called about once a minute.
    fn purge(&self, now: UnixMillis, configured: Vec<Kid>) -> BoxFuture<'static, Result<Purged, StoreError>>;

    /// Whether the revocation list has an entry of an instance that this relay can't read, for a newer one wrote it. Its
    /// keys are neither valid nor revoked then. Asked for every key, so it is known without I/O.
    fn is_unreadable(&self, _instance: InstanceId) -> bool {
        false
    }

    /// Why the store can't work, for `/readyz`; `None` while it can.
    fn fault(&self) -> Option<StoreError>;
}
