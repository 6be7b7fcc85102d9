//! How much one session may carry. The operator says it once for all of them: a store gives it to each record that it
//! makes, the registry to each actor, and clients are told their part of it in `welcome`.

use sovereign_relay_protocol::{
    limits::{NEW_CONNECTIONS_PER_MINUTE, RESUMES_PER_MINUTE, SESSION_MESSAGES},
    signal::session::SessionLimits,
};

/// What one session may carry, and how often its peers may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionRules {
    /// What clients are told.
    pub limits: SessionLimits,
    /// Messages of a session, both ways together.
    pub messages: u32,
    /// Page loads (binds by a new connection secret) of one slot in a minute.
    pub loads_per_minute: u32,
    /// Resumes by one connection secret in a minute.
    pub resumes_per_minute: u32,
}

impl Default for SessionRules {
    fn default() -> Self {
        Self {
            limits: SessionLimits::default(),
            messages: SESSION_MESSAGES,
            loads_per_minute: NEW_CONNECTIONS_PER_MINUTE,
            resumes_per_minute: RESUMES_PER_MINUTE,
        }
    }
}
