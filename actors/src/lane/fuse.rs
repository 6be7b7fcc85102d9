//! The fuses of one verdict scope: too many devices gone at once are a fault of the relay's, not theirs.
//!
//! The judge notes every answer that says something about a token, then asks whether verdicts are held. There are
//! three, over the last five minutes' distinct tokens:
//!
//! | fuse | opens at | holds |
//! |---|---|---|
//! | conditional | 10 bad, more than a fifth, a key counting for 5 invented ones | conditional verdicts |
//! | single instance | the same without that cap, while one key alone is active | that key's |
//! | certain | more than half of 50 tokens that were `sent` before | all verdicts |
//!
//! A key is an instance, or the young instances of one address together: anybody can enroll many of those. The second
//! is why an instance alone on a relay is protected by its own answers, and yet its invented tokens never hold another's
//! verdicts, whoever comes next.
//!
//! ```text
//!   Closed --- share above the limit ---> Open, uneasy --- under 5 % ---> Open, calm --- for 10 minutes ---> Closed
//!                                            ^------------ 5 % or more ------'
//! ```
//!
//! Time passes between answers too: expiries are replayed one moment after the other, so that the fuses stand as
//! if somebody had looked all the while.

use std::time::Duration;

use super::{
    sent_memory::SentMemory,
    window::{Entry, Seen, Share, Window},
};
use crate::{ports::TokenHash, push::TurnKey};

/// How long it must stay calm before it closes.
const CALM: Duration = Duration::from_secs(600);
/// Calm is less than this share of bad tokens.
const CALM_BELOW_PERCENT: usize = 5;
/// Single-instance fuses kept. A key is alone only after all others were silent for five minutes, and a silent one's
/// fuse closes within fifteen, so four are never open at once; were they, the eldest would go.
const SINGLE_INSTANCES: usize = 4;

const CONDITIONAL: Threshold = Threshold {
    fewest_bad: 10,
    fewest_tokens: 0,
    above_percent: 20,
};
const CERTAIN: Threshold = Threshold {
    fewest_bad: 0,
    fewest_tokens: 50,
    above_percent: 50,
};

struct Threshold {
    fewest_bad: usize,
    fewest_tokens: usize,
    above_percent: usize,
}

/// Which fuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FuseName {
    Conditional,
    SingleInstance,
    Certain,
}

impl FuseName {
    /// As a label.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Conditional => "conditional",
            Self::SingleInstance => "single_instance",
            Self::Certain => "certain",
        }
    }
}

/// A fuse opened or closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FuseChange {
    pub(super) fuse: FuseName,
    pub(super) open: bool,
    /// With [`FuseName::SingleInstance`].
    pub(super) key: Option<TurnKey>,
    pub(super) share: Share,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Phase {
    #[default]
    Closed,
    Open {
        calm_since: Option<Duration>,
    },
}

#[derive(Debug, Default)]
pub(super) struct Fuses {
    window: Window,
    sent: SentMemory,
    conditional: Phase,
    certain: Phase,
    single: Vec<(TurnKey, Phase)>,
    changes: Vec<FuseChange>,
}

impl Fuses {
    /// What the provider said of a token.
    pub(super) fn note(&mut self, token: TokenHash, key: TurnKey, seen: Seen, now: Duration) {
        self.advance(now);
        if seen == Seen::Sent {
            self.sent.insert(token, now);
        }
        let known = self.sent.contains(token, now);
        self.window.note(
            token,
            Entry {
                at: now,
                key,
                seen,
                known,
            },
        );
        self.observe(now);
    }

    /// Whether the token was `sent` to in the last day, or perhaps never.
    pub(super) fn was_sent(&mut self, token: TokenHash, now: Duration) -> bool {
        self.sent.contains(token, now)
    }

    /// Lets the time pass up to `now`.
    pub(super) fn advance(&mut self, now: Duration) {
        self.sent.advance(now);
        while let Some(moment) = self.window.next_expiry().filter(|expiry| *expiry <= now) {
            self.close_the_calm(moment);
            self.window.expire(moment);
            self.observe(moment);
        }
        self.close_the_calm(now);
    }

