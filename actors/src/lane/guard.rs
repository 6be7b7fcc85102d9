//! The guard of one verdict scope: is a conditional verdict proven?
//!
//! "Bad device token" also comes when the relay's topic, environment or project is wrong, and then for every
//! token. A push that was accepted a while ago, and few bad tokens since, show that the fault is the token's.
//!
//! The judge notes every answer of the scope here and asks for each conditional one, after noting it.
//!
//! ```text
//!   Unproven --- sent ---> Proven (0 bad since)
//!                            | a bad token: counted, distinct
//!                            | more than 3, or the last `sent` 24 h ago: unproven until the next `sent`
//! ```
//!
//! Hashes of bad tokens are kept no longer than the proof they stand against.

use std::time::Duration;

use crate::ports::TokenHash;

/// How long a `sent` proves the relay's side to be right.
const SENT_PROVES: Duration = Duration::from_secs(24 * 3_600);
/// Distinct bad tokens in a row that may still be chance.
const BAD_IN_A_ROW: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Guard {
    sent_at: Option<Duration>,
    /// Distinct bad tokens since then; never more than one above the limit, since more change nothing.
    bad: Vec<TokenHash>,
}

impl Guard {
    /// A push was accepted.
    pub(super) fn sent(&mut self, now: Duration) {
        self.sent_at = Some(now);
        self.bad.clear();
    }

    /// A token was called bad conditionally.
    pub(super) fn bad(&mut self, token: TokenHash, now: Duration) {
        self.advance(now);
        let counts = self.sent_at.is_some() && self.bad.len() <= BAD_IN_A_ROW;
        if counts && !self.bad.contains(&token) {
            self.bad.push(token);
        }
    }

    /// Whether a conditional verdict may be believed.
    pub(super) fn proves(&mut self, now: Duration) -> bool {
        self.advance(now);
        self.sent_at.is_some() && self.bad.len() <= BAD_IN_A_ROW
    }

    /// Forgets a proof that is too old, and what stood against it.
    pub(super) fn advance(&mut self, now: Duration) {
        let is_over = |sent_at| now.saturating_sub(sent_at) > SENT_PROVES;
        if self.sent_at.is_some_and(is_over) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Event {
        Sent,
        Bad(u128),
    }

    proptest! {
        #[test]
        fn it_says_what_the_whole_history_says(
            history in proptest::collection::vec((
                prop_oneof![1 => Just(Event::Sent), 3 => (0..6_u128).prop_map(Event::Bad)],
                prop_oneof![20 => 0..1_000_u64, 1 => 80_000..90_000_u64],
            ), 1..60),
        ) {
            let (mut guard, mut now) = (Guard::default(), Duration::ZERO);
            let mut past: Vec<(Duration, Event)> = Vec::new();
            for (event, seconds) in history {
                now += Duration::from_secs(seconds);
                match event {
                    Event::Sent => guard.sent(now),
                    Event::Bad(token) => guard.bad(TokenHash(token), now),
                }
                past.push((now, event));
                let last_sent = past.iter().rposition(|(_, event)| matches!(event, Event::Sent));
                let expected = last_sent.is_some_and(|index| {
                    let bad: HashSet<u128> = past[index..].iter().filter_map(|(_, event)| match event {
                        Event::Bad(token) => Some(*token),
                        Event::Sent => None,
                    }).collect();
                    now - past[index].0 <= Duration::from_secs(86_400) && bad.len() <= 3
                });
                prop_assert_eq!(guard.proves(now), expected);
                prop_assert!(guard.bad.len() <= 4);
            }
        }
    }

    #[test]
    fn without_a_sent_nothing_is_proven_and_a_sent_proves_for_a_day() {
        let mut guard = Guard::default();
        assert!(!guard.proves(Duration::ZERO));
        guard.sent(Duration::ZERO);
        assert!(guard.proves(SENT_PROVES));
        assert!(!guard.proves(SENT_PROVES + Duration::from_millis(1)));
    }

    #[test]
    fn a_bad_token_is_forgotten_with_the_proof_it_stood_against_and_not_noted_without_one() {
        let mut guard = Guard::default();
        guard.bad(TokenHash(1), Duration::ZERO);
        assert!(guard.bad.is_empty());
        guard.sent(Duration::ZERO);
        guard.bad(TokenHash(1), SENT_PROVES);
        guard.advance(SENT_PROVES);
        assert_eq!(guard.bad.len(), 1);
        guard.advance(SENT_PROVES + Duration::from_millis(1));
        assert!(guard.bad.is_empty());
    }

    #[test]
    fn the_fourth_distinct_token_in_a_row_is_one_too_many_until_the_next_sent() {
        let mut guard = Guard::default();
        guard.sent(Duration::ZERO);
        for token in [1, 2, 3, 1, 2, 3] {
            guard.bad(TokenHash(token), Duration::ZERO);
            assert!(guard.proves(Duration::ZERO));
        }
        guard.bad(TokenHash(4), Duration::ZERO);
        guard.bad(TokenHash(1), Duration::ZERO);
        assert!(!guard.proves(Duration::ZERO));
        guard.sent(Duration::ZERO);
        assert!(guard.proves(Duration::ZERO));
    }
}
