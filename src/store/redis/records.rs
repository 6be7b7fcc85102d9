//! Records, the operator's words, invites, address groups and the revocation list in Redis, shared by all replicas.
//!
//! ```text
//! relay:{records}:record:<instance>   hash    an enrollment; goes when it lapses
//! relay:{records}:word:<instance>     hash    the operator's limit and word on TURN, a suspension; stays
//! relay:{records}:words-epoch         string  tells whether the words were ever lost (`words.rs`); stays
//! relay:{records}:revocations         hash    instance -> JSON of its entry; stays
//! relay:{records}:changes             stream  what the replicas' memories have to follow (`changes.rs`)
//! relay:{records}:...                         ids in order, what lapses when, invites, groups, secrets
//! ```
//!
//! Each change is one script or one command, so it happens as a whole or not at all, whatever runs beside it. All keys
//! share one hash tag: an enrollment touches an invite, a group and a record, and they must be in one slot of a
//! cluster. One shard then carries the records; it does tens of thousands of these a second, and sessions, limits
//! and outcomes, which are the traffic, are spread.
//!
//! Called by `auth`, the instances' actors and `app` (`changes.rs`). Times come from the caller, as in every store.
//!
//! Invariant: no key is without an end but the operator's words, suspensions and revocations, and the order of the ids
//! that have them.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use redis::FromRedisValue;
use sovereign_relay_actors::ports::{InstanceStore, Standing, StoreError, Suspension};
use sovereign_relay_protocol::{
    id::InstanceId,
    limits::{UNUSED_RECORD_DAYS, USED_RECORD_DAYS},
    time::UnixMillis,
};

mod changes;
mod invites;
mod keys;
mod pages;
mod purge;
mod revocations;
mod rows;
mod scripts;
#[cfg(test)]
mod tests;
mod unreadable;
mod words;

pub use changes::{Beat, Change, Changes, Position};

use self::{
    keys::Keys,
    rows::{record, standing},
    scripts::{Call, Scripts},
    unreadable::Unreadable,
    words::Words,
};
use super::connection::Redis;
use crate::store::{
    Enrolled, GROUP_MILLIS, Invite, NewEnrollment, Purged, Record, Store, Swap,
    revocation::{Entry, Kid},
};

const DAY_MILLIS: u64 = 24 * 3600 * 1000;
const UNUSED_MILLIS: u64 = UNUSED_RECORD_DAYS * DAY_MILLIS;
const USED_MILLIS: u64 = USED_RECORD_DAYS * DAY_MILLIS;
/// The indexes end after the longest-lived record in them.
const INDEX_MILLIS: u64 = USED_MILLIS + DAY_MILLIS;

/// The store of replicas. Clones are the same one.
#[derive(Clone)]
pub struct RedisRecords {
    redis: Redis,
    scripts: &'static Scripts,
    keys: Keys,
    words: Arc<Words>,
    unreadable: Arc<Unreadable>,
    /// Why the last beat failed, if it did.
    fault: Arc<ArcSwapOption<StoreError>>,
}

impl RedisRecords {
    /// Everything in the Redis behind this connection.
    pub(crate) fn new(redis: Redis) -> Self {
        Self {
            redis,
            scripts: Scripts::get(),
            keys: Keys,
            words: Arc::default(),
            unreadable: Arc::default(),
            fault: Arc::default(),
        }
    }

    async fn call<T: FromRedisValue>(&self, call: Call) -> Result<T, StoreError> {
        self.redis.run(&call.into_invocation()).await
    }

    async fn read(&self, instances: &[InstanceId]) -> Result<Vec<Record>, StoreError> {
        let mut call = Call::new(&self.scripts.read);
        for instance in instances {
            call.key(self.keys.record(*instance));
            call.key(self.keys.word(*instance));
        }
        let rows: Vec<Vec<HashMap<String, String>>> = self.call(call).await?;
        rows.into_iter()
            .zip(instances)
            .map(|(row, instance)| record(*instance, row))
            .collect()
    }

    async fn find(&self, instance: InstanceId) -> Result<Option<Record>, StoreError> {
        let found = self.read(&[instance]).await?.pop();
        Ok(found.filter(|record| *record != Record::bare(instance)))
    }

    async fn write_enrollment(&self, new: NewEnrollment) -> Result<Enrolled, StoreError> {
        let mut call = Call::new(&self.scripts.enroll);
        call.key(self.keys.record(new.instance));
        call.key(self.keys.ids());
        call.key(self.keys.lapses());
        call.key(self.keys.groups());
        call.key(self.keys.group_ends());
        call.key(self.keys.invites());
        call.key(self.keys.invite_times());
        call.text(new.instance);
        call.text(new.at.0);
        call.text(format!("{:016x}", new.address));
        call.text(new.fresh_group);
        call.text(GROUP_MILLIS);
        call.text(UNUSED_MILLIS);
        call.text(INDEX_MILLIS);
        call.text(new.invite.map(invites::member).unwrap_or_default());
        for (field, value) in [("name", &new.name), ("contact", &new.contact)] {
            if let Some(value) = value {
                call.text(field);
                call.text(value.expose());
            }
        }
        let group: Option<u64> = self.call(call).await?;
        Ok(group.map_or(Enrolled::InviteRefused, |group| Enrolled::Made { group }))
    }

