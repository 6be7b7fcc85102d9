//! Which actor serves which instance: (instance) -> generation, address.
//!
//! Invariant: an actor leaves or is buried by (instance, generation), so a late report about an old actor never
//! harms its successor. What outlives an actor that panicked (the slots of pushes under way) stays in its seat
//! for the successor.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use actix::{Addr, ArbiterHandle, Context, dev::channel::channel};
use dashmap::{DashMap, Entry};
use sovereign_relay_protocol::id::InstanceId;
use tracing::error;

use super::slots::{MAILBOX, Slots};
use crate::instance::{InstanceActor, kit::Kit};

/// The actors alive.
pub(crate) struct Directory {
    actors: DashMap<InstanceId, Arc<Seat>>,
    arbiters: Vec<ArbiterHandle>,
    generations: AtomicU64,
    restarts: AtomicU64,
}

/// One actor and what outlives it.
pub(crate) struct Seat {
    pub(crate) instance: InstanceId,
    pub(crate) generation: u64,
    /// The one address that the registry sends to.
    pub(crate) address: Addr<InstanceActor>,
    pub(crate) slots: Arc<Slots>,
    dead: AtomicBool,
}

impl Seat {
    fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::SeqCst)
    }
}

impl Directory {
    /// Nobody yet.
    pub(crate) fn new(arbiters: Vec<ArbiterHandle>) -> Self {
        Self {
            actors: DashMap::new(),
            arbiters,
            generations: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
        }
    }

    /// The actor of an instance, started if none lives.
    pub(crate) fn seat(&self, instance: InstanceId, kit: &Arc<Kit>) -> Arc<Seat> {
        if let Some(seat) = self.find(instance).filter(|seat| seat.is_alive()) {
            return seat;
        }
        match self.actors.entry(instance) {
            Entry::Occupied(place) if place.get().is_alive() => place.get().clone(),
            Entry::Occupied(mut place) => {
                let successor = self.start(instance, place.get().slots.clone(), kit);
                place.insert(successor.clone());
                successor
            }
            Entry::Vacant(place) => place
                .insert(self.start(instance, Arc::new(Slots::new()), kit))
                .clone(),
        }
    }

    /// The actor of an instance, if there is one, dead or alive.
    pub(crate) fn find(&self, instance: InstanceId) -> Option<Arc<Seat>> {
        self.actors.get(&instance).map(|seat| seat.clone())
    }

    /// All actors.
    pub(crate) fn all(&self) -> Vec<Arc<Seat>> {
        self.actors.iter().map(|seat| seat.clone()).collect()
    }

    /// How many live.
    pub(crate) fn alive(&self) -> usize {
        self.actors.iter().filter(|seat| seat.is_alive()).count()
    }

    /// How many died of a panic.
    pub(crate) fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// An actor leaves by itself.
    pub(crate) fn leave(&self, instance: InstanceId, generation: u64) {
        self.actors
            .remove_if(&instance, |_, seat| seat.generation == generation);
    }

    /// An actor died of a panic. It is counted once, whoever finds it, and the next push starts its successor with
    /// the same slots. It isn't started here: an actor that dies while it starts would go round in circles.
    pub(crate) fn bury(&self, instance: InstanceId, generation: u64) {
        let Some(seat) = self.find(instance).filter(|seat| seat.generation == generation) else {
            return;
        };
        if seat.dead.swap(true, Ordering::SeqCst) {
            return;
        }
        self.restarts.fetch_add(1, Ordering::Relaxed);
        error!(%instance, "the instance's actor panicked");
        if seat.slots.all_free() {
            self.leave(instance, generation);
        }
    }

    fn start(&self, instance: InstanceId, slots: Arc<Slots>, kit: &Arc<Kit>) -> Arc<Seat> {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        // `Actor::start_in_arbiter` sets the capacity only once the arbiter gets to it; until then, 16.
        let (sender, receiver) = channel(MAILBOX);
        let (kit, own_slots) = (kit.clone(), slots.clone());
        let run = move || {
            let context = Context::<InstanceActor>::with_receiver(receiver);
            let actor = InstanceActor::new(instance, generation, own_slots, kit);
            actix_rt::spawn(context.into_future(actor));
        };
        if let Some(arbiter) = self.arbiter_of(instance) {
            // Refused only by an arbiter that has stopped; then the mailbox is closed, which senders notice.
            arbiter.spawn_fn(run);
        }
        Arc::new(Seat {
            instance,
            generation,
            address: Addr::new(sender),
            slots,
            dead: AtomicBool::new(false),
        })
    }

    fn arbiter_of(&self, instance: InstanceId) -> Option<&ArbiterHandle> {
        // Ids are random, so any byte spreads them.
        let [.., last] = *instance.as_bytes();
        self.arbiters
            .get(usize::from(last).checked_rem(self.arbiters.len())?)
    }
}
