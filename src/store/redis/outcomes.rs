//! The outcomes remembered for idempotency keys, shared by replicas, and the keys' pushes under way.
//!
//! ```text
//! relay:{outcome:<keyed hash>}   "?<replica>"  a push under way; ends a little after its deadline
//!                                JSON          its final outcome; ends after ten minutes
//!
//! get: own memory -> Redis: outcome -> it        nothing -> claimed for us, go on as the first
//!                           claim of another -> look again until it is an outcome, or gone: then it is ours;
//!                                               the claim of a replica that died is taken away from it
//! put: own memory, Redis (again, for a while, where it is away)
//! release (nothing final came of it): the claim goes
//! ```
//!
//! Only keyed hashes and answers are kept; neither names a device or an instance.
//!
//! Invariant: while Redis answers, at most one replica has a push under way for a key. Redis away: each replica goes by
//! its own memory, and a push waits for it no longer than [`PATIENCE`]. Whoever knows of a push under way elsewhere does
//! not take Redis' silence for its end.

use std::{
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::BoxFuture;
use redis::{Cmd, FromRedisValue, Script};
use serde::{Deserialize, Serialize};
use sovereign_relay_actors::{
    idempotency::{OutcomeMemory, REMEMBERED, Remembered},
    now::Now,
};
use sovereign_relay_protocol::push::PushAnswer;
use tokio::task::JoinSet;

use super::{connection::Redis, link::RedisLink, records::RedisRecords};
use crate::limit::EmbeddedOutcomes;

/// Longest that a push waits for one answer of Redis, before it and after. Longer than it waits for a token: a limit may
/// be judged locally meanwhile, but a push whose key nobody looked up may be one too many, and a claim that was not
/// replaced holds repeats up. Twice this is still a fraction of a push's deadline, and three times, which it is while a
/// second enrollment secret is configured, since each gives a push a name of its own that is looked up by itself.
const PATIENCE: Duration = Duration::from_millis(800);
/// How often a repeat looks whether the first one, at another replica, is over.
const LOOK: Duration = Duration::from_millis(50);
/// After every so many looks, whether that replica is alive.
const LOOKS: u32 = 10;
/// A replica that was not alive so many times in a row, two seconds, is dead: after an outage of Redis all are heard of
/// again within that.
const UNHEARD: u32 = 4;
/// A claim outlives the longest push by this, should nobody know that its replica died.
const CLAIM_SLACK: Duration = Duration::from_secs(2);
/// How long Redis is told an outcome again: a restart, a failover, or the new connection of a replica that was frozen.
const AGAIN_FOR: Duration = Duration::from_secs(120);
/// How often.
const AGAIN: Duration = Duration::from_millis(500);
/// Outcomes that are told again at the same time, a second of them on a busy replica. More are known here alone.
const UNTOLD: usize = 1024;

/// Outcomes in Redis, this replica's own memory in front.
#[derive(Clone)]
pub struct RedisOutcomes {
    inner: Arc<Inner>,
}

struct Inner {
    redis: Redis,
    records: RedisRecords,
    own: Arc<EmbeddedOutcomes>,
    /// Marks claims of this replica.
    claim: String,
    claim_time: Duration,
    /// Tells Redis again what it did not hear.
    untold: Mutex<JoinSet<()>>,
}

/// An outcome as it stands in Redis.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// The message's keyed hash in hexadecimal: JSON has no 128-bit numbers.
    message: String,
    answer: PushAnswer,
}

/// What stands at a key.
enum Found {
    Outcome(Remembered),
    Ours,
    /// The claim of another replica.
    Theirs(String),
    Away,
}

/// A push under way at another replica, as a repeat sees it.
#[derive(Default)]
struct First {
    /// How often its claim was there.
    looks: u32,
    /// How often in a row its replica was not alive.
    unheard: u32,
}

impl RedisOutcomes {
    /// Behind a link. `deadline`: of a push.
    pub fn open(link: &RedisLink, own: Arc<EmbeddedOutcomes>, deadline: Duration) -> Self {
        Self::new(link.redis().clone(), own, link.replica(), deadline)
    }

    /// `replica`: tells this one from the others.
    fn new(redis: Redis, own: Arc<EmbeddedOutcomes>, replica: &str, deadline: Duration) -> Self {
        Self {
            inner: Arc::new(Inner {
                records: RedisRecords::new(redis.clone()),
                redis,
                own,
                claim: format!("?{replica}"),
                claim_time: deadline + CLAIM_SLACK,
                untold: Mutex::default(),
            }),
        }
    }
}

impl OutcomeMemory for RedisOutcomes {
    fn get(&self, key: u128, now: Now) -> BoxFuture<'static, Option<Remembered>> {
        let (inner, own) = (self.inner.clone(), self.inner.own.get(key, now));
        Box::pin(async move {
            match own.await {
                Some(remembered) => Some(remembered),
                None => inner.recall(key, now).await,
            }
        })
    }

    fn put(&self, key: u128, outcome: Remembered, now: Now) -> BoxFuture<'static, ()> {
        let (inner, own) = (self.inner.clone(), self.inner.own.put(key, outcome.clone(), now));
        Box::pin(async move {
            own.await;
            inner.keep(key, &outcome).await;
        })
    }

    fn release(&self, key: u128) -> BoxFuture<'static, ()> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.release(key).await })
    }
}

