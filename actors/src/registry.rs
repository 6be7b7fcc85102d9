//! Finds the actor of an instance, starts it, replaces it when it died.
//!
//! Called by `http` for every push and by the admin API when an instance's standing changed.
//!
//! ```text
//! push -> seat (instance -> generation, address) -> slot -> Ask -> ... -> Reply
//!                     ^ replaced when its actor panicked; gone when its actor was idle
//! ```
//!
//! The actors live on arbiters of their own, started with the registry and stopped last, so that none depends on
//! an HTTP worker. A push whose actor vanished is sent to the next one if nothing had begun, else it is answered 500:
//! it may have been delivered.
//!
//! Invariant: every push that was counted in is counted out, whatever becomes of caller, actor and provider; closing
//! waits for exactly that.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use actix::{Arbiter, dev::SendError};
use sovereign_relay_protocol::{
    id::InstanceId,
    push::{PushAnswer, Reason},
};
use tokio::sync::oneshot;
use tracing::{Span, error, warn};

mod config;
mod consult;
pub(crate) mod directory;
pub(crate) mod door;
pub(crate) mod slots;
pub(crate) mod tracker;

use config::Ports;
pub use config::{Lanes, RegistryConfig};
use directory::{Directory, Seat};
use slots::Slot;
use tracker::Tracked;

use crate::{
    arbiters::Arbiters,
    idempotency::OutcomeMemory,
    instance::{
        Close,
        kit::Kit,
        records::Refresh,
        state::SOON,
        work::{Ask, Outcome, Pending, Reply, fresh},
    },
    now::Now,
    ports::{Clock, Entropy, InstanceStore, SharedLimits},
    push::{Answered, Push, Refusal},
    wait::Limit,
};

/// How often a push looks for a living actor. A miss means that one was just dying, so the second try nearly always
/// finds another; an instance whose actors die faster than that is answered `overloaded`.
const TRIES: usize = 4;

/// For metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistrySnapshot {
    /// Actors alive.
    pub actors: usize,
    /// Pushes under way.
    pub in_flight: usize,
    /// Actors replaced after a panic.
    pub restarts: u64,
}

/// The instances' actors. Clones are the same registry.
#[derive(Clone)]
pub struct Registry {
    inner: Arc<Inner>,
}

struct Inner {
    kit: Arc<Kit>,
    closing: AtomicBool,
    arbiters: Arbiters,
}

/// What came of one try to reach an actor.
enum Try {
    Done(Result<Answered, Refusal>),
    /// The actor was gone before it had begun.
    Again,
}

impl Try {
    fn crowded() -> Self {
        Self::Done(Err(Refusal::RateLimited(Limit::UnderWay.wait(SOON))))
    }
}

impl Registry {
    /// Starts the arbiters.
    ///
    /// # Panics
    /// Where no actix `System` runs.
    pub fn start(
        config: RegistryConfig,
        lanes: Lanes,
        store: Arc<dyn InstanceStore>,
        limits: Arc<dyn SharedLimits>,
        outcomes: Arc<dyn OutcomeMemory>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let doors = lanes.into();
        Self::open(
            config,
            Ports {
                doors,
                store,
                limits,
                outcomes,
                clock,
                entropy,
            },
        )
    }

    /// Serves one push. A caller that goes away loses the answer alone.
    pub async fn push(&self, instance: InstanceId, push: Push) -> Result<Answered, Refusal> {
        let tracked = Arc::new(self.inner.kit.pushes.enter());
        // After the count, so that closing either sees this push or is seen by it.
        if self.inner.closing.load(Ordering::SeqCst) {
            return Err(Refusal::Draining);
        }
        let (push, began) = (Arc::new(push), self.inner.kit.clock.now());
        for _ in 0..TRIES {
            match self.try_once(instance, &push, began, &tracked).await {
                Try::Done(outcome) => return outcome,
                Try::Again => {}
            }
        }
        Err(Refusal::Overloaded { retry_after: SOON })
    }

    /// Makes the instance's actor read its standing again; returns when every push that begins later is judged by
    /// the new one.
    pub async fn refresh(&self, instance: InstanceId) {
        // An actor that does not live yet will read the standing when it starts.
        let Some(seat) = self.inner.kit.directory.find(instance) else {
            return;
        };
        let (done, refreshed) = oneshot::channel();
        match seat.address.try_send(Refresh(done)) {
            Ok(()) => {}
            Err(SendError::Closed(_)) => return,
            Err(SendError::Full(_)) => {
                warn!(%instance, "too many refreshes of one instance at the same time");
                return;
            }
        }
        // An actor that died is followed by one that reads anew.
        let _ = refreshed.await;
    }

    /// Pushes a minute of an instance without an operator's limit.
    pub fn per_minute(&self) -> u32 {
        self.inner.kit.rules.per_minute.load(Ordering::Relaxed)
    }

    /// Changes it, for living actors as soon as they have read their standing again.
    pub fn set_per_minute(&self, per_minute: u32) {
        self.inner
            .kit
            .rules
            .per_minute
            .store(per_minute, Ordering::Relaxed);
        self.refresh_all();
    }

