//! Sessions in memory: the store of a single node. "Stored" means "in memory": a restart ends the sessions.
//!
//! One lock for each session, held for microseconds; the rules are `actors/src/session/record.rs`. What has expired
//! is never seen, whether or not [`MemorySessions::sweep`] came by. The clock is read under the lock, so that time never
//! goes back for a session, nor for the next one of the same id.

use std::sync::Arc;

use dashmap::{DashMap, Entry as Place};
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use sovereign_relay_actors::{
    now::Now,
    ports::{Clock, StoreError},
    session::{
        port::{
            Appended, Bind, BindRefusal, Bound, Creation, Departure, Gone, NewSession, Page, Presence,
            SessionStore, Trimmed, counted_bytes,
        },
        record::SessionRecord,
        rules::SessionRules,
    },
};
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        frame::Opaque,
        id::{SessionId, Slot},
        session::SessionView,
    },
};

use super::{SessionBounds, usage::Usage};

/// All sessions of this process.
pub struct MemorySessions {
    clock: Arc<dyn Clock>,
    sessions: DashMap<SessionId, SessionRecord>,
    rules: SessionRules,
    usage: Usage,
}

/// For metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemorySnapshot {
    /// Sessions alive, and those that no sweep has met yet.
    pub sessions: usize,
    /// Bytes in all mailboxes.
    pub mailbox_bytes: usize,
}

impl MemorySessions {
    /// None yet.
    pub fn new(bounds: SessionBounds, rules: SessionRules, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            sessions: DashMap::new(),
            rules,
            usage: Usage::new(bounds),
        }
    }

    /// Frees what has expired. The owner calls it about once a second.
    pub fn sweep(&self) {
        let now = self.clock.now();
        self.sessions.retain(|_, record| {
            let is_over = record.is_over(now);
            if is_over {
                self.settle(record);
            }
            !is_over
        });
        if self.sessions.capacity() > self.sessions.len().saturating_mul(4) {
            self.sessions.shrink_to_fit();
        }
    }

    /// For metrics.
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot {
            sessions: self.sessions.len(),
            mailbox_bytes: self.usage.total(),
        }
    }

    fn make(&self, new: &NewSession) -> Creation {
        let place = self.sessions.entry(new.id);
        let now = self.clock.now();
        match place {
            Place::Occupied(mut place) if !place.get().is_over(now) => self.join(place.get_mut(), new),
            Place::Occupied(mut place) => {
                self.settle(place.get());
                match self.open(new, now) {
                    Ok(record) => {
                        let made = Creation::Made(record.place_of_maker(new));
                        place.insert(record);
                        made
                    }
                    Err(refused) => {
                        place.remove();
                        refused
                    }
                }
            }
            Place::Vacant(place) => match self.open(new, now) {
                Ok(record) => Creation::Made(place.insert(record).place_of_maker(new)),
                Err(refused) => refused,
            },
        }
    }

    fn open(&self, new: &NewSession, now: Now) -> Result<SessionRecord, Creation> {
        if self.usage.is_full() {
            return Err(Creation::Overloaded);
        }
        if !self.usage.open(new.instance) {
            return Err(Creation::TooMany);
        }
        Ok(SessionRecord::new(new, self.rules, now))
    }

    fn join(&self, record: &mut SessionRecord, new: &NewSession) -> Creation {
        let is_newcomer = !record.belongs_to(new.instance);
        if is_newcomer && record.instance_of(Slot::B).is_none() && !self.usage.open(new.instance) {
            return Creation::TooMany;
        }
        let joined = record.join(new);
        if is_newcomer && !record.belongs_to(new.instance) && record.instance_of(Slot::B).is_none() {
            self.usage.close(new.instance);
        }
        joined
    }

    /// A record is about to go: what it held is free.
    fn settle(&self, record: &SessionRecord) {
        for slot in Slot::BOTH {
            if let Some(sender) = record.instance_of(slot.other()) {
                self.usage.free(sender, record.bytes_for(slot));
            }
        }
        let (a, b) = (record.instance_of(Slot::A), record.instance_of(Slot::B));
        a.into_iter()
            .chain(b.filter(|_| a != b))
            .for_each(|instance| self.usage.close(instance));
    }

    /// Does something to a live session.
    fn with<T, E: From<Gone>>(
        &self,
        id: SessionId,
        work: impl FnOnce(&mut SessionRecord, Now) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut record = self.sessions.get_mut(&id).ok_or(Gone::NoSession)?;
        let now = self.clock.now();
        if record.is_over(now) {
            return Err(Gone::NoSession.into());
        }
        work(&mut record, now)
    }

    /// Does something that may free what waits for a slot.
    fn freeing<T, E: From<Gone>>(
        &self,
        id: SessionId,
        slot: Slot,
        work: impl FnOnce(&mut SessionRecord, Now) -> Result<T, E>,
    ) -> Result<T, E> {
        self.with(id, |record, now| {
            let before = record.bytes_for(slot);
            let outcome = work(record, now);
            if let Some(sender) = record.instance_of(slot.other()) {
                self.usage
                    .free(sender, before.saturating_sub(record.bytes_for(slot)));
            }
            outcome
        })
    }

    fn add(
        &self,
        record: &mut SessionRecord,
        from: Slot,
        epoch: u64,
        n: u64,
        content: Opaque,
    ) -> Result<Appended, Gone> {
        let (sender, bytes) = (
            record.instance_of(from).ok_or(Gone::Fenced)?,
            counted_bytes(&content),
        );
        let has_room = self.usage.has_room(sender, bytes);
        let outcome = if has_room {
            record.append(from, epoch, n, content)
        } else {
            record.append_without_room(from, epoch, n)
        }?;
        if outcome == Appended::Stored {
            self.usage.add(sender, bytes);
        }
        Ok(outcome)
    }
}

