//! Numbers of the fan-out, each with its reason. A host may choose others.

/// How much the fan-out takes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Rows of the outbox above which nothing is put off any more: what can't be sent at once is dropped and logged.
    /// At up to some 6 KiB each this is 600 MB; new notifications still fit above it.
    pub waiting_rows: u64,
    /// Of these, rows of one user: whose devices never take anything, by mistake or on purpose, leave room for others.
    /// Two notifications for ten thousand devices fit.
    pub waiting_rows_per_user: u64,
    /// Pushes to browsers at the same time, each a connection of its own at worst.
    pub browsers_at_once: usize,
    /// Relays and push services that the retry worker is busy with at the same time.
    pub lanes_at_once: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiting_rows: 100_000,
            waiting_rows_per_user: 20_000,
            browsers_at_once: 32,
            lanes_at_once: 16,
        }
    }
}