    /// Makes all living actors read their standing again, soon.
    pub fn refresh_all(&self) {
        for seat in self.inner.kit.directory.all() {
            let (done, _) = oneshot::channel();
            // An actor that leaves or dies is followed by one that reads anew.
            let _ = seat.address.try_send(Refresh(done));
        }
    }

    /// Refuses new pushes, waits for those under way, then stops actors and arbiters.
    pub async fn close(&self) {
        self.inner.closing.store(true, Ordering::SeqCst);
        self.inner.kit.pushes.none_left().await;
        for seat in self.inner.kit.directory.all() {
            let (done, closed) = oneshot::channel();
            if seat.address.try_send(Close(done)).is_ok() {
                // An actor that died has nothing left to close.
                let _ = closed.await;
            }
        }
        self.inner.kit.writes.none_left().await;
        let arbiters = self.inner.arbiters.take();
        // The threads end at once, but joining them blocks.
        let joined =
            tokio::task::spawn_blocking(|| arbiters.into_iter().for_each(|arbiter| drop(arbiter.join())))
                .await;
        if let Err(error) = joined {
            error!(%error, "an arbiter's thread panicked");
        }
    }

    /// For metrics and `/readyz`.
    pub fn snapshot(&self) -> RegistrySnapshot {
        let kit = &self.inner.kit;
        RegistrySnapshot {
            actors: kit.directory.alive(),
            in_flight: kit.pushes.count(),
            restarts: kit.directory.restarts(),
        }
    }

    fn open(config: RegistryConfig, ports: Ports) -> Self {
        let arbiters: Vec<Arbiter> = (0..config.arbiters.max(1)).map(|_| Arbiter::new()).collect();
        let directory = Arc::new(Directory::new(arbiters.iter().map(Arbiter::handle).collect()));
        let kit = Arc::new(Kit::new(config, ports, directory));
        Self {
            inner: Arc::new(Inner {
                kit,
                closing: AtomicBool::new(false),
                arbiters: Arbiters::new(arbiters),
            }),
        }
    }

    async fn try_once(
        &self,
        instance: InstanceId,
        push: &Arc<Push>,
        began: Now,
        tracked: &Arc<Tracked>,
    ) -> Try {
        let kit = &self.inner.kit;
        let seat = kit.directory.seat(instance, kit);
        let crowded = Try::Done(Err(Refusal::RateLimited(Limit::UnderWay.wait(SOON))));
        let Some(slot) = seat.slots.take() else {
            return crowded;
        };
        let (reply, answer) = oneshot::channel();
        let started = Arc::new(AtomicBool::new(false));
        let pending = Pending {
            push: push.clone(),
            began,
            slot,
            claim: None,
            started: started.clone(),
            reply,
            tracked: tracked.clone(),
            span: Span::current(),
        };
        match seat.address.try_send(Ask(pending)) {
            Ok(()) => {}
            Err(SendError::Full(_)) => return Try::crowded(),
            Err(SendError::Closed(_)) => {
                kit.directory.bury(seat.instance, seat.generation);
                return Try::Again;
            }
        }
        match answer.await {
            Ok(Reply::Done(outcome)) => Try::Done(outcome),
            Ok(Reply::Wait(first, slot)) => Try::Done(self.wait_for(first, slot, began).await),
            Err(_) => self.after_a_lost_reply(&seat, &started),
        }
    }

    /// The push was dropped on its way. Before anything had begun, only an actor that leaves or dies does that; the
    /// caller may know it first. Afterwards it may also have been a panic in the lane, which the actor survives.
    fn after_a_lost_reply(&self, seat: &Seat, started: &AtomicBool) -> Try {
        let begun = started.load(Ordering::SeqCst);
        if !begun || !seat.address.connected() {
            self.inner.kit.directory.bury(seat.instance, seat.generation);
        }
        if begun {
            Try::Done(Err(Refusal::Internal))
        } else {
            Try::Again
        }
    }

    /// Waits for the first push of the same idempotency key, until this one's own deadline.
    async fn wait_for(&self, first: oneshot::Receiver<Outcome>, _slot: Slot, began: Now) -> Outcome {
        let kit = &self.inner.kit;
        let patience = kit
            .clock
            .now()
            .until(began.mono.saturating_add(kit.push_deadline));
        match tokio::time::timeout(patience, first).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(Refusal::Internal),
            Err(_) => Ok(fresh(PushAnswer::failed(
                Reason::UnknownOutcome,
                true,
                Some(SOON.as_secs()),
            ))),
        }
    }
}

#[cfg(test)]
impl Registry {
    fn is_closing(&self) -> bool {
        self.inner.closing.load(Ordering::SeqCst)
    }

    /// Whether a repeat waits for the push that has this idempotency key.
    fn is_waiting(&self, key: u128) -> bool {
        self.inner.kit.in_flight.waiters(key) > 0
    }
}

#[cfg(test)]
mod tests;
