//! What this replica does for the others, and hears of them.
//!
//! ```text
//! every second: renew -> this replica lives, so many bytes wait; which ones are dead, what do the others let wait
//! published to its channel: wake -> the registry's actors look at the store
//! connected again, or a replica died -> every actor looks
//! ```
//!
//! A replica that was not heard of for [`LEASE`] is dead for the others: its connections are told to be away. While
//! Redis can't be reached nobody is heard of, so for as long after that no one is thought dead.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use redis::cmd;
use sovereign_relay_actors::{
    ports::StoreError,
    session::{port::News, registry::Sessions},
};
use sovereign_relay_protocol::{
    limits::SESSION_SECONDS_MAX,
    signal::{
        close::CloseCode,
        id::{SessionId, Slot},
    },
};
use tokio::{
    sync::{Semaphore, mpsc},
    time::{MissedTickBehavior, interval, timeout},
};
use tracing::{debug, warn};

use super::{CHANNEL, RedisSessions, Shared, on, wake::Wake};
use crate::store::redis::connection::{EVENTS, Event};

/// How often a replica says that it lives.
const BEAT: Duration = Duration::from_secs(1);
/// A replica that was not heard of for so long is dead.
const LEASE: Duration = Duration::from_secs(5);
/// How long a replica that was heard of writes messages: it falls silent a beat before its lease lapses.
const WRITES: Duration = LEASE.saturating_sub(BEAT);
/// Beats after which a receiver elsewhere is woken again, while something waits for it.
const WAKE_AGAIN: u32 = 2;
/// Receivers woken again at the same time.
const WAKES: usize = 32;
/// Removals under way elsewhere whose connections here are falling silent. More are not answered, and their replicas
/// wait until this one's lease would have lapsed.
const ENDINGS: usize = 1024;

/// The connections of this replica.
pub trait Local: Send + Sync {
    /// Takes in what others did.
    fn hear(&self, news: News);
    /// From that moment on, until it is told anew, no message that was read before is written.
    fn write_until(&self, moment: Duration);
    /// Ends the connections of a session that was removed; done when they write no message any more.
    fn end(&self, id: SessionId) -> BoxFuture<'_, ()>;
}

impl Local for Sessions {
    fn hear(&self, news: News) {
        Self::hear(self, news);
    }

    fn write_until(&self, moment: Duration) {
        Self::write_until(self, moment);
    }

    fn end(&self, id: SessionId) -> BoxFuture<'_, ()> {
        Box::pin(Self::end(self, id, CloseCode::SessionOver, None))
    }
}

impl RedisSessions {
    /// Keeps the connection, lives, and listens. Never returns; the caller drops it.
    pub async fn run(&self, local: &dyn Local) {
        let (events, heard) = mpsc::channel(EVENTS);
        // Nobody has heard of this replica yet.
        local.write_until(Duration::ZERO);
        tokio::join!(
            self.0.redis.keep(events),
            self.0.beat(local),
            self.0.listen(heard, local)
        );
    }
}

