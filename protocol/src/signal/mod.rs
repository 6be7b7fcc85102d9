//! `sovereign.signal.v1`: how two peers swap sealed SDP and ICE (RFC 8829, RFC 8838) through a session.
//!
//! Where to look: [`session`] (the API that makes sessions), [`frame`] (what goes over the WebSocket), [`close`] (how
//! a connection ends), [`id`] (names and slots), [`seal`] (the end-to-end sealing that the relay can't open),
//! [`rendezvous`] (two instances that share a secret meet without another channel).

pub mod close;
pub mod frame;
pub mod id;
pub mod rendezvous;
pub mod seal;
pub mod session;

/// The WebSocket subprotocol (RFC 6455, 1.9) and the version of everything in this module.
pub const SUBPROTOCOL: &str = "sovereign.signal.v1";
/// The `v` of a `hello`.
pub const VERSION: u64 = 1;