impl SessionStore for MemorySessions {
    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<Creation, StoreError>> {
        ready(Ok(self.make(&new))).boxed()
    }

    fn lives(&self, id: SessionId) -> BoxFuture<'static, Result<bool, StoreError>> {
        let record = self.sessions.get(&id);
        let now = self.clock.now();
        ready(Ok(record.is_some_and(|record| !record.is_over(now)))).boxed()
    }

    fn view(
        &self,
        id: SessionId,
        instance: InstanceId,
    ) -> BoxFuture<'static, Result<Option<SessionView>, StoreError>> {
        let record = self.sessions.get(&id);
        let now = self.clock.now();
        let own = record.filter(|record| !record.is_over(now) && record.belongs_to(instance));
        ready(Ok(own.map(|record| record.view(id, now)))).boxed()
    }

    fn remove(&self, id: SessionId, instance: InstanceId) -> BoxFuture<'static, Result<bool, StoreError>> {
        let now = self.clock.now();
        let removed = self
            .sessions
            .remove_if(&id, |_, record| record.belongs_to(instance));
        if let Some((_, record)) = &removed {
            self.settle(record);
        }
        ready(Ok(removed.is_some_and(|(_, record)| !record.is_over(now)))).boxed()
    }

    fn bind(&self, id: SessionId, bind: Bind) -> BoxFuture<'static, Result<Bound, BindRefusal>> {
        ready(self.freeing(id, bind.slot, |record, now| record.bind(&bind, now))).boxed()
    }

    fn append(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        n: u64,
        content: Opaque,
    ) -> BoxFuture<'static, Result<Appended, Gone>> {
        ready(self.with(id, |record, _| self.add(record, slot, epoch, n, content))).boxed()
    }

    fn trim(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        seq: u64,
    ) -> BoxFuture<'static, Result<Trimmed, Gone>> {
        ready(self.freeing(id, slot, |record, _| record.trim(slot, epoch, seq))).boxed()
    }

    fn read(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Page, Gone>> {
        ready(self.with(id, |record, _| record.read(slot, epoch, after, bytes))).boxed()
    }

    fn peer(&self, id: SessionId, slot: Slot) -> BoxFuture<'static, Result<Presence, Gone>> {
        ready(self.with(id, |record, now| Ok(record.peer(slot, now)))).boxed()
    }

    fn unbind(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        departure: Departure,
    ) -> BoxFuture<'static, Result<(), Gone>> {
        ready(self.with(id, |record, now| record.unbind(slot, epoch, departure, now))).boxed()
    }
}

#[cfg(test)]
mod tests;
