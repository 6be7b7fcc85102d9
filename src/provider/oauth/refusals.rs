//! Who was refused with an access token, and for whom it is replaced. Pure; part of [`super::state`].
//!
//! What answers at a device's address is not always the provider as the relay knows it, and the address is the sender's
//! choice. So a 401 is one sender's word, and a sender is whoever has one turn at the provider: any number of devices,
//! and of young instances of one address, count once.

use std::time::Duration;

use sovereign_relay_actors::push::TurnKey;

/// So many senders are several: bounds what is remembered, and what is fetched within [`SPACING`].
const SEVERAL: usize = 3;
/// A sender has one token replaced within this, and a token that replaced a refused one and was never accepted is not
/// replaced again: a stream of refused pushes is then no stream of token requests.
pub(super) const SPACING: Duration = Duration::from_secs(10);

/// Senders that were refused with one token since it was last accepted.
#[derive(Debug, Default)]
pub(super) struct Doubts(Vec<TurnKey>);

impl Doubts {
    pub(super) fn note(&mut self, sender: TurnKey) {
        if !self.has(sender) && !self.are_general() {
            self.0.push(sender);
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, sender: TurnKey) -> bool {
        self.0.contains(&sender)
    }

    /// Several were refused and nobody was accepted: it is the token.
    pub(super) fn are_general(&self) -> bool {
        self.0.len() >= SEVERAL
    }
}

/// For whom tokens were replaced within [`SPACING`], oldest first.
#[derive(Debug, Default)]
pub(super) struct Replacements(Vec<(TurnKey, Duration)>);

impl Replacements {
    /// Whether one may be fetched for `sender`. `Err`: from when on.
    pub(super) fn allow(&self, sender: TurnKey, now: Duration) -> Result<(), Duration> {
        let recent = || self.0.iter().filter(|(_, at)| now < *at + SPACING);
        let own = recent().find(|(of, _)| *of == sender);
        let oldest = recent().next().filter(|_| recent().count() >= SEVERAL);
        own.or(oldest).map_or(Ok(()), |(_, at)| Err(*at + SPACING))
    }

    /// One was fetched for `sender`.
    pub(super) fn note(&mut self, sender: TurnKey, now: Duration) {
        self.0.retain(|(_, at)| now < *at + SPACING);
        self.0.push((sender, now));
    }
}
