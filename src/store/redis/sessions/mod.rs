//! Sessions in Redis: any replica serves any peer.
//!
//! Each operation is one script (`../scripts`), atomic and on the server's time; the rules are those of
//! `actors/src/session/record.rs`, checked by the same contract tests. All keys of a session are in one hash slot, and
//! none outlives it:
//!
//! | key | what |
//! |---|---|
//! | `relay:session:{id}` | the record, a hash |
//! | `relay:mail:{id}:a`, `:b` | what waits for a slot, a list |
//! | `relay:sessions:{instance}` | its live sessions by their ends, a sorted set |
//! | `relay:{replicas}:heard`, `:waiting` | when replicas were heard of, and the bytes that each let wait |
//!
//! What one replica does to a session that has a connection on another is published to that one by the script itself
//! ([`wake`]); [`replica`] hears it. Published news can be lost, so they are hints only: what matters is read again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use futures_util::future::{BoxFuture, FutureExt as _};
use redis::{Script, ScriptInvocation, Value};
use sovereign_relay_actors::{
    ports::{Clock, Entropy, StoreError},
    session::{
        port::{
            Appended, Bind, BindRefusal, Bound, Creation, Departure, Gone, NewSession, Page, Presence,
            SessionStore, Trimmed,
        },
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
use tokio::sync::Semaphore;

mod ledger;
mod lives;
mod messages;
mod replica;
mod reply;
mod scripts;
mod slots;
#[cfg(test)]
mod tests;
mod wake;

pub use replica::Local;

use super::{connection::Redis, url::RedisUrl};
use crate::store::sessions::SessionBounds;
use ledger::Ledger;
use reply::Reply;
use scripts::{CHANNEL, Scripts};

/// Numbers in scripts are exact up to here (IEEE 754); nothing real comes near.
const EXACT: u64 = 1 << 53;

/// All sessions, as this replica reaches them. Clones are the same.
#[derive(Clone)]
pub struct RedisSessions(Arc<Shared>);

struct Shared {
    redis: Redis,
    scripts: Scripts,
    /// Names this replica until it ends.
    replica: String,
    rules: SessionRules,
    bounds: SessionBounds,
    clock: Arc<dyn Clock>,
    ledger: Ledger,
    /// Whether the others know of this replica. Before that it takes no slot: nobody would notice its death.
    is_known: AtomicBool,
    /// When this replica last said that it lives, in milliseconds of its own clock.
    known_at: AtomicU64,
    /// The slots that connections of this replica have.
    holdings: DashMap<(SessionId, Slot), Holding>,
    /// Slots elsewhere that something waits for, and for how many seconds they have been known.
    unconfirmed: DashMap<(SessionId, Slot), u32>,
    /// Replicas that died, and how long ago they were heard of, as scripts read it.
    dead: ArcSwap<String>,
    /// Removals that wait until connections elsewhere are silent.
    removals: DashMap<u64, Arc<Semaphore>>,
    requests: AtomicU64,
}

#[derive(Clone, Copy)]
struct Holding {
    epoch: u64,
    instance: InstanceId,
    ends: Duration,
    /// The first message that was not acknowledged.
    next: u64,
}

impl RedisSessions {
    /// Nothing is reachable before [`RedisSessions::run`].
    pub fn new(
        url: RedisUrl,
        bounds: SessionBounds,
        rules: SessionRules,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
    ) -> Self {
        let mut name = [0; 8];
        entropy.fill(&mut name);
        let replica = format!("{:016x}", u64::from_be_bytes(name));
        Self(Arc::new(Shared {
            redis: Redis::new(url, format!("{CHANNEL}{replica}")),
            scripts: Scripts::new(),
            replica,
            rules,
            bounds,
            clock,
            ledger: Ledger::new(bounds),
            is_known: AtomicBool::new(false),
            known_at: AtomicU64::new(0),
            holdings: DashMap::new(),
            unconfirmed: DashMap::new(),
            dead: ArcSwap::default(),
            removals: DashMap::new(),
            requests: AtomicU64::new(0),
        }))
    }

    /// Whether Redis is there.
    pub fn is_up(&self) -> bool {
        self.0.redis.is_up()
    }

    /// Slots that connections of this replica have.
    pub fn holdings(&self) -> usize {
        self.0.holdings.len()
    }

    /// Bytes in the mailboxes of all replicas.
    pub fn mailbox_bytes(&self) -> usize {
        self.0.ledger.total()
    }
}

impl Shared {
    async fn ask(&self, script: &ScriptInvocation<'_>) -> Result<(String, Reply), StoreError> {
        let mut reply = Reply::new(self.redis.run::<Vec<Value>>(script).await?);
        Ok((reply.word()?, reply))
    }

    fn ends_in(&self, life: Duration) -> Duration {
        self.clock.now().mono.saturating_add(life)
    }

    fn dead(&self) -> String {
        self.dead.load().as_ref().clone()
    }

    fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }
}

/// A script, with the keys of a session.
fn on(script: &Script, id: SessionId) -> ScriptInvocation<'_> {
    let mut invocation = script.key(format!("relay:session:{{{id}}}"));
    for slot in Slot::BOTH {
        invocation.key(format!("relay:mail:{{{id}}}:{}", slot.as_str()));
    }
    invocation
}

fn sessions_of(instance: InstanceId) -> String {
    format!("relay:sessions:{{{instance}}}")
}

fn exact(number: u64) -> u64 {
    number.min(EXACT)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(EXACT)
}

impl SessionStore for RedisSessions {
    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<Creation, StoreError>> {
        let shared = self.0.clone();
        async move { shared.create(new).await }.boxed()
    }

    fn lives(&self, id: SessionId) -> BoxFuture<'static, Result<bool, StoreError>> {
        let shared = self.0.clone();
        async move { shared.lives(id).await }.boxed()
    }

    fn view(
        &self,
        id: SessionId,
        instance: InstanceId,
    ) -> BoxFuture<'static, Result<Option<SessionView>, StoreError>> {
        let shared = self.0.clone();
        async move { shared.view(id, instance).await }.boxed()
    }

    fn remove(&self, id: SessionId, instance: InstanceId) -> BoxFuture<'static, Result<bool, StoreError>> {
        let shared = self.0.clone();
        async move { shared.remove(id, instance).await }.boxed()
    }

    fn bind(&self, id: SessionId, bind: Bind) -> BoxFuture<'static, Result<Bound, BindRefusal>> {
        let shared = self.0.clone();
        async move { shared.bind(id, bind).await }.boxed()
    }

    fn append(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        n: u64,
        content: Opaque,
    ) -> BoxFuture<'static, Result<Appended, Gone>> {
        let shared = self.0.clone();
        async move { shared.append(id, slot, epoch, n, content).await }.boxed()
    }

    fn trim(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        seq: u64,
    ) -> BoxFuture<'static, Result<Trimmed, Gone>> {
        let shared = self.0.clone();
        async move { shared.trim(id, slot, epoch, seq).await }.boxed()
    }

    fn read(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Page, Gone>> {
        let shared = self.0.clone();
        async move { shared.read(id, slot, epoch, after, bytes).await }.boxed()
    }

    fn peer(&self, id: SessionId, slot: Slot) -> BoxFuture<'static, Result<Presence, Gone>> {
        let shared = self.0.clone();
        async move { shared.peer(id, slot).await }.boxed()
    }

    fn unbind(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        departure: Departure,
    ) -> BoxFuture<'static, Result<(), Gone>> {
        let shared = self.0.clone();
        async move { shared.unbind(id, slot, epoch, departure).await }.boxed()
    }
}
