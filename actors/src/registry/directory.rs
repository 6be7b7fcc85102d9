//! Which actor serves which instance: (instance) -> generation, address.
//!
//! Invariant: an actor is removed or replaced by (instance, generation) in one step, so a late report about an
//! old actor never harms its successor.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use actix::{Addr, ArbiterHandle, Context, dev::channel::channel};
use dashmap::{DashMap, Entry};
use metrics::counter;
use sovereign_relay_protocol::id::InstanceId;
use tracing::error;

use super::slots::{MAILBOX, Slots};
use crate::instance::{InstanceActor, Kit};

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

    /// The actor of an instance, started if there is none.
    pub(crate) fn seat(&self, instance: InstanceId, kit: &Arc<Kit>) -> Arc<Seat> {
        if let Some(seat) = self.find(instance) {
            return seat;
        }
        let start = || self.start(instance, Arc::new(Slots::new()), kit);
        self.actors.entry(instance).or_insert_with(start).clone()
    }

    /// The actor of an instance, if there is one.
    pub(crate) fn find(&self, instance: InstanceId) -> Option<Arc<Seat>> {
        self.actors.get(&instance).map(|seat| seat.clone())
    }

    /// All actors.
    pub(crate) fn all(&self) -> Vec<Arc<Seat>> {
        self.actors.iter().map(|seat| seat.clone()).collect()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.actors.len()
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

    /// An actor was found dead without having left: it panicked. Starts its successor, once.
    pub(crate) fn replace(&self, dead: &Seat, kit: &Arc<Kit>) {
        let Entry::Occupied(mut place) = self.actors.entry(dead.instance) else {
            return;
        };
        if place.get().generation != dead.generation {
            return;
        }
        place.insert(self.start(dead.instance, dead.slots.clone(), kit));
        drop(place);
        self.restarts.fetch_add(1, Ordering::Relaxed);
        counter!("relay_actor_restarts_total").increment(1);
        error!(instance = %dead.instance, "the instance's actor panicked and was replaced");
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
        })
    }

    fn arbiter_of(&self, instance: InstanceId) -> Option<&ArbiterHandle> {
        // Ids are random, so any byte spreads them.
        let [.., last] = *instance.as_bytes();
        self.arbiters
            .get(usize::from(last).checked_rem(self.arbiters.len())?)
    }
}
