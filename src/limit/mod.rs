//! Budgets and memories that no single actor can keep: of tokens and young groups over all instances, of client
//! addresses, of memory for request bodies, and the outcomes remembered for idempotency keys.
//!
//! A single node keeps them in memory. Replicas share what an instance and a young group may do ([`leases`]); what
//! stays local there is best effort by its contract.
//!
//! [`permits`] is the other direction: what the instances' actors say of signaling.
//!
//! Called by the instances' actors through their ports ([`shared`], [`outcomes`]) and by `http` ([`addresses`],
//! [`bodies`]). The composition root calls each one's `clean` on a timer: nothing here starts a task.

pub mod addresses;
pub mod bodies;
pub mod lease;
pub mod leases;
pub mod outcomes;
pub mod permits;
pub mod shared;

pub use addresses::AddressLimits;
pub use bodies::{BodyBounds, BodyBudget};
pub use leases::LeasedLimits;
pub use outcomes::EmbeddedOutcomes;
pub use permits::{Permits, SharedPermits};
pub use shared::EmbeddedLimits;
