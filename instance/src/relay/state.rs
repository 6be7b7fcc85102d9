//! Where this instance stands with one relay, as a pure machine: what happened goes in, what to do comes out.
//!
//! ```text
//! Unenrolled --claimed, enrolled--> Enrolled --revoked--> Revoked --admin resumes--> Unenrolled
//!     ^  |  \--claimed, failed: waits--/^ |  \--rotated--> Enrolled with the previous key at hand
//!     |  \-------------------------------/ |
//!     \------------- unauthorized ---------/
//! ```
//!
//! The shell in `relay.rs` reads it from the store, asks [`Enrollment::need`], does that, and writes it back only where
//! nobody else has changed it. Each refusal comes with the key it was said of: one of an older key changes nothing.
//!
//! Invariants: after the first `unauthorized` there is one enrollment at once, and from then on one after a wait,
//! until a key works; a revoked enrollment stays so until the admin resumes it; after a rotation the old key is kept
//! until the new one has worked.

use sovereign_relay_client::http::InstanceKey;
use sovereign_relay_protocol::id::InstanceId;

use crate::backoff::backoff_seconds;

/// Longest wait between two enrollments, in seconds: a relay whose secret was replaced is back within that time.
pub(crate) const LONGEST_WAIT_SECONDS: u64 = 15 * 60;
/// Longest wait that a relay may ask for, in seconds: its limits are of a minute and a day, and a time that it named by
/// mistake doesn't outlive the mistake for long.
const LONGEST_ASKED_SECONDS: u64 = 24 * 60 * 60;
/// How long one process keeps others from enrolling too, in seconds: an enrollment takes well under this.
pub(crate) const CLAIM_SECONDS: u64 = 5;

/// The name and the key that a relay gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Credential {
    pub(crate) instance_id: InstanceId,
    pub(crate) key: InstanceKey,
}

/// Which keys there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Phase {
    /// None that is worth anything.
    #[default]
    Unenrolled,
    /// One to use.
    Enrolled {
        /// The one to use.
        current: Credential,
        /// The one before a rotation, until `current` has worked.
        previous: Option<Credential>,
    },
    /// The relay withdrew this instance.
    Revoked(Credential),
}

/// One relay's enrollment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Enrollment {
    pub(crate) phase: Phase,
    /// Enrollments begun since a key last worked.
    pub(crate) attempts: u32,
    /// No enrollment before then, in Unix seconds.
    pub(crate) next_attempt_at: u64,
}

/// What a caller who wants to use the relay has to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Need {
    /// Use this key.
    Use(Credential),
    /// Enroll now.
    Enroll,
    /// Come back then.
    Wait {
        /// Unix seconds.
        until: u64,
    },
    /// Nothing: the admin has to decide.
    Stop,
}

impl Enrollment {
    /// What to do at `now`.
    pub(crate) fn need(&self, now: u64) -> Need {
        match &self.phase {
            Phase::Enrolled { current, .. } => Need::Use(current.clone()),
            Phase::Revoked(_) => Need::Stop,
            Phase::Unenrolled if now >= self.next_attempt_at => Need::Enroll,
            // Nothing is put off for longer: the clock was ahead when this was written.
            Phase::Unenrolled if self.next_attempt_at > now.saturating_add(LONGEST_ASKED_SECONDS) => {
                Need::Enroll
            }
            Phase::Unenrolled => Need::Wait {
                until: self.next_attempt_at,
            },
        }
    }

    /// An enrollment begins: for a moment others leave it to this caller.
    pub(crate) fn claimed(&self, now: u64) -> Self {
        Self {
            phase: Phase::Unenrolled,
            attempts: self.attempts.saturating_add(1),
            next_attempt_at: now.saturating_add(CLAIM_SECONDS),
        }
    }

    /// The relay gave a key. Whether it works is still to be seen.
    pub(crate) fn enrolled(&self, credential: Credential) -> Self {
        Self {
            phase: Phase::Enrolled {
                current: credential,
                previous: None,
            },
            ..self.clone()
        }
    }

