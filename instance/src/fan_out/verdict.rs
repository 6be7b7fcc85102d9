//! What is done about a push after what it met, as a pure function of that and of the row as it was read.
//!
//! ```text
//! answer of a relay or a push service -> Met -> decide(row, met, now, draw) -> Verdict { action, outcome, reason }
//! ```
//!
//! Invariants: a registration is removed only where its provider calls it gone and only when it is older than that,
//! in whole seconds rounded down, so that a tie keeps it; nothing is tried before the time that the other side named;
//! nothing is tried after its TTL.

use std::time::Duration;

use sovereign_relay_client::{
    http::{
        error::{CallError, Refusal},
        push::PushOutcome,
    },
    protocol::{error::ErrorCode, limits, push::Reason},
};

use crate::{backoff::backoff_seconds, store::Outcome};

/// Longest wait of our own making, in seconds: what comes back is used within that time.
const LONGEST_WAIT_SECONDS: u64 = 15 * 60;
/// The same where the whole relay can't be used: a batch is one call, which costs it nothing while it is away, and all
/// that waits is told soon after it is back.
const LONGEST_SHARED_WAIT_SECONDS: u64 = 60;
/// Over how long rows that were told the same time are spread after it, in seconds: a relay that takes ten a second is
/// then not asked for five hundred each second.
const LONGEST_SPREAD_SECONDS: u64 = 60;
/// Waits that the other side names are honoured up to this, in seconds: no provider keeps a message longer.
const LONGEST_HINT_SECONDS: u64 = limits::TTL_SECONDS as u64;

/// Longest time, in seconds, for which nothing at all is sent to a relay because it said so: a time that it named by
/// mistake doesn't outlive the mistake for long.
pub(super) const LONGEST_PAUSE_SECONDS: u64 = 60 * 60;
/// How long after a first try a repeat is sure to find the relay remember it, in seconds: its 10 minutes less what a
/// batch may take.
const REMEMBERED_SECONDS: u64 = 8 * 60;

/// What a push met. Reasons are words of a closed set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Met {
    /// It was taken.
    Sent,
    /// The device or browser is gone.
    Gone {
        /// Since when, in Unix seconds rounded down, where the other side knows.
        since: Option<u64>,
        reason: &'static str,
    },
    /// It will never be taken.
    Never { reason: &'static str },
    /// It was taken, and what became of it can't be read. A repeat tells, while the relay remembers; later it would be
    /// another push.
    Unclear { reason: &'static str },
    /// It may be taken later.
    Later(Later),
    /// It was not even tried.
    Held {
        /// Unix seconds.
        until: u64,
        reason: &'static str,
    },
}

/// Why and when a push may be taken later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Later {
    pub(crate) reason: &'static str,
    /// Seconds that the other side asks for.
    pub(crate) after: Option<u64>,
    /// Whether the relay surely remembers nothing of it: the next try may then have another TTL under the same key.
    pub(crate) forgotten: bool,
    /// Whether it is about everything that this instance sends there, and not about this message.
    pub(crate) shared: bool,
}

/// A row, as far as the verdict depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RowFacts {
    /// When the registration that it is for was made, as read before sending.
    pub(crate) target_created_at: u64,
    pub(crate) ttl_until: u64,
    /// Tries before this one.
    pub(crate) attempts: u32,
    /// When the first of the tries began that the relay may remember.
    pub(crate) first_attempt_at: u64,
    /// Whether that was a try before this one.
    pub(crate) is_remembered: bool,
}

/// What to do with the row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Delivered: note it, and forget the row.
    Used,
    /// Forget the row.
    Done,
    /// Remove the registration if it is still as read, and forget the row.
    Prune {
        /// `None`: whatever its age.
        since: Option<u64>,
    },
    /// Try again.
    Retry {
        /// Not before, in Unix seconds.
        at: u64,
        /// See [`Later::forgotten`].
        forgotten: bool,
    },
}

