//! When to fetch an access token, and who may use the one there is. Pure: time comes in, the keeper's task does the
//! waiting.
//!
//! ```text
//!            wanted                fetched
//!   Empty ----------> (fetch due) ---------> Held --- 80 % of its life over and used since ---> (fetch due)
//!     ^                    | failed           | |---- refused to a sender that may have another --> (fetch due)
//!     |                    v                  | expired
//!     |      back-off; due after it, if still wanted
//!     +---------------------------------------+
//! ```
//!
//! A 401 may be the word of one address and not of the provider. So a refused token goes on serving the others until
//! the next is there, and nobody gets one again that it was refused with. Only what several senders were refused with
//! and nobody was accepted with since is given out no more, but for a push a second that may prove it good.
//!
//! Invariants: nothing is fetched that no push has wanted since the last fetch, so an idle relay with broken
//! credentials bothers nobody; and no sender brings about more than one fetch in [`SPACING`] by being refused.

use std::time::Duration;

use sovereign_relay_actors::push::TurnKey;

use super::{
    keeper::TokenError,
    refusals::{Doubts, Replacements, SPACING},
};

/// First wait after a failed fetch; doubles.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// Longest wait while the endpoint is away: one that is back is noticed within this.
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// Longest wait while it refuses the credentials: only a person mends that, and each try is a line in the log.
const LONGEST_BACKOFF_REFUSED: Duration = Duration::from_secs(60);
/// Longest wait that a throttled endpoint is given, whatever it names: the relay asks once in a token's life.
const LONGEST_BACKOFF_THROTTLED: Duration = Duration::from_secs(60);
/// How often a push may find out whether a token is good that several senders were refused with.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// A token is not used in its last seconds: it could expire on the way.
const SAFETY_MARGIN: Duration = Duration::from_secs(5);

/// What the keeper holds and what it waits for.
#[derive(Debug, Default)]
pub(super) struct State {
    held: Option<Held>,
    wanted: bool,
    failures: u32,
    next_try: Duration,
    replacements: Replacements,
}

#[derive(Debug)]
struct Held {
    serial: u64,
    usable_until: Duration,
    refresh_at: Duration,
    used: bool,
    /// Somebody was accepted with it.
    accepted: bool,
    doubts: Doubts,
    next_probe: Duration,
    /// When it came in place of a refused one.
    replacement_since: Option<Duration>,
    /// For whom another is wanted in its place.
    replace_for: Option<TurnKey>,
}

/// A push that wants a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    /// Whose it is.
    pub(crate) sender: TurnKey,
    /// The token that it was refused with, 0 if with none.
    pub(crate) refused_with: u64,
}

/// What it gets.
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
    /// There is a token that is refused, and no other is fetched yet.
    Doubted {
        /// When one may be.
        until: Duration,
    },
}

/// What comes of a refused token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mend {
    /// Another is fetched from now on.
    Begins,
    /// Another is there or on its way.
    UnderWay,
    /// It stays for now.
    Stays {
        /// Others are accepted with it.
        accepted: bool,
    },
}

impl State {
    /// A push wants a token.
    pub(super) fn on_wanted(&mut self, asker: Asker, now: Duration) -> Wanted {
        self.held.take_if(|held| now >= held.usable_until);
        let Some(held) = &mut self.held else {
            self.wanted = true;
            return self.fetched_soon(now);
        };
        if held.serial > asker.refused_with && held.serves(asker.sender, now) {
            let first = !std::mem::replace(&mut held.used, true);
            return Wanted::Usable {
                serial: held.serial,
                first,
            };
        }
        match held.replace_for(asker.sender, &self.replacements, now) {
            Ok(_) => self.fetched_soon(now),
            Err(until) => Wanted::Doubted { until },
        }
    }

    /// The provider refused this very token. A later one is not touched: many pushes are refused at once.
    pub(super) fn on_refused(&mut self, serial: u64, sender: TurnKey, now: Duration) -> Mend {
        let Some(held) = self.held.as_mut().filter(|held| held.serial == serial) else {
            return Mend::UnderWay;
        };
        held.doubts.note(sender);
        match held.replace_for(sender, &self.replacements, now) {
            Ok(begins) if begins => Mend::Begins,
            Ok(_) => Mend::UnderWay,
            Err(_) => Mend::Stays {
                accepted: held.accepted,
            },
        }
    }

    /// The provider answered to a call with this token, and not about it.
    pub(super) fn on_accepted(&mut self, serial: u64) {
        if let Some(held) = self.held.as_mut().filter(|held| held.serial == serial) {
            held.accepted = true;
            held.doubts.clear();
        }
    }

    /// A fetch succeeded.
    pub(super) fn on_fetched(&mut self, serial: u64, lifetime: Duration, now: Duration) {
        let margin = SAFETY_MARGIN.min(lifetime / 10);
        let replaced_for = self.held.take().and_then(|held| held.replace_for);
        if let Some(sender) = replaced_for {
            self.replacements.note(sender, now);
        }
        *self = Self {
            held: Some(Held {
                serial,
                usable_until: now + lifetime - margin,
                refresh_at: now + lifetime * 4 / 5,
                used: false,
                accepted: false,
                doubts: Doubts::default(),
                next_probe: now,
                replacement_since: replaced_for.map(|_| now),
                replace_for: None,
            }),
            replacements: std::mem::take(&mut self.replacements),
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
        // Refused by both: it is the relay that is.
        self.held
            .take_if(|held| error == TokenError::Refused && !held.doubts.is_empty());
        if let Some(held) = &mut self.held {
            held.used = false;
            held.replace_for = None;
        }
    }

    /// When the next fetch is due; `None` while nobody needs one.
    pub(super) fn fetch_due(&self) -> Option<Duration> {
        match &self.held {
            Some(held) if held.replace_for.is_some() => Some(self.next_try),
            Some(held) if held.used => Some(held.refresh_at.max(self.next_try)),
            Some(_) => None,
            None => self.wanted.then_some(self.next_try),
        }
    }

    fn fetched_soon(&self, now: Duration) -> Wanted {
        if now < self.next_try {
            Wanted::BackingOff { until: self.next_try }
        } else {
            Wanted::Coming
        }
    }
}

impl Held {
    /// Whether it is good enough to call with: not if several senders say that it isn't, but for a probe of another.
    fn serves(&mut self, sender: TurnKey, now: Duration) -> bool {
        if !self.doubts.are_general() {
            return true;
        }
        let is_probe = !self.doubts.has(sender) && now >= self.next_probe;
        if is_probe {
            self.next_probe = now + PROBE_INTERVAL;
        }
        is_probe
    }

    /// Asks for another in its place. `true`: nobody had. `Err`: not before this.
    fn replace_for(
        &mut self,
        sender: TurnKey,
        recent: &Replacements,
        now: Duration,
    ) -> Result<bool, Duration> {
        if self.replace_for.is_some() {
            return Ok(false);
        }
        let unproven = self.replacement_since.filter(|_| !self.accepted);
        if let Some(until) = unproven.map(|since| since + SPACING).filter(|until| now < *until) {
            return Err(until);
        }
        recent.allow(sender, now)?;
        self.replace_for = Some(sender);
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
