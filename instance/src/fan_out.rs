//! Tells a user's devices and browsers of something, whatever becomes of any one of them.
//!
//! ```text
//! send:  devices and browsers, read once -> seal (each its own) -> outbox -> deliver, lane by lane -> settle and log
//! run:   what is due, lane by lane ----------------------------------------> deliver -> settle and log
//! ```
//!
//! Hosts call [`FanOut::send`] and own [`FanOut::run`], the worker that sends what could not be sent at once. A lane is
//! one relay, or all push services: each is on its own, so that one that doesn't answer is in nobody's way.
//!
//! Invariants: nothing is sent that is not in the outbox, so that whatever dies, the worker sends the rest; a repeat
//! says the same under the same key, and a relay remembers that key for 10 minutes, after which a push whose answer was
//! lost may come twice; content, tokens and keys are in the outbox alone, and in no log. A caller who stops waiting for
//! [`FanOut::send`] while it still writes has told nobody; after that, what is not done is the worker's.

mod deliver;
mod relay_lane;
mod report;
mod seal;
mod settle;
pub(crate) mod verdict;
mod web_lane;
mod worker;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use futures_util::future::{join, join_all};
use sovereign_relay_protocol::redacted::Redacted;
use thiserror::Error;
use tokio::sync::{Notify, OnceCell};

use self::{
    deliver::{CLAIM_RELAY, LEASE_SECONDS},
    seal::{Plan, Sealed, Target},
    verdict::LONGEST_PAUSE_SECONDS,
};
pub use self::{
    report::Report,
    web_lane::{Browsers, Posted},
};
use crate::{
    clock::Clock,
    config::Limits,
    entropy::random_bytes,
    notification::{InvalidNotification, Notification},
    relay::Relays,
    store::{Channel, Device, Lane, LogEntry, OUTBOX_ROWS, OutboxRow, Outcome, Store, StoreError},
    user::User,
};

/// Rows that are sealed and written at a time: some 2 MB.
const SEAL_AT_ONCE: usize = 500;
/// Name of the setting by which tags are named to others: [`Notification::tag`].
const COLLAPSE_KEY_SETTING: &str = "collapse_key";
/// What is worth something for less, in seconds, is still worth sending to so many that it takes a while.
const SHORTEST_IN_CHUNKS_SECONDS: u64 = 60;

/// Sends. Make one for the whole program, and give its worker a task.
pub struct FanOut {
    store: Store,
    relays: Arc<Relays>,
    browsers: Arc<dyn Browsers>,
    limits: Limits,
    clock: Clock,
    pauses: Pauses,
    /// The same for all processes on the database; read once.
    collapse_key: OnceCell<Redacted>,
    /// Tells the worker that something waits.
    waiting: Notify,
    /// Set when the worker was told to stop.
    stopping: AtomicBool,
}