impl Inner {
    async fn recall(&self, key: u128, now: Now) -> Option<Remembered> {
        let waiting = async {
            let mut first = First::default();
            loop {
                match self.look(key).await {
                    Found::Outcome(remembered) => {
                        self.own.put(key, remembered.clone(), now).await;
                        return Some(remembered);
                    }
                    Found::Ours => return None,
                    Found::Away if first.looks == 0 => return None,
                    Found::Away => {}
                    Found::Theirs(claim) => self.watch(key, claim, &mut first).await,
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        // A claim goes by then at the latest, whatever became of its replica.
        tokio::time::timeout(self.claim_time, waiting)
            .await
            .ok()
            .flatten()
    }

    /// Takes the claim of a replica that died away from it. What became of its push nobody knows, nor will.
    async fn watch(&self, key: u128, claim: String, first: &mut First) {
        first.looks += 1;
        if !first.looks.is_multiple_of(LOOKS) {
            return;
        }
        let replica = claim.trim_start_matches('?');
        let is_unheard = matches!(self.records.is_alive(replica).await, Ok(false));
        first.unheard = if is_unheard { first.unheard + 1 } else { 0 };
        if first.unheard >= UNHEARD {
            self.take_back(key, &claim).await;
        }
    }

    /// What stands there, and our claim where nothing did.
    async fn look(&self, key: u128) -> Found {
        let mut set = redis::cmd("SET");
        set.arg(name(key))
            .arg(&self.claim)
            .arg("NX")
            .arg("GET")
            .arg("PX")
            .arg(millis(self.claim_time));
        match self.ask::<Option<String>>(&set).await {
            None => Found::Away,
            Some(None) => Found::Ours,
            // It was ours before an answer got lost: within one replica nobody else asks for a key under way.
            Some(Some(text)) if text == self.claim => self.renew(key).await,
            Some(Some(text)) if text.starts_with('?') => Found::Theirs(text),
            // What a newer relay has written is not understood, and the push goes on.
            Some(Some(text)) => parse(&text).map_or(Found::Away, Found::Outcome),
        }
    }

    /// Our claim of an earlier push, for the whole time of this one.
    async fn renew(&self, key: u128) -> Found {
        let mut expire = redis::cmd("PEXPIRE");
        expire.arg(name(key)).arg(millis(self.claim_time));
        match self.ask::<bool>(&expire).await {
            Some(true) => Found::Ours,
            // It has ended meanwhile, which the next look finds.
            Some(false) => Found::Theirs(self.claim.clone()),
            None => Found::Away,
        }
    }

    async fn keep(&self, key: u128, outcome: &Remembered) {
        let stored = Stored {
            message: format!("{:032x}", outcome.message),
            answer: outcome.answer.clone(),
        };
        let Ok(text) = serde_json::to_string(&stored) else {
            return;
        };
        if !write(&self.redis, key, &text).await {
            self.keep_later(key, text);
        }
    }

    /// A repeat at another replica would push again.
    fn keep_later(&self, key: u128, text: String) {
        let redis = self.redis.clone();
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        while untold.try_join_next().is_some() {}
        if untold.len() >= UNTOLD {
            return;
        }
        untold.spawn(async move {
            let telling = async {
                tokio::time::sleep(AGAIN).await;
                while !write(&redis, key, &text).await {
                    tokio::time::sleep(AGAIN).await;
                }
            };
            // Where it never succeeds, other replicas don't know it.
            let _ = tokio::time::timeout(AGAIN_FOR, telling).await;
        });
    }

    async fn release(&self, key: u128) {
        self.take_back(key, &self.claim).await;
    }

    async fn take_back(&self, key: u128, claim: &str) {
        let mut call = RELEASE.prepare_invoke();
        call.key(name(key)).arg(claim);
        // Where it fails, the claim goes by itself.
        let _ = tokio::time::timeout(PATIENCE, self.redis.run::<()>(&call)).await;
    }

    /// `None`: no answer in time.
    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Option<T> {
        let answer = tokio::time::timeout(PATIENCE, self.redis.send(command)).await;
        answer.ok()?.ok()
    }
}

static KEEP: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("outcomes/keep.lua")));
static RELEASE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("outcomes/release.lua")));

/// Writes an outcome; whether Redis said in time that it has it.
async fn write(redis: &Redis, key: u128, text: &str) -> bool {
    let mut call = KEEP.prepare_invoke();
    call.key(name(key)).arg(text).arg(millis(REMEMBERED));
    let written = tokio::time::timeout(PATIENCE, redis.run::<()>(&call)).await;
    matches!(written, Ok(Ok(())))
}

fn parse(text: &str) -> Option<Remembered> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    Some(Remembered {
        message: u128::from_str_radix(&stored.message, 16).ok()?,
        answer: stored.answer,
    })
}

fn name(key: u128) -> String {
    format!("relay:{{outcome:{key:032x}}}")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
