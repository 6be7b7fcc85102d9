//! What an instance's state remembers over time: tokens by hash, and how often something happened lately.
//!
//! Invariant: both are bounded, and forgetting only ever loosens a limit.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use crate::ports::TokenHash;

/// When something last happened to a token.
pub(crate) struct TokenMemory {
    seen: HashMap<TokenHash, Duration>,
    capacity: usize,
    keep: Duration,
}

impl TokenMemory {
    /// Remembers up to `capacity` tokens, each for `keep`.
    pub(crate) fn new(capacity: usize, keep: Duration) -> Self {
        Self {
            seen: HashMap::new(),
            capacity,
            keep,
        }
    }

    /// It happened to `token` now. When there is no room, the older half is forgotten.
    pub(crate) fn remember(&mut self, token: TokenHash, now: Duration) {
        if self.seen.len() >= self.capacity && !self.seen.contains_key(&token) {
            self.make_room(now);
        }
        self.seen.insert(token, now);
    }

    /// When it last happened to `token`.
    pub(crate) fn last(&self, token: TokenHash, now: Duration) -> Option<Duration> {
        self.seen
            .get(&token)
            .copied()
            .filter(|&at| now.saturating_sub(at) < self.keep)
    }

    /// It no longer holds for `token`.
    pub(crate) fn forget(&mut self, token: TokenHash) {
        self.seen.remove(&token);
    }

    /// Forgets what is over. Called on a timer.
    pub(crate) fn clean(&mut self, now: Duration) {
        let keep = self.keep;
        self.seen.retain(|_, at| now.saturating_sub(*at) < keep);
        self.seen.shrink_to(self.seen.len().saturating_mul(2));
    }

    /// Tokens remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }

    fn make_room(&mut self, now: Duration) {
        self.clean(now);
        if self.seen.len() < self.capacity {
            return;
        }
        let mut times: Vec<Duration> = self.seen.values().copied().collect();
        let middle = times.len() / 2;
        let (_, &mut median, _) = times.select_nth_unstable(middle);
        self.seen.retain(|_, at| *at > median);
    }
}

/// How often something happened within the last `span`.
pub(crate) struct Window {
    times: VecDeque<Duration>,
    capacity: usize,
    span: Duration,
}

impl Window {
    /// Counts up to `capacity`.
    pub(crate) fn new(capacity: usize, span: Duration) -> Self {
        Self {
            times: VecDeque::new(),
            capacity,
            span,
        }
    }

    /// It happened now.
    pub(crate) fn add(&mut self, now: Duration) {
        self.clean(now);
        if self.times.len() >= self.capacity {
            self.times.pop_front();
        }
        self.times.push_back(now);
    }

    /// How often it happened.
    pub(crate) fn count(&self, now: Duration) -> usize {
        self.times
            .iter()
            .rev()
            .take_while(|&&at| self.counts(at, now))
            .count()
    }

    /// How long until the count is below `limit`; nothing when it is.
    pub(crate) fn wait_below(&self, limit: usize, now: Duration) -> Option<Duration> {
        let last_too_many = self.times.len().checked_sub(limit)?;
        let leaves_at = self.times.get(last_too_many)?.saturating_add(self.span);
        (leaves_at > now).then(|| leaves_at.saturating_sub(now))
    }

    /// Starts anew.
    pub(crate) fn clear(&mut self) {
        self.times.clear();
    }

    /// Forgets what is over.
    pub(crate) fn clean(&mut self, now: Duration) {
        while self.times.front().is_some_and(|&at| !self.counts(at, now)) {
            self.times.pop_front();
        }
        self.times.shrink_to(self.times.len().saturating_mul(2));
    }

    fn counts(&self, at: Duration, now: Duration) -> bool {
        now.saturating_sub(at) < self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_token_is_remembered_for_its_time_and_not_longer() {
        let mut memory = TokenMemory::new(10, 60 * SECOND);
        memory.remember(TokenHash(1), SECOND);
        assert_eq!(memory.last(TokenHash(1), 60 * SECOND), Some(SECOND));
        assert_eq!(memory.last(TokenHash(1), 61 * SECOND), None);
        memory.clean(61 * SECOND);
        assert_eq!(memory.len(), 0);
    }

    #[test]
    fn a_full_memory_forgets_the_older_half_and_never_grows() {
        let mut memory = TokenMemory::new(100, 3600 * SECOND);
        for token in 0..100_000_u32 {
            memory.remember(TokenHash(token.into()), SECOND * (token / 100));
            assert!(memory.len() <= 100);
        }
        assert!(memory.last(TokenHash(99_999), 1000 * SECOND).is_some());
    }

    #[test]
    fn a_full_memory_of_one_moment_still_has_room_for_the_next_token() {
        let mut memory = TokenMemory::new(4, 60 * SECOND);
        for token in 0..5 {
            memory.remember(TokenHash(token), SECOND);
        }
        assert!(memory.len() <= 4);
        assert!(memory.last(TokenHash(4), SECOND).is_some());
    }

    #[test]
    fn a_window_names_the_moment_when_its_count_is_below_a_limit() {
        let mut window = Window::new(10, 60 * SECOND);
        for at in 0..5 {
            window.add(at * SECOND);
        }
        let now = 10 * SECOND;
        assert_eq!(window.count(now), 5);
        assert_eq!(window.wait_below(6, now), None);
        let wait = window.wait_below(3, now).unwrap();
        assert_eq!(window.count(now + wait), 2);
        assert_eq!(window.count(now + wait - Duration::from_nanos(1)), 3);
        assert_eq!(window.wait_below(3, now + wait), None);
    }

    #[test]
    fn a_window_keeps_no_more_than_its_capacity() {
        let mut window = Window::new(3, 60 * SECOND);
        for _ in 0..100 {
            window.add(SECOND);
        }
        assert_eq!(window.count(SECOND), 3);
    }
}