/// What to do, and what the log says of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub(crate) action: Action,
    pub(crate) outcome: Outcome,
    /// Empty where the outcome says all.
    pub(crate) reason: &'static str,
}

/// The verdict at `now`; `draw` is 64 random bits.
pub(crate) fn decide(row: RowFacts, met: &Met, now: u64, draw: u64) -> Verdict {
    let done = |outcome, reason| Verdict {
        action: Action::Done,
        outcome,
        reason,
    };
    match met {
        Met::Sent => Verdict {
            action: Action::Used,
            outcome: Outcome::Sent,
            reason: "",
        },
        Met::Gone {
            since: Some(since), ..
        } if row.target_created_at >= *since => done(Outcome::Kept, "registered_again"),
        Met::Gone { since, reason } => Verdict {
            action: Action::Prune { since: *since },
            outcome: Outcome::Pruned,
            reason,
        },
        Met::Never { reason } => done(Outcome::Failed, reason),
        Met::Later(Later { reason, .. }) | Met::Held { reason, .. } | Met::Unclear { reason }
            if now >= row.ttl_until =>
        {
            done(Outcome::Expired, reason)
        }
        Met::Later(later) => {
            let forgotten = later.forgotten && !row.is_remembered;
            retry(next_try(row, later, now, draw), forgotten, later.reason)
        }
        Met::Held { until, reason } => retry(held_until(row, *until, now), !row.is_remembered, reason),
        Met::Unclear { reason } => match own_try(row, LONGEST_WAIT_SECONDS, now, draw) {
            at if at <= row.first_attempt_at.saturating_add(REMEMBERED_SECONDS) => retry(at, false, reason),
            _ => done(Outcome::Failed, reason),
        },
    }
}

/// How long nothing is to be sent to this relay: it has said so of most of what it was sent.
pub(crate) fn pause_until<'a>(met: impl ExactSizeIterator<Item = &'a Met>, now: u64) -> Option<u64> {
    let all = met.len();
    let waits: Vec<u64> = met.filter_map(shared_wait).collect();
    let most = waits.len() * 2 >= all;
    let shortest = waits.into_iter().min().filter(|_| most)?;
    Some(now.saturating_add(shortest.clamp(1, LONGEST_PAUSE_SECONDS)))
}

fn shared_wait(met: &Met) -> Option<u64> {
    match met {
        Met::Later(later) if later.shared => later.after,
        Met::Sent
        | Met::Gone { .. }
        | Met::Never { .. }
        | Met::Unclear { .. }
        | Met::Later(_)
        | Met::Held { .. } => None,
    }
}

fn retry(at: u64, forgotten: bool, reason: &'static str) -> Verdict {
    Verdict {
        action: Action::Retry { at, forgotten },
        outcome: Outcome::Retrying,
        reason,
    }
}

/// With a time from the other side, then and spread more and more, since whatever else waits was told the same; else
/// after a wait of our own, but while it is still worth something. At its TTL a row comes up to be logged.
fn next_try(row: RowFacts, later: &Later, now: u64, draw: u64) -> u64 {
    match later.after {
        Some(after) => {
            let failures = row.attempts.saturating_add(1);
            let spread = backoff_seconds(failures, LONGEST_SPREAD_SECONDS, draw) - 1;
            let hint = after.min(LONGEST_HINT_SECONDS);
            let at = now.saturating_add(hint + spread).min(row.ttl_until);
            at.max(now.saturating_add(1))
        }
        // What may have been taken is not asked again so often: in time the relay forgets it.
        None if later.shared && later.forgotten => own_try(row, LONGEST_SHARED_WAIT_SECONDS, now, draw),
        None => own_try(row, LONGEST_WAIT_SECONDS, now, draw),
    }
}

fn own_try(row: RowFacts, longest: u64, now: u64, draw: u64) -> u64 {
    let wait = backoff_seconds(row.attempts.saturating_add(1), longest, draw);
    let at = now.saturating_add(wait).min(row.ttl_until.saturating_sub(1));
    at.max(now.saturating_add(1))
}

