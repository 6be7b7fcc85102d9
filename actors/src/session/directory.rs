//! Which actor serves which session on this replica, and on which arbiter.
//!
//! Called by the registry, which sends messages to what it finds here, and by actors that leave. Invariant: a session
//! has one seat, and only the actor in it, by its generation, takes it away.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use actix::{Addr, ArbiterHandle, Context, dev::channel::channel};
use dashmap::{DashMap, Entry};
use metrics::counter;
use sovereign_relay_protocol::signal::id::SessionId;
use tokio::sync::Semaphore;
use tracing::error;

use super::{SessionActor, registry::Kit};

/// Messages in an actor's mailbox. Each connection has one frame under way and departs once, and the limits on dials
/// let some 150 of them be there in a minute. What ends a session or gives a slot back is sent past this bound.
pub(super) const MAILBOX: usize = 512;
/// Dials of one session at the same time. Each is over within microseconds, or when the store has answered; a crowd
/// beyond is asked to come again, so that it never fills the mailbox.
pub(super) const DIALS: usize = 32;

/// The actors alive.
pub(crate) struct Directory {
    seats: DashMap<SessionId, Seat>,
    generations: AtomicU64,
    arbiters: Vec<ArbiterHandle>,
}

/// One actor. The address is never cloned: each clone would have a place of its own in the mailbox.
#[derive(Clone)]
pub(super) struct Seat {
    pub(super) generation: u64,
    pub(super) address: Arc<Addr<SessionActor>>,
    pub(super) dials: Arc<Semaphore>,
}

impl Directory {
    /// Nobody yet; actors will run on these.
    pub(super) fn new(arbiters: Vec<ArbiterHandle>) -> Self {
        Self {
            seats: DashMap::new(),
            generations: AtomicU64::new(0),
            arbiters,
        }
    }

    /// Actors alive.
    pub(super) fn count(&self) -> usize {
        self.seats.len()
    }

    /// The session's actor, started if there is none.
    pub(super) fn seat(&self, id: SessionId, kit: &Arc<Kit>) -> Seat {
        if let Some(seat) = self.find(id) {
            return seat;
        }
        match self.seats.entry(id) {
            Entry::Occupied(place) => place.get().clone(),
            Entry::Vacant(place) => place.insert(self.start(id, kit)).clone(),
        }
    }

    pub(super) fn find(&self, id: SessionId) -> Option<Seat> {
        self.seats.get(&id).map(|seat| seat.clone())
    }

    pub(super) fn all(&self) -> Vec<SessionId> {
        self.seats.iter().map(|seat| *seat.key()).collect()
    }

    /// An actor leaves by itself, or was found gone.
    pub(crate) fn leave(&self, id: SessionId, generation: u64) {
        self.seats.remove_if(&id, |_, seat| seat.generation == generation);
    }

    /// An actor died of a panic.
    pub(crate) fn bury(&self, id: SessionId, generation: u64) {
        counter!("relay_actor_restarts_total").increment(1);
        error!("a session's actor panicked");
        self.leave(id, generation);
    }

    fn start(&self, id: SessionId, kit: &Arc<Kit>) -> Seat {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        // `Actor::start_in_arbiter` sets the capacity only once the arbiter gets to it; until then, 16.
        let (sender, receiver) = channel(MAILBOX);
        let kit = kit.clone();
        let run = move || {
            let context = Context::<SessionActor>::with_receiver(receiver);
            actix_rt::spawn(context.into_future(SessionActor::new(id, generation, kit)));
        };
        if let Some(arbiter) = self.arbiter_of(id) {
            // Refused only by an arbiter that has stopped; then the mailbox is closed, which senders notice.
            arbiter.spawn_fn(run);
        }
        Seat {
            generation,
            address: Arc::new(Addr::new(sender)),
            dials: Arc::new(Semaphore::new(DIALS)),
        }
    }

    fn arbiter_of(&self, id: SessionId) -> Option<&ArbiterHandle> {
        // Ids are random or hashes, so any byte spreads them.
        let [.., last] = *id.as_bytes();
        self.arbiters
            .get(usize::from(last).checked_rem(self.arbiters.len())?)
    }
}
