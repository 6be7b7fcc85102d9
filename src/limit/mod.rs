//! Budgets and memories that no single actor can keep: of tokens and young groups over all instances, of client
//! addresses, and the outcomes remembered for idempotency keys. Here the ones of a single node, in memory.
//!
//! Called by the instances' actors through their ports ([`shared`], [`outcomes`]) and by `http` ([`addresses`]).
//! The composition root calls each one's `clean` on a timer: nothing here starts a task.

pub mod addresses;
pub mod outcomes;
pub mod shared;

pub use addresses::AddressLimits;
pub use outcomes::EmbeddedOutcomes;
pub use shared::EmbeddedLimits;
