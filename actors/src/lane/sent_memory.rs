//! Which tokens were `sent` to before, in fixed space.
//!
//! The fuses ask it: a token that once worked and is bad now is evidence, one that never worked may be invented.
//! A Bloom filter whose cells hold, in place of a bit, the stretch of two hours in which they were last written. A token
//! is remembered for 22 to 24 hours after its last `sent`, never less: a later token that shares a cell makes it younger,
//! not older. When more tokens are noted than it was made for, it begins to take strangers for known ones. That errs
//! towards "not gone": more bad tokens count, and the fuses open sooner.
//!
//! A day is as long as the relay keeps any keyed hash. Its price: a device that is pushed to once a day is a stranger each
//! time. The guard loses nothing by it, since it asks when a scope last saw a `sent`, not which tokens did.
//!
//! Broder and Mitzenmacher, "Network Applications of Bloom Filters". Token hashes are keyed and uniform, so their
//! own bits are the indices, and nobody outside can choose colliding tokens.

use std::time::Duration;

use crate::ports::TokenHash;

/// Cells, as a power of two: four mebibytes, allocated with the first token. 2 % of strangers are taken for known at a
/// million tokens a day.
const CELLS_LOG2: u32 = 23;
/// Bits of a cell: 0 when it is empty, else the stretch it was written in.
const CELL_BITS: u32 = 4;
const CELLS_PER_WORD: u32 = u64::BITS / CELL_BITS;
const WORDS: usize = 1 << (CELLS_LOG2 - CELLS_PER_WORD.ilog2());
/// Cells of one token, each from its own part of the hash.
const INDICES: u32 = 4;
const STRETCH_SECONDS: u64 = 2 * 3_600;
/// How many stretches are remembered, the current one included. A cell has room for their numbers.
const STRETCHES: u64 = 12;
const _: () = assert!(STRETCHES < 1 << CELL_BITS);
/// The lowest bit of each cell of a word.
const LOWEST: u64 = 0x1111_1111_1111_1111;
const CELL: u64 = (1 << CELL_BITS) - 1;

#[derive(Debug, Default)]
pub(super) struct SentMemory {
    /// Empty until something is inserted, and after a day without.
    words: Vec<u64>,
    /// The current stretch, counted from the start of the clock.
    stretch: u64,
}

impl SentMemory {
    /// The token was `sent` to.
    pub(super) fn insert(&mut self, token: TokenHash, now: Duration) {
        self.advance(now);
        if self.words.is_empty() {
            self.words = vec![0; WORDS];
        }
        let mark = mark(self.stretch);
        for (word, shift) in places(token) {
            if let Some(word) = self.words.get_mut(word) {
                *word = *word & !(CELL << shift) | mark << shift;
            }
        }
    }

    /// Whether it was, in the last day (or perhaps never).
    pub(super) fn contains(&mut self, token: TokenHash, now: Duration) -> bool {
        self.advance(now);
        places(token).all(|(word, shift)| self.words.get(word).is_some_and(|word| word >> shift & CELL != 0))
    }

    /// Forgets what is a day old. Each stretch that begins takes the number of the one that ends.
    pub(super) fn advance(&mut self, now: Duration) {
        let stretch = now.as_secs() / STRETCH_SECONDS;
        let begun = stretch.saturating_sub(self.stretch);
        if begun == 0 {
            return;
        }
        if begun >= STRETCHES {
            self.words = Vec::new();
        }
        if !self.words.is_empty() {
            (self.stretch + 1..=stretch).for_each(|stretch| self.forget(mark(stretch)));
        }
        self.stretch = stretch;
    }

    /// Empties the cells with this mark, sixteen at a time.
    fn forget(&mut self, mark: u64) {
        let mut left = 0;
        for word in &mut self.words {
            let differs = *word ^ (LOWEST * mark);
            let differs = (differs | differs >> 1 | differs >> 2 | differs >> 3) & LOWEST;
            *word &= differs * CELL;
            left |= *word;
        }
        if left == 0 {
            self.words = Vec::new();
        }
    }
}

fn mark(stretch: u64) -> u64 {
    stretch % STRETCHES + 1
}

/// Word and shift of each cell.
fn places(token: TokenHash) -> impl Iterator<Item = (usize, u32)> {
    (0..INDICES).map(move |index| {
        let bits = token.0 >> (index * CELLS_LOG2);
        let cell = u32::try_from(bits & ((1 << CELLS_LOG2) - 1)).unwrap_or(0);
        let word = usize::try_from(cell / CELLS_PER_WORD).unwrap_or(0);
        (word, cell % CELLS_PER_WORD * CELL_BITS)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

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

    const MINUTE: Duration = Duration::from_secs(60);
    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_token_is_remembered_for_22_hours_at_least_and_24_at_most_whenever_it_is_sent_to() {
        for begins in [0, 1, 60, 119, 120, 121, 30 * 60 + 7].map(|minutes| MINUTE * minutes) {
            let mut memory = SentMemory::default();
            assert!(!memory.contains(token(1), begins));
            memory.insert(token(1), begins);
            for later in (0..=22).map(|hours| HOUR * hours) {
                assert!(memory.contains(token(1), begins + later), "{begins:?} {later:?}");
            }
            assert!(!memory.contains(token(1), begins + 24 * HOUR), "{begins:?}");
        }
    }

    #[test]
    fn a_token_that_is_sent_to_again_is_remembered_from_then_on() {
        let mut memory = SentMemory::default();
        for hours in (0..200).step_by(21) {
            assert_eq!(memory.contains(token(1), HOUR * hours), hours > 0);
            memory.insert(token(1), HOUR * hours);
        }
    }

    #[test]
    fn time_alone_empties_it_and_gives_the_room_back() {
        for step in [HOUR, 5 * HOUR, 30 * HOUR] {
            let mut memory = SentMemory::default();
            (0..1000).for_each(|number| memory.insert(token(number), Duration::ZERO));
            let mut now = Duration::ZERO;
            while now < 24 * HOUR {
                assert_eq!(memory.words.len(), WORDS);
                now += step;
                memory.advance(now);
            }
            assert!(memory.words.is_empty(), "{step:?}");
        }
    }

    proptest! {
        // Each case walks through megabytes, a dozen times a day.
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn it_knows_whoever_was_sent_to_within_22_hours_and_few_others(
            sends in proptest::collection::vec((0..40_u64, 0..20_000_u64), 1..30),
        ) {
            let (mut memory, mut now) = (SentMemory::default(), Duration::ZERO);
            let mut last = HashMap::new();
            for (number, seconds) in sends {
                now += Duration::from_secs(seconds);
                memory.insert(token(number), now);
                last.insert(number, now);
                for number in 0..40 {
                    let age = last.get(&number).map(|at| now - *at);
                    let is_known = memory.contains(token(number), now);
                    match age {
                        Some(age) if age <= 22 * HOUR => prop_assert!(is_known),
                        Some(age) if age < 24 * HOUR => {}
                        Some(_) | None => prop_assert!(!is_known),
                    }
                }
            }
        }
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
        assert_eq!(memory.words.len(), WORDS);
    }
}