    /// Whether this key's conditional verdicts are held.
    pub(super) fn holds_conditional(&self, key: TurnKey) -> bool {
        self.is_open(FuseName::Conditional)
            || self.is_open(FuseName::Certain)
            || self.single.iter().any(|(held, _)| *held == key)
    }

    /// Whether certain verdicts are held too.
    pub(super) fn holds_certain(&self) -> bool {
        self.is_open(FuseName::Certain)
    }

    /// Whether it holds anybody's verdicts.
    pub(super) fn is_open(&self, fuse: FuseName) -> bool {
        match fuse {
            FuseName::Conditional => self.conditional != Phase::Closed,
            FuseName::Certain => self.certain != Phase::Closed,
            FuseName::SingleInstance => !self.single.is_empty(),
        }
    }

    /// What opened and closed since the last time.
    pub(super) fn take_changes(&mut self) -> Vec<FuseChange> {
        std::mem::take(&mut self.changes)
    }

    /// Tokens in the window.
    #[cfg(test)]
    pub(super) fn tokens(&self) -> usize {
        self.window.len()
    }

    fn observe(&mut self, now: Duration) {
        let (shared, known) = (self.window.shared(), self.window.known());
        if self.conditional.observe(&CONDITIONAL, shared, now) {
            self.changed(FuseName::Conditional, true, None, shared);
        }
        if self.certain.observe(&CERTAIN, known, now) {
            self.changed(FuseName::Certain, true, None, known);
        }
        for (key, phase) in &mut self.single {
            phase.observe(&CONDITIONAL, self.window.of_key(*key), now);
        }
        self.observe_the_only_one();
    }

    fn observe_the_only_one(&mut self) {
        let Some(key) = self.window.only_key() else {
            return;
        };
        let share = self.window.of_key(key);
        let is_held = self.single.iter().any(|(held, _)| *held == key);
        if is_held || !CONDITIONAL.is_passed_by(share) {
            return;
        }
        if self.single.len() >= SINGLE_INSTANCES {
            self.single.remove(0);
        }
        self.single.push((key, Phase::Open { calm_since: None }));
        self.changed(FuseName::SingleInstance, true, Some(key), share);
    }

    fn close_the_calm(&mut self, now: Duration) {
        if self.conditional.close_if_calm(now) {
            self.changed(FuseName::Conditional, false, None, self.window.shared());
        }
        if self.certain.close_if_calm(now) {
            self.changed(FuseName::Certain, false, None, self.window.known());
        }
        while let Some(index) = self
            .single
            .iter_mut()
            .position(|(_, phase)| phase.close_if_calm(now))
        {
            let (key, _) = self.single.remove(index);
            self.changed(
                FuseName::SingleInstance,
                false,
                Some(key),
                self.window.of_key(key),
            );
        }
    }

    fn changed(&mut self, fuse: FuseName, open: bool, key: Option<TurnKey>, share: Share) {
        self.changes.push(FuseChange {
            fuse,
            open,
            key,
            share,
        });
    }
}

impl Phase {
    /// The share is this from now on. `true`: it just opened.
    fn observe(&mut self, threshold: &Threshold, share: Share, now: Duration) -> bool {
        match self {
            Self::Closed if threshold.is_passed_by(share) => {
                *self = Self::Open { calm_since: None };
                true
            }
            Self::Closed => false,
            Self::Open { calm_since } => {
                *calm_since = share.is_calm().then(|| calm_since.unwrap_or(now));
                false
            }
        }
    }

    /// The share has been the same up to now. `true`: it just closed.
    fn close_if_calm(&mut self, now: Duration) -> bool {
        let Self::Open {
            calm_since: Some(since),
        } = *self
        else {
            return false;
        };
        let closes = now.saturating_sub(since) >= CALM;
        if closes {
            *self = Self::Closed;
        }
        closes
    }
}

impl Threshold {
    fn is_passed_by(&self, share: Share) -> bool {
        share.bad >= self.fewest_bad
            && share.tokens >= self.fewest_tokens
            && share.bad * 100 > share.tokens * self.above_percent
    }
}

impl Share {
    fn is_calm(self) -> bool {
        self.bad == 0 || self.bad * 100 < self.tokens * CALM_BELOW_PERCENT
    }
}

#[cfg(test)]
mod tests;
