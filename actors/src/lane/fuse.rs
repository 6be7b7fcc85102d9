//! The fuses of one verdict scope: too many devices gone at once are a fault of the relay's, not theirs.
//!
//! The judge notes every answer that says something about a token, then asks whether verdicts are held. There are
//! three, over the last five minutes' distinct tokens:
//!
//! | fuse | opens at | holds |
//! |---|---|---|
//! | conditional | 10 bad, more than a fifth, an instance counting for 5 invented ones | conditional verdicts |
//! | single instance | the same without that cap, while one instance alone is active | that instance's |
//! | certain | more than half of 50 tokens that were `sent` before | all verdicts |
//!
//! The second is why an instance alone on a relay is protected by its own answers, and yet its invented tokens
//! never hold another's verdicts, whoever comes next.
//!
//! ```text
//!   Closed --- share above the limit ---> Open, uneasy --- under 5 % ---> Open, calm --- for 10 minutes ---> Closed
//!                                            ^------------ 5 % or more ------'
//! ```
//!
//! Time passes between answers too: expiries are replayed one moment after the other, so that the fuses stand as
//! if somebody had looked all the while.

use std::time::Duration;

use sovereign_relay_protocol::id::InstanceId;

use super::{
    sent_memory::SentMemory,
    window::{Entry, Seen, Share, Window},
};
use crate::ports::TokenHash;

/// How long it must stay calm before it closes.
const CALM: Duration = Duration::from_secs(600);
/// Calm is less than this share of bad tokens.
const CALM_BELOW_PERCENT: usize = 5;
/// Single-instance fuses kept. An instance is alone only after all others were silent for five minutes, and a
/// silent instance's fuse closes within fifteen, so four are never open at once; were they, the eldest would go.
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
    pub(super) instance: Option<InstanceId>,
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
    single: Vec<(InstanceId, Phase)>,
    changes: Vec<FuseChange>,
}

impl Fuses {
    /// What the provider said of a token.
    pub(super) fn note(&mut self, token: TokenHash, instance: InstanceId, seen: Seen, now: Duration) {
        self.advance(now);
        if seen == Seen::Sent {
            self.sent.insert(token, now);
        }
        let known = self.sent.contains(token, now);
        self.window.note(
            token,
            Entry {
                at: now,
                instance,
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

    /// Whether this instance's conditional verdicts are held.
    pub(super) fn holds_conditional(&self, instance: InstanceId) -> bool {
        self.is_open(FuseName::Conditional)
            || self.is_open(FuseName::Certain)
            || self.single.iter().any(|(held, _)| *held == instance)
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
        for (instance, phase) in &mut self.single {
            phase.observe(&CONDITIONAL, self.window.of_instance(*instance), now);
        }
        self.observe_the_only_one();
    }

    fn observe_the_only_one(&mut self) {
        let Some(instance) = self.window.only_instance() else {
            return;
        };
        let share = self.window.of_instance(instance);
        let is_held = self.single.iter().any(|(held, _)| *held == instance);
        if is_held || !CONDITIONAL.is_passed_by(share) {
            return;
        }
        if self.single.len() >= SINGLE_INSTANCES {
            self.single.remove(0);
        }
        self.single.push((instance, Phase::Open { calm_since: None }));
        self.changed(FuseName::SingleInstance, true, Some(instance), share);
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
            let (instance, _) = self.single.remove(index);
            self.changed(
                FuseName::SingleInstance,
                false,
                Some(instance),
                self.window.of_instance(instance),
            );
        }
    }

    fn changed(&mut self, fuse: FuseName, open: bool, instance: Option<InstanceId>, share: Share) {
        self.changes.push(FuseChange {
            fuse,
            open,
            instance,
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