/// The notification was not sent to anyone.
#[derive(Debug, Error)]
pub enum FanOutError {
    /// It can't be sent at all.
    #[error(transparent)]
    Invalid(#[from] InvalidNotification),
    /// The database; [`StoreError::OutboxFull`] when too much waits already.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl FanOut {
    /// Sends to devices through `relays` and to browsers through `browsers`.
    pub fn new(store: Store, relays: Arc<Relays>, browsers: Arc<dyn Browsers>, limits: Limits) -> Self {
        Self {
            store,
            relays,
            browsers,
            limits,
            clock: Clock::system(),
            pauses: Pauses::default(),
            collapse_key: OnceCell::new(),
            waiting: Notify::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// With another clock than the system's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Tells all of a user's devices and browsers. What can't be delivered now is in the outbox when this returns, and
    /// the worker's. An error means that nobody was told anything.
    pub async fn send(&self, user: &User, notification: &Notification) -> Result<Report, FanOutError> {
        let now = self.clock.seconds();
        let plan = Plan::new(user, notification, now, self.collapse_key().await?)?;
        let devices = self.store.devices_of(user).await?;
        let browsers = self.store.subscriptions_of(user).await?;
        let mut report = Report::new(plan.notification_id);
        let devices = if self.relays.current().is_some() {
            devices
        } else {
            self.drop_devices(&plan, &devices, &mut report).await?;
            Vec::new()
        };
        let fits = devices.len() <= CLAIM_RELAY && browsers.len() <= self.claim_web();
        let targets = devices.into_iter().map(Target::Device);
        let targets: Vec<Target> = targets.chain(browsers.into_iter().map(Target::Browser)).collect();
        if targets.is_empty() {
            return Ok(report);
        }
        let written = if fits {
            self.send_at_once(plan, targets, &mut report).await
        } else {
            self.send_in_chunks(plan, targets, &mut report).await
        };
        written.map(|()| report)
    }

    async fn collapse_key(&self) -> Result<&Redacted, StoreError> {
        let kept = || {
            let new = Redacted::new(URL_SAFE_NO_PAD.encode(random_bytes::<32>()));
            async move { self.store.setting_or(COLLAPSE_KEY_SETTING, &new).await }
        };
        self.collapse_key.get_or_try_init(kept).await
    }

    /// Few enough to be held in memory: written with a lease, sent, settled.
    async fn send_at_once(
        &self,
        plan: Plan,
        targets: Vec<Target>,
        report: &mut Report,
    ) -> Result<(), FanOutError> {
        let sealed = seal::seal(&plan, targets, Arc::clone(&self.browsers)).await;
        self.note_unsealed(&sealed.failed, report).await?;
        let mut rows = sealed.rows;
        let lease = plan.now + LEASE_SECONDS;
        for row in &mut rows {
            (row.attempts, row.first_attempt_at) = (1, Some(plan.now));
            (row.next_attempt_at, row.leased_until) = (lease, lease);
        }
        let written = self.store.enqueue_held(OUTBOX_ROWS, &rows, plan.now).await;
        let moved = self.enqueue(written, &rows).await?;
        rows.retain(|row| !moved.contains(&row.id));
        report.dropped += moved.len();
        let mut lanes: HashMap<Lane, Vec<OutboxRow>> = HashMap::new();
        for row in rows {
            lanes.entry(row.lane()).or_default().push(row);
        }
        let lanes = lanes
            .into_iter()
            .map(|(lane, rows)| async move { self.deliver(&lane, rows).await });
        for delivered in join_all(lanes).await {
            report.add(&delivered);
        }
        Ok(())
    }

    /// Too many: sealed and staged chunk by chunk, one sealed while another is written; published in one step, and read
    /// back lane by lane.
    async fn send_in_chunks(
        &self,
        mut plan: Plan,
        targets: Vec<Target>,
        report: &mut Report,
    ) -> Result<(), FanOutError> {
        plan.ttl_until = plan.ttl_until.max(plan.now + SHORTEST_IN_CHUNKS_SECONDS);
        let lanes: BTreeSet<Lane> = targets.iter().map(Target::lane).collect();
        let mut targets = targets.into_iter();
        let mut next = self.seal_some(&plan, &mut targets).await;
        let mut all_staged = 0;
        while let Some(sealed) = next {
            all_staged += sealed.rows.len();
            let staged = self.stage(&plan, sealed, report);
            let (staged, following) = join(staged, self.seal_some(&plan, &mut targets)).await;
            staged?;
            next = following;
        }
        let published = self.store.publish(plan.notification_id, plan.now).await?;
        let published = usize::try_from(published).unwrap_or(0);
        // Their devices have gone meanwhile, or it took so long that the worker took it for dead.
        report.dropped += all_staged.saturating_sub(published);
        let lanes = lanes
            .iter()
            .map(|lane| self.drain(lane, Some(plan.notification_id)));
        let mut met = Report::new(plan.notification_id);
        for delivered in join_all(lanes).await {
            met.merge(&delivered);
        }
        // What is not final is in the outbox, or in another process's hands; of it some may have been tried twice.
        met.waiting = published.saturating_sub(met.targets() - met.waiting);
        report.merge(&met);
        self.waiting.notify_one();
        Ok(())
    }

    async fn seal_some(&self, plan: &Plan, targets: &mut impl Iterator<Item = Target>) -> Option<Sealed> {
        let chunk: Vec<Target> = targets.take(SEAL_AT_ONCE).collect();
        if chunk.is_empty() {
            return None;
        }
        Some(seal::seal(plan, chunk, Arc::clone(&self.browsers)).await)
    }

    async fn stage(&self, plan: &Plan, sealed: Sealed, report: &mut Report) -> Result<(), FanOutError> {
        self.note_unsealed(&sealed.failed, report).await?;
        let mut rows = sealed.rows;
        let staged = self.store.stage(OUTBOX_ROWS, &mut rows, plan.now).await;
        self.enqueue(staged, &rows).await
    }

    /// Logs it where the outbox had no room.
    async fn enqueue<T>(&self, written: Result<T, StoreError>, rows: &[OutboxRow]) -> Result<T, FanOutError> {
        match written {
            Err(StoreError::OutboxFull) => {
                let now = self.clock.seconds();
                let entry = |row| LogEntry::of(row, Outcome::Dropped, "outbox_full".into(), now);
                let entries: Vec<_> = rows.iter().map(entry).collect();
                self.store.record(&entries).await?;
                Err(StoreError::OutboxFull.into())
            }
            other => Ok(other?),
        }
    }

    async fn note_unsealed(&self, failed: &[LogEntry], report: &mut Report) -> Result<(), StoreError> {
        if failed.is_empty() {
            return Ok(());
        }
        report.failed += failed.len();
        self.store.record(failed).await
    }

    /// The relay is off: the devices are told nothing, and the log says why.
    async fn drop_devices(
        &self,
        plan: &Plan,
        devices: &[Device],
        report: &mut Report,
    ) -> Result<(), StoreError> {
        for chunk in devices.chunks(SEAL_AT_ONCE) {
            let entry = |device: &Device| LogEntry {
                notification_id: plan.notification_id,
                user: device.user.clone(),
                channel: Channel::Relay,
                target_id: device.id,
                platform: Some(device.platform),
                relay_host: None,
                outcome: Outcome::Dropped,
                reason: "relay_off".into(),
                at: plan.now,
                attempt: 0,
            };
            let entries: Vec<_> = chunk.iter().map(entry).collect();
            self.store.record(&entries).await?;
        }
        report.dropped += devices.len();
        Ok(())
    }
}

/// Lanes in which nothing is sent for a while, because the other side has said so. As many as there are lanes.
#[derive(Default)]
struct Pauses(Mutex<HashMap<Lane, u64>>);

impl Pauses {
    /// Until when, in Unix seconds, if that is not over. A pause that would be longer than any was begun while the clock
    /// was ahead.
    fn until(&self, lane: &Lane, now: u64) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = now.saturating_add(LONGEST_PAUSE_SECONDS);
        all.retain(|_, until| *until > now && *until <= longest);
        all.get(lane).copied()
    }

    fn set(&self, lane: &Lane, until: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = all.entry(lane.clone()).or_insert(until);
        *longest = until.max(*longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_that_a_clock_ahead_began_ends_with_the_clock_s_mistake() {
        let pauses = Pauses::default();
        let lane = Lane::Relay("https://relay.example".to_owned());
        pauses.set(&lane, 1_000_060);
        assert_eq!(pauses.until(&lane, 1_000_000), Some(1_000_060));
        assert_eq!(pauses.until(&lane, 1_000_060), None);
        pauses.set(&lane, 1_000_060);
        assert_eq!(pauses.until(&lane, 1_000), None);
    }
}
