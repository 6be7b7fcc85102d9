//! Client of Sovereign Relay.
mod clock;
mod entropy;
pub mod signal;
pub mod trust;