    /// The enrollment failed; `retry_after` where the relay says so, in seconds.
    pub(crate) fn failed(&self, now: u64, retry_after: Option<u64>, draw: u64) -> Self {
        let asked = retry_after.unwrap_or(0).min(LONGEST_ASKED_SECONDS);
        let wait = self.wait(draw).max(asked);
        Self {
            next_attempt_at: now.saturating_add(wait),
            ..self.clone()
        }
    }

    /// The relay does not know this key.
    pub(crate) fn unauthorized(&self, key: &InstanceKey, now: u64, draw: u64) -> Self {
        match &self.phase {
            Phase::Enrolled { current, previous } if current.key == *key => match previous {
                Some(previous) => self.enrolled(previous.clone()),
                None => self.lost(now, draw),
            },
            Phase::Enrolled { .. } | Phase::Unenrolled | Phase::Revoked(_) => self.clone(),
        }
    }

    /// The relay has withdrawn the instance that this key is of.
    pub(crate) fn revoked(&self, key: &InstanceKey) -> Self {
        match &self.phase {
            Phase::Enrolled { current, .. } if current.key == *key => Self {
                phase: Phase::Revoked(current.clone()),
                ..self.clone()
            },
            Phase::Enrolled { .. } | Phase::Unenrolled | Phase::Revoked(_) => self.clone(),
        }
    }

    /// The relay took this key.
    pub(crate) fn worked(&self, key: &InstanceKey) -> Self {
        match &self.phase {
            Phase::Enrolled { current, .. } if current.key == *key => Self {
                attempts: 0,
                next_attempt_at: 0,
                ..self.enrolled(current.clone())
            },
            Phase::Enrolled { .. } | Phase::Unenrolled | Phase::Revoked(_) => self.clone(),
        }
    }

    /// The relay gave `new` for the key `old`.
    pub(crate) fn rotated(&self, old: &InstanceKey, new: Credential) -> Self {
        match &self.phase {
            Phase::Enrolled { current, .. } if current.key == *old && new.key != *old => Self {
                phase: Phase::Enrolled {
                    previous: Some(current.clone()),
                    current: new,
                },
                ..self.clone()
            },
            Phase::Enrolled { .. } | Phase::Unenrolled | Phase::Revoked(_) => self.clone(),
        }
    }

    /// The admin wants to be enrolled again.
    pub(crate) fn resumed(&self) -> Self {
        match &self.phase {
            Phase::Revoked(_) => Self::default(),
            Phase::Unenrolled => Self {
                next_attempt_at: 0,
                ..self.clone()
            },
            Phase::Enrolled { .. } => self.clone(),
        }
    }

    /// Whether this is the key in use.
    pub(crate) fn uses(&self, key: &InstanceKey) -> bool {
        match &self.phase {
            Phase::Enrolled { current, .. } => current.key == *key,
            Phase::Unenrolled | Phase::Revoked(_) => false,
        }
    }

    /// Whether the key in use has yet to work.
    pub(crate) fn is_unproven(&self) -> bool {
        match &self.phase {
            Phase::Enrolled { previous, .. } => previous.is_some() || self.attempts > 0,
            Phase::Unenrolled | Phase::Revoked(_) => false,
        }
    }

    /// The key is worth nothing. The first time may be a replaced secret; a relay that refuses the keys it gives is
    /// left alone for longer and longer.
    fn lost(&self, now: u64, draw: u64) -> Self {
        let wait = if self.attempts == 0 { 0 } else { self.wait(draw) };
        Self {
            phase: Phase::Unenrolled,
            next_attempt_at: now.saturating_add(wait),
            ..self.clone()
        }
    }

    fn wait(&self, draw: u64) -> u64 {
        backoff_seconds(self.attempts, LONGEST_WAIT_SECONDS, draw)
    }
}

#[cfg(test)]
mod tests;
