//! Sovereign Relay's decisions.
//!
//! Each decision is a pure state machine (`on_x(&mut self, input, now) -> effect`) with a thin shell around it
//! that owns the time, the queue and the waiting. Nothing here knows HTTP, a database or a provider: those come
//! in through [`ports`].
//!
//! ```text
//! push: registry -> instance (limits, suspension, dead-token memory) -> lane (turn, breaker, holds) -> PushProvider
//!                                                                     <- verdict (guard, fuses)      <-
//! ```

mod arbiters;
pub mod idempotency;
pub mod instance;
pub mod lane;
pub mod limiter;
pub mod now;
pub mod ports;
pub mod push;
pub mod registry;
pub mod session;
pub mod wait;
