//! How long to wait before the next try: full jitter, so that whatever lost the same relay does not return together.
//!
//! Called by the enrollment machine and by the verdict on a push. The draw is passed in.

/// Seconds before try number `failures + 1`: from 1 up to a bound that doubles from 1 s to `longest`, each as likely
/// as any other. `draw` is 64 random bits.
pub(crate) fn backoff_seconds(failures: u32, longest: u64, draw: u64) -> u64 {
    let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(longest);
    let bound = doubled.clamp(1, longest.max(1));
    let scaled = (u128::from(bound) * u128::from(draw)) >> u64::BITS;
    u64::try_from(scaled).unwrap_or(0) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bound_doubles_from_one_second_to_the_longest() {
        let bounds =
            [0, 1, 2, 3, 10, 11, 64, u32::MAX].map(|failures| backoff_seconds(failures, 900, u64::MAX));
        assert_eq!(bounds, [1, 1, 2, 4, 512, 900, 900, 900]);
        assert_eq!(backoff_seconds(10, 900, 1 << 63), 257);
    }

    proptest! {
        #[test]
        fn a_wait_is_never_zero_and_never_longer_than_the_longest(failures: u32, longest in 1_u64..100_000, draw: u64) {
            let wait = backoff_seconds(failures, longest, draw);
            prop_assert!((1..=longest).contains(&wait));
        }
    }
}
