//! Retry hints: whole seconds, at least one, and no longer than anybody should wait for.

use std::time::Duration;

/// Longest hint and longest hold, of all providers. FCM's retry rules give up after an hour; a provider that asks for
/// more, or a mistaken header, must not shut a platform for longer.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3_600);
/// Less would be a busy loop.
pub const SHORTEST_RETRY_AFTER: Duration = Duration::from_secs(1);

/// `wait` within the bounds.
pub(super) fn clamp(wait: Duration) -> Duration {
    wait.clamp(SHORTEST_RETRY_AFTER, LONGEST_RETRY_AFTER)
}

/// `wait` within the bounds in whole seconds, rounded up: a caller that obeys is never too early.
pub(super) fn seconds(wait: Duration) -> u64 {
    let wait = clamp(wait);
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_whole_seconds_rounded_up_from_one_to_an_hour() {
        let cases = [
            (0, 1),
            (1, 1),
            (1_000, 1),
            (1_001, 2),
            (36_500, 37),
            (3_600_000, 3_600),
            (u64::MAX, 3_600),
        ];
        for (millis, expected) in cases {
            assert_eq!(seconds(Duration::from_millis(millis)), expected, "{millis} ms");
        }
    }
}
