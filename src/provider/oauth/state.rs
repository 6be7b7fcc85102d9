//! When to fetch an access token. Pure: time comes in, the keeper's task does the waiting.
//!
//! ```text
//!            wanted                fetched
//!   Empty ----------> (fetch due) ---------> Held --- 80 % of its life over and used since ---> (fetch due)
//!     ^                    | failed            | refused by the provider, or expired
//!     |                    v                   |
//!     |      back-off; due after it, if still wanted
//!     +----------------------------------------+
//! ```
//!
//! Invariant: nothing is fetched that no push has wanted since the last fetch, so an idle relay with broken
//! credentials bothers nobody.

use std::time::Duration;

use super::keeper::TokenError;

/// First wait after a failed fetch; doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// Longest wait while the endpoint is away: one that is back is noticed within this.
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// Longest wait while it refuses the credentials: only a person mends that, and each try is a line in the log.
const LONGEST_BACKOFF_REFUSED: Duration = Duration::from_secs(60);
/// Longest wait that a throttled endpoint is given, whatever it names: the relay asks once in a token's life.
const LONGEST_BACKOFF_THROTTLED: Duration = Duration::from_secs(60);
/// When a token that replaced a refused one is refused within this, the fault is not the token: the next fetch waits,
/// so that a stream of pushes is not a stream of token requests.
const REFUSED_AGAIN_BACKOFF: Duration = Duration::from_secs(10);
/// A token is not used in its last seconds: it could expire on the way.
const SAFETY_MARGIN: Duration = Duration::from_secs(5);

/// What the keeper holds and what it waits for.
#[derive(Debug, Default)]
pub(super) struct State {
    held: Option<Held>,
    wanted: bool,
    failures: u32,
    next_try: Duration,
    replaces_refused: bool,
    refused_again: bool,
}

#[derive(Debug)]
struct Held {
    serial: u64,
    usable_until: Duration,
    refresh_at: Duration,
    used: bool,
    replaces_refused_since: Option<Duration>,
}

/// What a push that wants a token gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// The token of this number.
    Usable {
        /// Number of the token.
        serial: u64,
        /// The first use since it was fetched, or since a refresh failed: the keeper's task has to look again.
        first: bool,
    },
    /// A fetch is due or under way.
    Coming,
    /// The next fetch waits for its time.
    BackingOff {
        /// That.
        until: Duration,
    },
}

/// What comes of a refused token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mend {
    /// Another is fetched from now on.
    Begins,
    /// Another is there or on its way, because of an earlier refusal of this one.
    UnderWay,
    /// The one that was fetched for that reason is refused as well: the next fetch has to wait.
    Waits,
}

impl State {
    /// A push wants a token.
    pub(super) fn on_wanted(&mut self, now: Duration) -> Wanted {
        if let Some(held) = self.held.as_mut().filter(|held| now < held.usable_until) {
            let first = !std::mem::replace(&mut held.used, true);
            return Wanted::Usable {
                serial: held.serial,
                first,
            };
        }
        self.held = None;
        self.wanted = true;
        if now < self.next_try {
            Wanted::BackingOff { until: self.next_try }
        } else {
            Wanted::Coming
        }
    }

    /// The provider refused this very token. A later one is not touched: many pushes are refused at once.
    pub(super) fn on_refused(&mut self, serial: u64, now: Duration) -> Mend {
        let Some(held) = self.held.take_if(|held| held.serial == serial) else {
            return if self.held.is_none() && self.refused_again {
                Mend::Waits
            } else {
                Mend::UnderWay
            };
        };
        let wait_until = held
            .replaces_refused_since
            .map(|fetched| fetched + REFUSED_AGAIN_BACKOFF)
            .filter(|until| now < *until);
        self.wanted = true;
        self.replaces_refused = true;
        self.refused_again = wait_until.is_some();
        self.next_try = wait_until.unwrap_or(self.next_try);
        if self.refused_again {
            Mend::Waits
        } else {
            Mend::Begins
        }
    }

    /// A fetch succeeded.
    pub(super) fn on_fetched(&mut self, serial: u64, lifetime: Duration, now: Duration) {
        let margin = SAFETY_MARGIN.min(lifetime / 10);
        let replaces_refused_since = self.replaces_refused.then_some(now);
        *self = Self {
            held: Some(Held {
                serial,
                usable_until: now + lifetime - margin,
                refresh_at: now + lifetime * 4 / 5,
                used: false,
                replaces_refused_since,
            }),
            ..Self::default()
        };
    }

    /// A fetch failed. `jitter` from 0 to 1 spreads the replicas.
    pub(super) fn on_failed(&mut self, error: TokenError, now: Duration, jitter: f64) {
        let (shortest, longest) = match error {
            TokenError::Refused => (Duration::ZERO, LONGEST_BACKOFF_REFUSED),
            TokenError::Unreachable | TokenError::Unavailable | TokenError::Unusable => {
                (Duration::ZERO, LONGEST_BACKOFF)
            }
            TokenError::Throttled { wait } => {
                (wait.min(LONGEST_BACKOFF_THROTTLED), LONGEST_BACKOFF_THROTTLED)
            }
        };
        let backoff = FIRST_BACKOFF
            .saturating_mul(1 << self.failures.min(8))
            .min(longest);
        self.failures = self.failures.saturating_add(1);
        self.next_try = now + backoff.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0).max(shortest);
        self.wanted = false;
        if let Some(held) = &mut self.held {
            held.used = false;
        }
    }

    /// When the next fetch is due; `None` while nobody needs one.
    pub(super) fn fetch_due(&self) -> Option<Duration> {
        match &self.held {
            Some(held) if held.used => Some(held.refresh_at.max(self.next_try)),
            Some(_) => None,
            None => self.wanted.then_some(self.next_try),
        }
    }
}

#[cfg(test)]
mod tests;