    async fn write_use(&self, instance: InstanceId, sent: u64, at: UnixMillis) -> Result<(), StoreError> {
        let mut call = Call::new(&self.scripts.note_use);
        call.key(self.keys.record(instance));
        call.key(self.keys.ids());
        call.key(self.keys.lapses());
        call.text(instance);
        call.text(sent);
        call.text(at.0);
        call.text(USED_MILLIS);
        call.text(INDEX_MILLIS);
        self.call(call).await
    }

    /// One word about an instance; no values take it back.
    async fn say(&self, instance: InstanceId, word: &str, values: Vec<String>) -> Result<(), StoreError> {
        let mut call = Call::new(&self.scripts.say);
        call.key(self.keys.word(instance));
        call.key(self.keys.word_ids());
        call.key(self.keys.suspension_ends());
        call.key(self.keys.changes());
        call.text(instance);
        changes::log_bounds(&mut call);
        call.text(word);
        values.into_iter().for_each(|value| call.text(value));
        self.call(call).await
    }

    /// Does it on a copy, so that the future lives by itself.
    fn run<T, F>(&self, work: impl FnOnce(Self) -> F) -> BoxFuture<'static, Result<T, StoreError>>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        Box::pin(work(self.clone()))
    }
}

/// `until or ''`, reason.
fn suspended(suspension: Suspension) -> Vec<String> {
    let until = suspension.until.map(|until| until.0.to_string());
    vec![until.unwrap_or_default(), suspension.reason]
}

impl InstanceStore for RedisRecords {
    fn standing(&self, instance: InstanceId) -> BoxFuture<'static, Result<Option<Standing>, StoreError>> {
        self.run(async move |store: Self| match store.find(instance).await {
            Ok(found) => Ok(found.map(standing)),
            // What the operator said holds while Redis is away, as far as it is known.
            Err(error) => store
                .words
                .get(instance)
                .map(|known| Some(standing(known)))
                .ok_or(error),
        })
    }

    fn note_use(
        &self,
        instance: InstanceId,
        sent: u64,
        at: UnixMillis,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.run(async move |store: Self| store.write_use(instance, sent, at).await)
    }

    fn suspend(
        &self,
        instance: InstanceId,
        suspension: Suspension,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.run(async move |store: Self| store.say(instance, "policy", suspended(suspension)).await)
    }
}

impl Store for RedisRecords {
    fn enroll(&self, new: NewEnrollment) -> BoxFuture<'static, Result<Enrolled, StoreError>> {
        self.run(async move |store: Self| store.write_enrollment(new).await)
    }

    fn record(&self, instance: InstanceId) -> BoxFuture<'static, Result<Option<Record>, StoreError>> {
        self.run(async move |store: Self| store.find(instance).await)
    }

    fn records(
        &self,
        after: Option<InstanceId>,
        limit: usize,
    ) -> BoxFuture<'static, Result<Vec<Record>, StoreError>> {
        self.run(async move |store: Self| store.page(after, limit).await)
    }

    fn set_suspension(
        &self,
        instance: InstanceId,
        suspension: Option<Suspension>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let values = suspension.map(suspended).unwrap_or_default();
        self.run(async move |store: Self| store.say(instance, "suspension", values).await)
    }

    fn set_limit(
        &self,
        instance: InstanceId,
        per_minute: Option<u32>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let values = per_minute.iter().map(ToString::to_string).collect();
        self.run(async move |store: Self| store.say(instance, rows::PER_MINUTE, values).await)
    }

    fn set_turn(
        &self,
        instance: InstanceId,
        turn: Option<bool>,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let values = turn.iter().map(ToString::to_string).collect();
        self.run(async move |store: Self| store.say(instance, rows::TURN, values).await)
    }

    fn revocations(&self) -> BoxFuture<'static, Result<Vec<(InstanceId, Entry)>, StoreError>> {
        self.run(async move |store: Self| store.list_revocations().await)
    }

    fn join_revocations(
        &self,
        entries: Vec<(InstanceId, Entry)>,
        erase: bool,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        self.run(async move |store: Self| store.join(entries, erase).await)
    }

    fn swap_revocation(
        &self,
        instance: InstanceId,
        expected: Option<Entry>,
        new: Entry,
    ) -> BoxFuture<'static, Result<Swap, StoreError>> {
        self.run(async move |store: Self| store.swap(instance, expected, new).await)
    }

    fn add_invite(&self, invite: Invite) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.run(async move |store: Self| store.keep_invite(invite).await)
    }

    fn invites(&self, now: UnixMillis) -> BoxFuture<'static, Result<Vec<Invite>, StoreError>> {
        self.run(async move |store: Self| store.list_invites(now).await)
    }

    fn purge(&self, now: UnixMillis, configured: Vec<Kid>) -> BoxFuture<'static, Result<Purged, StoreError>> {
        self.run(async move |store: Self| store.purge_step(now, configured).await)
    }

    fn is_unreadable(&self, instance: InstanceId) -> bool {
        self.unreadable.has(instance)
    }

    fn fault(&self) -> Option<StoreError> {
        if !self.redis.is_up() {
            return Some(StoreError("redis is not connected".to_owned()));
        }
        self.fault.load().as_deref().cloned()
    }
}
