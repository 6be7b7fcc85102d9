//! Signaling: a session's slot, held through lost networks.
//!
//! Where to look: [`connection`] (opaque content), [`event`] (what it tells); `core` decides, `shell` and `socket` do,
//! `dial` opens sockets.

pub mod connection;
mod core;
mod dial;
pub mod event;
mod shell;
mod socket;
