//! Memory for request bodies: how much the relay holds for all callers together, and for one instance alone.
//!
//! `http` asks before it makes room for bytes that have arrived. Announced bytes count nothing: whoever only announces
//! takes nothing from others. What a request was given comes back when its [`BodyShare`] is dropped; for a batch
//! that is when its last message is answered, since its messages take over what its body held.
//!
//! Invariant: neither bound is ever exceeded, and without a request under way nothing is held.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use dashmap::{DashMap, Entry};
use metrics::counter;
use sovereign_relay_protocol::id::InstanceId;

/// How much may be held.
#[derive(Clone, Copy, Debug)]
pub struct BodyBounds {
    /// For all together, in bytes.
    pub total: usize,
    /// Of that, for batches: the rest is always there for single requests.
    pub batches: usize,
    /// For one instance.
    pub instance: usize,
}

impl Default for BodyBounds {
    /// A quarter of what a small node has, in full batches: 24 under way at once, 4 of one instance (its minute's
    /// pushes fit into two), and 2,000 full single bodies beside them.
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            total: 128 * MIB,
            batches: 96 * MIB,
            instance: 16 * MIB,
        }
    }
}

/// Which request a body belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyKind {
    /// A request about one thing; the instance where its key was in the header.
    Single(Option<InstanceId>),
    /// A batch.
    Batch(InstanceId),
}

impl BodyKind {
    fn instance(self) -> Option<InstanceId> {
        match self {
            Self::Single(instance) => instance,
            Self::Batch(instance) => Some(instance),
        }
    }
}

/// There is no room now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoRoom {
    /// The relay holds as much as it may.
    #[error("the relay is reading too many requests at once; the request was not served")]
    Relay,
    /// The instance has as much under way as one may.
    #[error("this instance has too many bytes under way at once; wait for answers first")]
    Instance,
}

/// The memory that bodies share. One for the public side, another for the operator's.
pub struct BodyBudget {
    bounds: BodyBounds,
    held: AtomicUsize,
    /// Only those with a body under way, so no more than there are connections.
    instances: DashMap<InstanceId, usize>,
}

impl BodyBudget {
    /// Nothing held.
    pub fn new(bounds: BodyBounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            held: AtomicUsize::new(0),
            instances: DashMap::new(),
        })
    }

    /// An empty share for a request.
    pub fn share(self: &Arc<Self>, kind: BodyKind) -> BodyShare {
        BodyShare {
            budget: self.clone(),
            kind,
            bytes: 0,
        }
    }

    /// Bytes held, for metrics.
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&self, kind: BodyKind, bytes: usize) -> Result<(), NoRoom> {
        let most = match kind {
            BodyKind::Single(_) => self.bounds.total,
            BodyKind::Batch(_) => self.bounds.batches,
        };
        self.take_for_instance(kind.instance(), bytes)?;
        let fits = |held: usize| held.checked_add(bytes).filter(|&after| after <= most);
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(_) => {
                self.give_back_for_instance(kind.instance(), bytes);
                Err(NoRoom::Relay)
            }
        }
    }

    fn give_back(&self, kind: BodyKind, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.give_back_for_instance(kind.instance(), bytes);
    }

    fn take_for_instance(&self, instance: Option<InstanceId>, bytes: usize) -> Result<(), NoRoom> {
        let Some(instance) = instance else { return Ok(()) };
        if bytes > self.bounds.instance {
            return Err(NoRoom::Instance);
        }
        let mut held = self.instances.entry(instance).or_insert(0);
        if *held > self.bounds.instance - bytes {
            return Err(NoRoom::Instance);
        }
        *held += bytes;
        Ok(())
    }

    fn give_back_for_instance(&self, instance: Option<InstanceId>, bytes: usize) {
        let Some(instance) = instance else { return };
        if let Entry::Occupied(mut held) = self.instances.entry(instance) {
            *held.get_mut() = held.get().saturating_sub(bytes);
            if *held.get() == 0 {
                held.remove();
            }
        }
    }
}

/// What one request holds. Dropped, it is given back.
pub struct BodyShare {
    budget: Arc<BodyBudget>,
    kind: BodyKind,
    bytes: usize,
}

impl BodyShare {
    /// Makes it `bytes` in all, or leaves it as it is.
    pub fn grow_to(&mut self, bytes: usize) -> Result<(), NoRoom> {
        let more = bytes.saturating_sub(self.bytes);
        self.budget.take(self.kind, more).inspect_err(count)?;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.budget.give_back(self.kind, self.bytes);
    }
}

fn count(refused: &NoRoom) {
    let bound = match refused {
        NoRoom::Relay => "relay",
        NoRoom::Instance => "instance",
    };
    counter!("relay_request_bodies_refused_total", "bound" => bound).increment(1);
}

#[cfg(test)]
mod tests;
