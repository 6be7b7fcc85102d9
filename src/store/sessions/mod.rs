//! Where sessions are kept: [`memory`] for a single node. A store shared by replicas implements the same port and
//! passes the same contract tests (`contract.rs`).

pub mod memory;
mod usage;

#[cfg(test)]
pub(crate) mod contract;

/// Bounds over all sessions. Those of one session are its [`SessionRules`].
///
/// [`SessionRules`]: sovereign_relay_actors::session::rules::SessionRules
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionBounds {
    /// Live sessions of one instance.
    pub sessions_per_instance: u32,
    /// Bytes in all mailboxes of one instance.
    pub instance_bytes: usize,
    /// Bytes in all mailboxes.
    pub total_bytes: usize,
}

impl Default for SessionBounds {
    fn default() -> Self {
        use sovereign_relay_protocol::limits;
        Self {
            sessions_per_instance: limits::SESSIONS_PER_INSTANCE,
            instance_bytes: limits::INSTANCE_MAILBOX_BYTES,
            total_bytes: limits::ALL_MAILBOX_BYTES,
        }
    }
}
