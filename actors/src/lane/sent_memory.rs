//! Which tokens were `sent` to before, in fixed space.
//!
//! The fuses ask it: a token that once worked and is bad now is evidence, one that never worked may be invented.
//! A Bloom filter of two generations: a token is remembered for one to two days and never forgotten early. When
//! more tokens are noted than it was made for, it begins to take strangers for known ones. That errs towards "not
//! gone": more bad tokens count, and the fuses open sooner.
//!
//! Broder and Mitzenmacher, "Network Applications of Bloom Filters". Token hashes are keyed and uniform, so their
//! own bits are the indices, and nobody outside can choose colliding tokens.

use std::time::Duration;

use crate::ports::TokenHash;

/// Bits of one generation, as a power of two: a mebibyte, allocated with the first token. 2 % of strangers are
/// taken for known at a million tokens a day.
const BITS_LOG2: u32 = 23;
const WORDS: usize = 1 << (BITS_LOG2 - 6);
/// Bits of one token, each from its own part of the hash.
const INDICES: u32 = 4;
/// How long one generation is written to.
const GENERATION: Duration = Duration::from_secs(24 * 3_600);

#[derive(Debug, Default)]
pub(super) struct SentMemory {
    current: Bits,
    previous: Bits,
    started: Duration,
}

impl SentMemory {
    /// The token was `sent` to.
    pub(super) fn insert(&mut self, token: TokenHash, now: Duration) {
        self.turn_over(now);
        self.current.insert(token);
    }

    /// Whether it was, in the last day (or the last two, or perhaps never).
    pub(super) fn contains(&mut self, token: TokenHash, now: Duration) -> bool {
        self.turn_over(now);
        self.current.contains(token) || self.previous.contains(token)
    }

    fn turn_over(&mut self, now: Duration) {
        let age = now.saturating_sub(self.started);
        if age < GENERATION {
            return;
        }
        let current = std::mem::take(&mut self.current);
        self.previous = if age < 2 * GENERATION {
            current
        } else {
            Bits::default()
        };
        self.started = now;
    }
}

/// Empty until something is inserted.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn insert(&mut self, token: TokenHash) {
        if self.0.is_empty() {
            self.0 = vec![0; WORDS];
        }
        for (word, bit) in places(token) {
            if let Some(word) = self.0.get_mut(word) {
                *word |= bit;
            }
        }
    }

    fn contains(&self, token: TokenHash) -> bool {
        places(token).all(|(word, bit)| self.0.get(word).is_some_and(|word| word & bit != 0))
    }
}

fn places(token: TokenHash) -> impl Iterator<Item = (usize, u64)> {
    (0..INDICES).map(move |index| {
        let bits = token.0 >> (index * BITS_LOG2);
        let word = usize::try_from((bits >> 6) & (WORDS as u128 - 1)).unwrap_or(0);
        (word, 1_u64 << (bits & 63))
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Spreads small numbers over all 128 bits, as a keyed hash does.
    pub(in crate::lane) fn token(number: u64) -> TokenHash {
        let mix = |seed: u64| {
            let mut x = number.wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            u128::from(x ^ (x >> 31))
        };
        TokenHash((mix(1) << 64) | mix(0x5555))
    }

    #[test]
    fn a_token_is_remembered_for_a_day_at_least_and_two_at_most() {
        let mut memory = SentMemory::default();
        assert!(!memory.contains(token(1), Duration::ZERO));
        memory.insert(token(1), GENERATION - Duration::from_secs(1));
        assert!(memory.contains(token(1), 2 * GENERATION - Duration::from_secs(1)));
        assert!(!memory.contains(token(1), 3 * GENERATION));
    }

    #[test]
    fn after_days_of_silence_nothing_is_left() {
        let mut memory = SentMemory::default();
        memory.insert(token(1), Duration::ZERO);
        assert!(!memory.contains(token(1), 9 * GENERATION));
    }

    #[test]
    fn overfull_it_forgets_no_token_and_takes_more_strangers_for_known() {
        let mut memory = SentMemory::default();
        let strangers = |memory: &mut SentMemory| {
            (10_000_000..10_010_000)
                .filter(|number| memory.contains(token(*number), Duration::ZERO))
                .count()
        };
        (0..300_000).for_each(|number| memory.insert(token(number), Duration::ZERO));
        assert!(strangers(&mut memory) < 30);
        (300_000..3_000_000).for_each(|number| memory.insert(token(number), Duration::ZERO));
        assert!((0..3_000_000).all(|number| memory.contains(token(number), Duration::ZERO)));
        assert!(strangers(&mut memory) > 1_000);
        assert_eq!(memory.current.0.len(), WORDS);
    }
}
