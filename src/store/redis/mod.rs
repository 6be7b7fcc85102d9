//! State that replicas share, in Redis or Valkey 7 and newer: a single server, a master behind Sentinels, or a Cluster.
//!
//! ```text
//! REDIS_URL -> url -> connection (connects, notices loss, connects again) -> sessions (one script per operation)
//!                         \---- what is published to this replica ----------> sessions/replica -> registry
//!           -> link (a connection of its own) -> records, limits, addresses, outcomes
//! ```
//!
//! Invariants: every key has an end but revocations, the operator's words and suspensions; the time is the server's; no call
//! waits longer than [`connection::Patience`]; no error says more of Redis than its kind, and never the password.

pub mod addresses;
pub(crate) mod connection;
pub mod limits;
pub mod link;
pub mod outcomes;
pub mod records;
mod sentinel;
pub mod sessions;
mod trust;
pub mod url;

#[cfg(test)]
#[allow(dead_code, reason = "parts of it are for tests of the whole relay")]
pub(crate) mod kit;
