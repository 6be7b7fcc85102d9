//! Signaling: one slot of a session, held through lost networks, restarted relays and changes of network.
//!
//! Where to look: [`session`] (typed messages, sealed end to end), [`invitation`] (what a peer needs to join),
//! [`message`] (what peers say), [`connection`] (the same for opaque content). Inside, `core` decides, `shell` does what
//! it says, `socket` and `dial` are the wire, `envelope` seals and opens, `limits` measures.

pub mod connection;
mod core;
mod dial;
mod envelope;
pub mod event;
pub mod invitation;
mod limits;
pub mod message;
pub mod session;
mod shell;
mod socket;
