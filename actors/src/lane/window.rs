//! The distinct tokens that one scope's provider judged lately, and what it said of each last.
//!
//! Only the fuses use it. Kept with running sums, so that noting an answer is O(log n).
//!
//! An instance can invent tokens, and anybody can enroll some, so what one instance, or the young ones of one address,
//! alone say is bad counts for a few only: the rest is left out of bad and of all ([`Window::shared`]). That is the key
//! by which they take turns as well. A token that was `sent` to before is not invented and always counts.
//!
//! Invariant: the sums equal what counting the entries anew would give (the fuses' tests do).

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use crate::{ports::TokenHash, push::TurnKey};

/// How long an answer counts.
pub(super) const LENGTH: Duration = Duration::from_secs(300);
/// Most tokens kept, 10 MB or so. When full, the oldest goes and the window is shorter than its five minutes.
/// That errs towards "not gone": cut five minutes into stretches of this many tokens; if more than a fifth of all
/// were bad, so was more than a fifth of some stretch, and the fuse opened then.
pub(super) const TOKENS: usize = 65_536;
/// Bad tokens of one key that count although they never worked.
const COUNTED_PER_KEY: usize = 5;

/// What the provider said of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// It took the push.
    Sent,
    /// Gone, if nothing is misconfigured.
    Conditional,
    /// Gone.
    Certain,
}

/// The newest answer about a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) at: Duration,
    pub(super) key: TurnKey,
    pub(super) seen: Seen,
    /// The token was `sent` to before, or now.
    pub(super) known: bool,
}

/// Some of the tokens, and how many of them are bad.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Share {
    pub(super) bad: usize,
    pub(super) tokens: usize,
}

#[derive(Debug, Default)]
pub(super) struct Window {
    entries: HashMap<TokenHash, (u64, Entry)>,
    /// Oldest first.
    order: BTreeMap<u64, TokenHash>,
    next_number: u64,
    keys: HashMap<TurnKey, Tally>,
    known: Share,
    counted: Share,
}

/// One key's tokens.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Tally {
    tokens: usize,
    bad_known: usize,
    bad_unknown: usize,
}

impl Window {
    /// An answer, newer than all before.
    pub(super) fn note(&mut self, token: TokenHash, entry: Entry) {
        if !self.remove(token) && self.entries.len() >= TOKENS {
            self.remove_oldest();
        }
        self.next_number += 1;
        self.order.insert(self.next_number, token);
        self.entries.insert(token, (self.next_number, entry));
        self.recount(&entry, |count| *count += 1);
    }

    /// When the oldest answer stops to count.
    pub(super) fn next_expiry(&self) -> Option<Duration> {
        let (_, token) = self.order.first_key_value()?;
        self.entries
            .get(token)
            .map(|(_, entry)| entry.at.saturating_add(LENGTH))
    }

    /// Forgets what no longer counts.
    pub(super) fn expire(&mut self, now: Duration) {
        while self.next_expiry().is_some_and(|expiry| expiry <= now) {
            self.remove_oldest();
        }
    }

    /// Conditionally bad ones of all tokens, no key counting for more than its few.
    pub(super) fn shared(&self) -> Share {
        self.counted
    }

    /// Conditionally bad ones of one key's tokens, all of them.
    pub(super) fn of_key(&self, key: TurnKey) -> Share {
        let tally = self.keys.get(&key).copied().unwrap_or_default();
        Share {
            bad: tally.bad_known + tally.bad_unknown,
            tokens: tally.tokens,
        }
    }

    /// Certainly gone ones of the tokens that were `sent` to before.
    pub(super) fn known(&self) -> Share {
        self.known
    }

    /// The key that alone is active, if so.
    pub(super) fn only_key(&self) -> Option<TurnKey> {
        let mut active = self.keys.keys();
        active.next().filter(|_| active.next().is_none()).copied()
    }

    /// Tokens.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn remove_oldest(&mut self) {
        if let Some((_, token)) = self.order.first_key_value() {
            self.remove(*token);
        }
    }

    fn remove(&mut self, token: TokenHash) -> bool {
        let Some((number, entry)) = self.entries.remove(&token) else {
            return false;
        };
        self.order.remove(&number);
        self.recount(&entry, |count| *count -= 1);
        true
    }

    fn recount(&mut self, entry: &Entry, change: fn(&mut usize)) {
        let tally = self.keys.entry(entry.key).or_default();
        let before = tally.counted();
        change(&mut tally.tokens);
        match (entry.seen, entry.known) {
            (Seen::Conditional, true) => change(&mut tally.bad_known),
            (Seen::Conditional, false) => change(&mut tally.bad_unknown),
            (Seen::Sent | Seen::Certain, _) => {}
        }
        let after = tally.counted();
        if tally.tokens == 0 {
            self.keys.remove(&entry.key);
        }
        self.counted.bad = self.counted.bad + after.bad - before.bad;
        self.counted.tokens = self.counted.tokens + after.tokens - before.tokens;
        if entry.known {
            change(&mut self.known.tokens);
            if entry.seen == Seen::Certain {
                change(&mut self.known.bad);
            }
        }
    }
}

impl Tally {
    fn counted(&self) -> Share {
        let left_out = self.bad_unknown.saturating_sub(COUNTED_PER_KEY);
        Share {
            bad: self.bad_known + self.bad_unknown - left_out,
            tokens: self.tokens - left_out,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_forgets_its_oldest_token_and_stays_in_balance() {
        let mut window = Window::default();
        let key = TurnKey::Group(1);
        let most = u64::try_from(TOKENS).unwrap();
        for number in 0..most + 500 {
            let seen = if number < 500 {
                Seen::Conditional
            } else {
                Seen::Sent
            };
            let at = Duration::from_millis(number / 1_000);
            window.note(
                TokenHash(number.into()),
                Entry {
                    at,
                    key,
                    seen,
                    known: true,
                },
            );
        }
        assert_eq!(window.len(), TOKENS);
        assert_eq!(window.order.len(), TOKENS);
        assert_eq!(
            window.shared(),
            Share {
                bad: 0,
                tokens: TOKENS
            }
        );
        window.expire(LENGTH + Duration::from_secs(600));
        assert_eq!((window.len(), window.order.len(), window.keys.len()), (0, 0, 0));
        assert_eq!(
            (window.shared(), window.known()),
            (Share::default(), Share::default())
        );
    }
}