impl Shared {
    async fn listen(&self, mut events: mpsc::Receiver<Event>, local: &dyn Local) {
        let mut endings = FuturesUnordered::new();
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                Some(()) = endings.next(), if !endings.is_empty() => continue,
            };
            match event {
                None => return,
                Some(Event::Connected) => {
                    // After a long outage nothing may be written before the others hear of this replica again.
                    if self.is_fenced() && self.renew().await.is_ok() {
                        local.write_until(self.writes_until());
                    }
                    local.hear(News::Missed);
                }
                Some(Event::Message(text)) => match Wake::parse(&text) {
                    Some(Wake::Ping) => {}
                    Some(Wake::News(news)) => local.hear(news),
                    Some(Wake::Over { id, by, request }) if endings.len() < ENDINGS => {
                        endings.push(self.end(local, id, by, request));
                    }
                    Some(Wake::Over { .. }) => warn!("too many sessions are removed at the same time"),
                    Some(Wake::Silent { request }) => self.silent(request),
                    None => debug!("a message of an unknown form was published"),
                },
            }
        }
    }

    async fn end(&self, local: &dyn Local, id: SessionId, by: String, request: u64) {
        local.end(id).await;
        let mut command = cmd("PUBLISH");
        command.arg(format!("{CHANNEL}{by}")).arg(Wake::silent(request));
        // Whoever waits stops waiting by itself.
        let _ = self.redis.send::<()>(&command).await;
    }

    fn silent(&self, request: u64) {
        if let Some(removal) = self.removals.get(&request) {
            removal.add_permits(1);
        }
    }

    async fn beat(&self, local: &dyn Local) {
        let mut beats = interval(BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut steady_since = None;
        loop {
            beats.tick().await;
            let now = self.clock.now().mono;
            match self.renew().await {
                Ok(dead) => {
                    local.write_until(self.writes_until());
                    let steady = *steady_since.get_or_insert(now);
                    if now.saturating_sub(steady) >= LEASE {
                        self.bury(dead, local);
                    }
                }
                Err(error) => {
                    debug!(%error, "this replica could not say that it lives");
                    steady_since = None;
                }
            }
            self.ledger.clean(now);
            self.holdings.retain(|_, holding| holding.ends > now);
            self.wake_again().await;
        }
    }

    /// Nothing may be written here once others may think this replica dead.
    fn writes_until(&self) -> Duration {
        Duration::from_millis(self.known_at.load(Ordering::Relaxed)).saturating_add(WRITES)
    }

    fn is_fenced(&self) -> bool {
        self.clock.now().mono >= self.writes_until()
    }

    /// Says that this replica lives, and hears of the others: those that are dead, and how long ago they weren't.
    pub(super) async fn renew(&self) -> Result<Vec<(String, String)>, StoreError> {
        let began = super::millis(self.clock.now().mono);
        let mut script = self.scripts.renew.key("relay:{replicas}:heard");
        script.key("relay:{replicas}:waiting");
        let forgotten = Duration::from_secs(u64::from(SESSION_SECONDS_MAX)) + LEASE;
        script
            .arg(&self.replica)
            .arg(self.ledger.report())
            .arg(super::millis(LEASE))
            .arg(super::millis(forgotten));
        let (dead, waiting): (Vec<(String, String)>, Vec<String>) = self.redis.run(&script).await?;
        self.is_known.store(true, Ordering::Relaxed);
        // Two that were under way at the same time may be answered in any order.
        self.known_at.fetch_max(began, Ordering::Relaxed);
        self.ledger.hear(waiting.iter().map(String::as_str));
        Ok(dead)
    }

    /// Who is dead changes what peers are told.
    pub(super) fn bury(&self, dead: Vec<(String, String)>, local: &dyn Local) {
        let before = self.dead.load();
        let known = before
            .split_terminator(',')
            .filter_map(|part| part.split_once(':'));
        let is_same = known
            .map(|(replica, _)| replica)
            .eq(dead.iter().map(|(replica, _)| replica.as_str()));
        let parts = dead.iter().map(|(replica, age)| format!("{replica}:{age},"));
        self.dead.store(Arc::new(parts.collect()));
        if !is_same {
            local.hear(News::Missed);
        }
    }

    /// Something published can be lost on its way: a receiver is woken until it took everything, or is gone.
    pub(super) async fn wake_again(&self) {
        let mut due = Vec::new();
        for mut entry in self.unconfirmed.iter_mut() {
            *entry += 1;
            if entry.is_multiple_of(WAKE_AGAIN) {
                due.push(*entry.key());
            }
        }
        let wake = async |receiver| self.wake(receiver).await;
        stream::iter(due).for_each_concurrent(WAKES, wake).await;
    }

    /// Forgotten before it is asked, so that what is stored while the answer is on its way is known afterwards.
    async fn wake(&self, receiver @ (id, slot): (SessionId, Slot)) {
        let Some((_, seconds)) = self.unconfirmed.remove(&receiver) else {
            return;
        };
        let mut script = on(&self.scripts.wake, id);
        script.arg(slot.as_str()).arg(&self.replica).arg(id.to_string());
        if !matches!(self.redis.run::<bool>(&script).await, Ok(false)) {
            self.unconfirmed.entry(receiver).or_insert(seconds);
        }
    }

    /// A removal that other replicas will answer.
    pub(super) fn begin_removal(&self) -> Removal<'_> {
        let request = self.next_request();
        let silent = Arc::new(Semaphore::new(0));
        self.removals.insert(request, silent.clone());
        Removal {
            shared: self,
            request,
            silent,
        }
    }
}

/// A session that is being removed. Dropped, nobody's answer is waited for.
pub(super) struct Removal<'a> {
    shared: &'a Shared,
    request: u64,
    silent: Arc<Semaphore>,
}

impl Removal<'_> {
    /// What the replicas that hold connections are told.
    pub(super) fn message(&self, id: SessionId) -> String {
        Wake::over(id, &self.shared.replica, self.request)
    }

    /// Waits until they write no message any more, or their leases have lapsed.
    pub(super) async fn silence(self, owners: [String; 2]) {
        let dead = self.shared.dead();
        let alive = |owner: &&String| {
            !owner.is_empty() && **owner != self.shared.replica && !dead.contains(owner.as_str())
        };
        let Ok(count) = u32::try_from(owners.iter().filter(alive).count()) else {
            return;
        };
        if timeout(LEASE, self.silent.acquire_many(count)).await.is_err() {
            warn!("a replica did not say that a removed session is silent there");
        }
    }
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.shared.removals.remove(&self.request);
    }
}
