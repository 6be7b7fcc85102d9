//! When to fetch an access token. Pure: time comes in, the keeper's task does the waiting.
//!
//! ```text
//!            wanted                fetched
//!   Empty ----------> (fetch due) ---------> Held --- 80 % of its life over and used since ---> (fetch due)
//!     ^                    | failed            | refused by the provider, or expired
//!     |                    v                   |
//!     |               back-off, then due       |
//!     +----------------------------------------+
//! ```

use std::time::Duration;

/// First wait after a failed fetch; doubles up to [`LONGEST_BACKOFF`].
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
/// Longest wait after failed fetches: a recovered token endpoint is noticed within this.
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// A lifetime beyond this is not believed.
const LONGEST_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// When a token that replaced a refused one is refused too, the fault is not the token: the next fetch waits, so that
/// a stream of pushes is not a stream of token requests.
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

impl State {
    /// A push wants a token: the serial of a usable one, or nothing, and then a fetch is due.
    pub(super) fn on_wanted(&mut self, now: Duration) -> Option<u64> {
        if let Some(held) = self.held.as_mut().filter(|held| now < held.usable_until) {
            held.used = true;
            return Some(held.serial);
        }
        self.held = None;
        self.wanted = true;
        None
    }

    /// The provider refused this very token. A later one is not touched: many pushes are refused at once. Returns
    /// whether another token can be had at once.
    pub(super) fn on_refused(&mut self, serial: u64) -> bool {
        let Some(held) = self.held.take_if(|held| held.serial == serial) else {
            return self.held.is_some() || !self.refused_again;
        };
        self.wanted = true;
        self.replaces_refused = true;
        self.refused_again = held.replaces_refused_since.is_some();
        if let Some(fetched) = held.replaces_refused_since {
            self.next_try = fetched + REFUSED_AGAIN_BACKOFF;
        }
        !self.refused_again
    }

    /// A fetch succeeded.
    pub(super) fn on_fetched(&mut self, serial: u64, lifetime: Duration, now: Duration) {
        let lifetime = lifetime.min(LONGEST_LIFETIME);
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
    pub(super) fn on_failed(&mut self, now: Duration, jitter: f64) {
        let backoff = FIRST_BACKOFF
            .saturating_mul(1 << self.failures.min(8))
            .min(LONGEST_BACKOFF);
        self.failures = self.failures.saturating_add(1);
        self.next_try = now + backoff.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn nothing_is_fetched_until_a_push_wants_a_token() {
        let mut state = State::default();
        assert_eq!(state.fetch_due(), None);
        assert_eq!(state.on_wanted(HOUR), None);
        assert!(state.fetch_due().unwrap() <= HOUR);
    }

    #[test]
    fn a_used_token_is_refreshed_ahead_and_an_unused_one_is_left_to_expire() {
        let mut state = State::default();
        state.on_fetched(1, HOUR, Duration::ZERO);
        assert_eq!(state.fetch_due(), None);
        assert_eq!(state.on_wanted(Duration::from_secs(60)), Some(1));
        assert_eq!(state.fetch_due(), Some(HOUR * 4 / 5));
    }

    #[test]
    fn an_expired_token_is_never_handed_out() {
        let mut state = State::default();
        state.on_fetched(1, HOUR, Duration::ZERO);
        assert_eq!(state.on_wanted(HOUR - Duration::from_secs(6)), Some(1));
        assert_eq!(state.on_wanted(HOUR - Duration::from_secs(5)), None);
        assert_eq!(state.fetch_due(), Some(Duration::ZERO));
    }

    #[test]
    fn a_refusal_of_an_older_token_leaves_the_newer_one() {
        let mut state = State::default();
        state.on_fetched(2, HOUR, Duration::ZERO);
        state.on_refused(1);
        assert_eq!(state.on_wanted(Duration::ZERO), Some(2));
        state.on_refused(2);
        assert_eq!(state.on_wanted(Duration::ZERO), None);
    }

    #[test]
    fn a_second_refusal_in_a_row_waits() {
        let mut state = State::default();
        state.on_fetched(1, HOUR, Duration::ZERO);
        state.on_refused(1);
        assert_eq!(
            state.fetch_due(),
            Some(Duration::ZERO),
            "the first refusal is mended at once"
        );
        state.on_fetched(2, HOUR, Duration::from_secs(1));
        assert!(!state.on_refused(2) && !state.on_refused(2));
        assert_eq!(state.fetch_due(), Some(Duration::from_secs(11)));
    }

    #[test]
    fn failures_back_off_to_ten_seconds_and_a_success_forgets_them() {
        let mut state = State::default();
        state.on_wanted(Duration::ZERO);
        for _ in 0..20 {
            state.on_failed(HOUR, 1.0);
        }
        assert_eq!(state.fetch_due(), Some(HOUR + LONGEST_BACKOFF));
        state.on_fetched(1, HOUR, HOUR);
        state.on_refused(1);
        assert_eq!(state.fetch_due(), Some(Duration::ZERO));
    }

    #[test]
    fn a_day_of_expiries_needs_one_fetch_each() {
        let mut state = State::default();
        let mut fetches = 0;
        for second in 0..24 * 3600 {
            let now = Duration::from_secs(second);
            state.on_wanted(now);
            if state.fetch_due().is_some_and(|due| due <= now) {
                fetches += 1;
                state.on_fetched(fetches, HOUR, now);
                assert_eq!(state.on_wanted(now), Some(fetches));
            }
        }
        assert_eq!(fetches, 30, "one each 48 minutes");
    }

    proptest! {
        #[test]
        fn a_token_is_handed_out_only_within_its_life(lifetime in 0u64..200_000, asked in 0u64..300_000) {
            let mut state = State::default();
            state.on_fetched(1, Duration::from_secs(lifetime), Duration::ZERO);
            if state.on_wanted(Duration::from_secs(asked)).is_some() {
                prop_assert!(asked < lifetime);
            }
        }
    }
}
