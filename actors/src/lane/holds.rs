//! What a provider asked to be left alone with, and until when.
//!
//! Fed with every throttling answer; asked before a push joins the queue and again when its turn comes, so that
//! a burst that was already waiting behind the first 429 costs no call.
//!
//! RFC 9110, 10.2.3 (Retry-After). FCM without one: a minute. WNS 406 names a channel, not the project.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use sovereign_relay_protocol::push::{PushAnswer, Reason};

use super::hint;
use crate::ports::{Failure, Hold, TokenHash};

/// Most tokens held at a time, a megabyte or so. When full, the hold that would end first is forgotten: the worst
/// of it is one more call, which the provider answers as before.
pub(super) const HELD_TOKENS: usize = 10_000;
/// A project-wide throttle without a Retry-After. FCM: "default to 60 seconds".
const PROVIDER_DEFAULT: Duration = Duration::from_secs(60);
/// A throttled device without a Retry-After. Apple names no time; the burst that caused it is over by then.
const TOKEN_DEFAULT: Duration = Duration::from_secs(15);

/// The holds of one provider.
#[derive(Debug, Default)]
pub(super) struct Holds {
    provider: Option<Duration>,
    tokens: HashMap<TokenHash, Duration>,
    ends: BTreeSet<(Duration, TokenHash)>,
}

impl Holds {
    /// The answer to a push for `token` that needs no call to know.
    pub(super) fn check(&mut self, token: TokenHash, now: Duration) -> Option<PushAnswer> {
        self.expire(now);
        if let Some(until) = self.provider {
            return Some(answer(Reason::ProviderThrottled, until, now));
        }
        let until = self.tokens.get(&token)?;
        Some(answer(Reason::DeviceThrottled, *until, now))
    }

    /// Remembers what a failed push asks for. A hold is made longer by a later answer and never shorter: answers
    /// overtake each other.
    pub(super) fn note(&mut self, token: TokenHash, failure: &Failure, now: Duration) {
        let until = now.saturating_add(hint::clamp(retry_after(failure).unwrap_or_default()));
        match failure.hold {
            Hold::Nothing => {}
            Hold::Provider => self.provider = self.provider.max(Some(until)),
            Hold::Token => self.hold_token(token, until, now),
        }
    }

    /// Whether everything is held.
    pub(super) fn holds_everything(&self, now: Duration) -> bool {
        self.provider.is_some_and(|until| now < until)
    }

    /// Tokens held.
    #[cfg(test)]
    pub(super) fn tokens(&self) -> usize {
        debug_assert_eq!(self.tokens.len(), self.ends.len());
        self.tokens.len()
    }

    fn hold_token(&mut self, token: TokenHash, until: Duration, now: Duration) {
        self.expire(now);
        if let Some(earlier) = self.tokens.get(&token).copied() {
            if earlier >= until {
                return;
            }
            self.ends.remove(&(earlier, token));
        } else if self.tokens.len() >= HELD_TOKENS
            && let Some((_, soonest)) = self.ends.pop_first()
        {
            self.tokens.remove(&soonest);
        }
        self.tokens.insert(token, until);
        self.ends.insert((until, token));
    }

    fn expire(&mut self, now: Duration) {
        self.provider = self.provider.filter(|until| now < *until);
        while let Some((until, token)) = self.ends.first().copied() {
            if now < until {
                return;
            }
            self.ends.pop_first();
            self.tokens.remove(&token);
        }
    }
}

/// How long a failed push asks to wait: what the provider said, else what its kind of throttling makes likely.
pub(super) fn retry_after(failure: &Failure) -> Option<Duration> {
    failure.retry_after.or(match failure.hold {
        Hold::Nothing => None,
        Hold::Token => Some(TOKEN_DEFAULT),
        Hold::Provider => Some(PROVIDER_DEFAULT),
    })
}