fn held_until(row: RowFacts, until: u64, now: u64) -> u64 {
    until.min(row.ttl_until).max(now.saturating_add(1))
}

impl Met {
    /// One place of a relay's answer.
    pub(crate) fn of_place(place: Result<PushOutcome, Refusal>) -> Self {
        match place {
            Ok(outcome) => Self::of_outcome(&outcome),
            Err(refusal) => Self::of_refusal(&refusal),
        }
    }

    /// A call that failed as a whole; each of its messages met this.
    pub(crate) fn of_call(error: &CallError) -> Self {
        let later = |reason, forgotten| {
            Self::Later(Later {
                reason,
                after: None,
                forgotten,
                shared: true,
            })
        };
        match error {
            CallError::NotSent(_) => later("relay_unreachable", true),
            CallError::NoAnswer(_) => later("no_answer", false),
            CallError::Unreadable(413) => Self::Never {
                reason: ErrorCode::PayloadTooLarge.as_str(),
            },
            CallError::Unreadable(200..=299) => Self::Unclear {
                reason: "unreadable_answer",
            },
            // A proxy's, most likely: not the messages' fault, whatever the status.
            CallError::Unreadable(_) => later("unreadable_answer", false),
            CallError::Refused(refusal) => Self::of_refusal(refusal),
        }
    }

    fn of_outcome(outcome: &PushOutcome) -> Self {
        match outcome {
            PushOutcome::Sent { .. } => Self::Sent,
            PushOutcome::InvalidToken { reason, since } => Self::Gone {
                since: Some(since.seconds()),
                reason: word(*reason),
            },
            PushOutcome::Failed {
                reason,
                retryable,
                retry_after,
            } => {
                // The relay's operator may mend it, long before the notification is worth nothing.
                let mendable = *reason == Some(Reason::RelayMisconfigured);
                if !retryable && !mendable {
                    return Self::Never {
                        reason: word(*reason),
                    };
                }
                Self::Later(Later {
                    reason: word(*reason),
                    after: retry_after.map(whole_seconds),
                    forgotten: true,
                    shared: false,
                })
            }
        }
    }

    fn of_refusal(refusal: &Refusal) -> Self {
        let later = |reason, forgotten, shared| {
            Self::Later(Later {
                reason,
                after: refusal.retry_after.map(whole_seconds),
                forgotten,
                shared,
            })
        };
        let Some(code) = refusal.code else {
            return match refusal.is_retryable() {
                true => later("refused", false, true),
                false => Self::Never { reason: "refused" },
            };
        };
        match code {
            ErrorCode::InvalidRequest
            | ErrorCode::PayloadTooLarge
            | ErrorCode::UnsupportedMediaType
            | ErrorCode::IdempotencyConflict
            | ErrorCode::PlatformNotConfigured
            | ErrorCode::EnrollmentClosed
            | ErrorCode::OriginNotAllowed
            | ErrorCode::SessionFull
            | ErrorCode::SettingsConflict => Self::Never {
                reason: code.as_str(),
            },
            ErrorCode::SendFailed => later(code.as_str(), true, false),
            ErrorCode::InternalError => later(code.as_str(), false, false),
            ErrorCode::Unauthorized
            | ErrorCode::Revoked
            | ErrorCode::Suspended
            | ErrorCode::NotFound
            | ErrorCode::MethodNotAllowed
            | ErrorCode::RequestTimeout
            | ErrorCode::RateLimited
            | ErrorCode::NotConfigured
            | ErrorCode::Overloaded
            | ErrorCode::Draining => later(code.as_str(), true, true),
        }
    }
}

/// Of a later version there may be reasons that have no word here.
fn word(reason: Option<Reason>) -> &'static str {
    reason.map_or("other", Reason::as_str)
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests;
