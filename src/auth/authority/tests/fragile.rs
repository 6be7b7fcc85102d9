//! A real store that can be told to fail every call.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use sovereign_relay_actors::ports::{InstanceStore, Standing, StoreError, Suspension};
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};

use crate::store::{
    Enrolled, Invite, NewEnrollment, Purged, Record, Store, Swap,
    embedded::EmbeddedStore,
    revocation::{Entry, Kid},
};

pub(crate) struct FragileStore {
    inner: EmbeddedStore,
    failing: AtomicBool,
}

type Answer<T> = BoxFuture<'static, Result<T, StoreError>>;

impl FragileStore {
    pub(crate) fn new(inner: EmbeddedStore) -> Self {
        Self {
            inner,
            failing: AtomicBool::new(false),
        }
    }

    pub(crate) fn fail(&self, failing: bool) {
        self.failing.store(failing, Ordering::SeqCst);
    }

    fn or_fail<T: 'static>(&self, call: impl FnOnce(&EmbeddedStore) -> Answer<T>) -> Answer<T> {
        if self.failing.load(Ordering::SeqCst) {
            return Box::pin(async { Err(StoreError("told to fail".to_owned())) });
        }
        call(&self.inner)
    }
}

impl InstanceStore for FragileStore {
    fn standing(&self, instance: InstanceId) -> Answer<Option<Standing>> {
        self.or_fail(|store| store.standing(instance))
    }
    fn note_use(&self, instance: InstanceId, sent: u64, at: UnixMillis) -> Answer<()> {
        self.or_fail(|store| store.note_use(instance, sent, at))
    }
    fn suspend(&self, instance: InstanceId, suspension: Suspension) -> Answer<()> {
        self.or_fail(|store| store.suspend(instance, suspension))
    }
}

impl Store for FragileStore {
    fn enroll(&self, new: NewEnrollment) -> Answer<Enrolled> {
        self.or_fail(|store| store.enroll(new))
    }
    fn record(&self, instance: InstanceId) -> Answer<Option<Record>> {
        self.or_fail(|store| store.record(instance))
    }
    fn records(&self, after: Option<InstanceId>, limit: usize) -> Answer<Vec<Record>> {
        self.or_fail(|store| store.records(after, limit))
    }
    fn set_suspension(&self, instance: InstanceId, suspension: Option<Suspension>) -> Answer<()> {
        self.or_fail(|store| store.set_suspension(instance, suspension))
    }
    fn set_limit(&self, instance: InstanceId, per_minute: Option<u32>) -> Answer<()> {
        self.or_fail(|store| store.set_limit(instance, per_minute))
    }
    fn set_turn(&self, instance: InstanceId, turn: Option<bool>) -> Answer<()> {
        self.or_fail(|store| store.set_turn(instance, turn))
    }
    fn revocations(&self) -> Answer<Vec<(InstanceId, Entry)>> {
        self.or_fail(Store::revocations)
    }
    fn join_revocations(&self, entries: Vec<(InstanceId, Entry)>, erase: bool) -> Answer<()> {
        self.or_fail(|store| store.join_revocations(entries, erase))
    }
    fn swap_revocation(&self, instance: InstanceId, expected: Option<Entry>, new: Entry) -> Answer<Swap> {
        self.or_fail(|store| store.swap_revocation(instance, expected, new))
    }
    fn add_invite(&self, invite: Invite) -> Answer<bool> {
        self.or_fail(|store| store.add_invite(invite))
    }
    fn invites(&self, now: UnixMillis) -> Answer<Vec<Invite>> {
        self.or_fail(|store| store.invites(now))
    }
    fn purge(&self, now: UnixMillis, configured: Vec<Kid>) -> Answer<Purged> {
        self.or_fail(|store| store.purge(now, configured))
    }
    fn fault(&self) -> Option<StoreError> {
        self.failing
            .load(Ordering::SeqCst)
            .then(|| StoreError("told to fail".to_owned()))
    }
}