fn answer(reason: Reason, until: Duration, now: Duration) -> PushAnswer {
    PushAnswer::failed(reason, true, Some(hint::seconds(until.saturating_sub(now))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ports::Health;

    const A: TokenHash = TokenHash(1);
    const B: TokenHash = TokenHash(2);

    fn throttled(hold: Hold, retry_after_millis: Option<u64>) -> Failure {
        Failure {
            reason: Reason::ProviderThrottled,
            retryable: true,
            retry_after: retry_after_millis.map(Duration::from_millis),
            hold,
            health: Health::Answered,
        }
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_project_wide_retry_after_of_37_seconds_answers_everybody_with_the_rest() {
        let mut holds = Holds::default();
        holds.note(A, &throttled(Hold::Provider, Some(37_000)), ms(0));
        let rest = |holds: &mut Holds, at| holds.check(B, at).and_then(|answer| answer.retry_after_seconds);
        assert_eq!(rest(&mut holds, ms(0)), Some(37));
        assert_eq!(rest(&mut holds, ms(1)), Some(37));
        assert_eq!(rest(&mut holds, ms(36_999)), Some(1));
        assert_eq!(rest(&mut holds, ms(37_000)), None);
        let answer = PushAnswer::failed(Reason::ProviderThrottled, true, Some(37));
        holds.note(A, &throttled(Hold::Provider, Some(37_000)), ms(40_000));
        assert_eq!(holds.check(A, ms(40_000)), Some(answer));
    }

    #[test]
    fn a_throttled_device_holds_back_nobody_else() {
        let mut holds = Holds::default();
        holds.note(A, &throttled(Hold::Token, Some(5_000)), ms(0));
        assert_eq!(
            holds.check(A, ms(0)),
            Some(PushAnswer::failed(Reason::DeviceThrottled, true, Some(5)))
        );
        assert_eq!(holds.check(B, ms(0)), None);
        assert_eq!(holds.check(A, ms(5_000)), None);
        assert_eq!(holds.tokens(), 0);
    }

    #[test]
    fn without_a_retry_after_a_default_holds() {
        let mut holds = Holds::default();
        holds.note(A, &throttled(Hold::Token, None), ms(0));
        assert!(holds.check(A, TOKEN_DEFAULT - ms(1)).is_some());
        assert!(holds.check(A, TOKEN_DEFAULT).is_none());
        holds.note(A, &throttled(Hold::Provider, None), ms(20_000));
        assert!(holds.check(B, ms(79_999)).is_some());
        assert!(holds.check(B, ms(80_000)).is_none());
    }

    #[test]
    fn an_absurd_retry_after_is_clamped_and_a_failure_without_a_hold_holds_nothing() {
        let mut holds = Holds::default();
        holds.note(A, &throttled(Hold::Nothing, Some(9_000)), ms(0));
        assert_eq!(holds.check(A, ms(0)), None);
        holds.note(A, &throttled(Hold::Provider, Some(u64::MAX)), ms(0));
        assert_eq!(
            holds
                .check(A, ms(0))
                .and_then(|answer| answer.retry_after_seconds),
            Some(hint::LONGEST_RETRY_AFTER.as_secs())
        );
        assert!(holds.check(A, hint::LONGEST_RETRY_AFTER).is_none());
        holds.note(A, &throttled(Hold::Token, Some(0)), ms(0));
        assert!(
            holds.check(A, ms(999)).is_some(),
            "0 means soon, and soon is a second"
        );
    }

    #[test]
    fn a_full_memory_forgets_the_hold_that_ends_first() {
        let mut holds = Holds::default();
        let most = u64::try_from(HELD_TOKENS).unwrap();
        for number in 0..most + 100 {
            holds.note(
                TokenHash(number.into()),
                &throttled(Hold::Token, Some(10_000 + number)),
                ms(0),
            );
        }
        assert_eq!(holds.tokens(), HELD_TOKENS);
        assert!(holds.check(TokenHash(99), ms(0)).is_none());
        assert!(holds.check(TokenHash(100), ms(0)).is_some());
        assert!(holds.check(A, ms(1_000_000)).is_none());
        assert_eq!(holds.tokens(), 0);
    }

    proptest! {
        #[test]
        fn a_hold_lasts_exactly_as_long_as_the_longest_that_was_asked_for(
            notes in proptest::collection::vec((0..4_u128, 0..90_000_u64, 0..30_000_u64, any::<bool>()), 1..60),
        ) {
            let (mut holds, mut now) = (Holds::default(), Duration::ZERO);
            let (mut provider, mut tokens) = (Duration::ZERO, [Duration::ZERO; 4]);
            for (token, retry_after, step, project) in notes {
                now += ms(step);
                let hold = if project { Hold::Provider } else { Hold::Token };
                holds.note(TokenHash(token), &throttled(hold, Some(retry_after)), now);
                let until = now + ms(retry_after).max(Duration::from_secs(1));
                let slot = if project { &mut provider } else { &mut tokens[usize::try_from(token).unwrap()] };
                *slot = until.max(*slot);
                for (number, until) in (0..).zip(tokens) {
                    let held = holds.check(TokenHash(number), now);
                    prop_assert_eq!(held.is_some(), now < until.max(provider));
                    if let Some(answer) = held {
                        let rest = answer.retry_after_seconds.unwrap();
                        let until = if now < provider { provider } else { until };
                        prop_assert!(now + Duration::from_secs(rest) >= until);
                        prop_assert!(now + Duration::from_secs(rest - 1) < until);
                    }
                }
            }
        }
    }
}
