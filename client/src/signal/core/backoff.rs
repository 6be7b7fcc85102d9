//! How long to wait before the next dial: full jitter, so that clients that lost the same relay don't return together.

use std::time::Duration;

use sovereign_relay_protocol::signal::close::Next;

use crate::entropy::Jitter;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(15);
/// What a relay that is too busy asks for at least.
const BUSY: Duration = Duration::from_secs(5);
/// A connection that lived this long was a good one; a shorter one counts as another failed dial.
const GOOD: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A connection ended after this long.
    pub(crate) fn lived(&mut self, duration: Duration) {
        if duration >= GOOD {
            self.failures = 0;
        }
    }

    /// The next delay; `None` where there is no next dial.
    pub(crate) fn next(&mut self, next: Next, jitter: &mut Jitter) -> Option<Duration> {
        let least = match next {
            Next::Stop => return None,
            Next::Resume | Next::ResumeWithinGoaway => Duration::ZERO,
            Next::ResumeLater => BUSY,
        };
        let doubled = FIRST.saturating_mul(1 << self.failures.min(8));
        self.failures = self.failures.saturating_add(1);
        Some(least + jitter.within(doubled.min(LONGEST)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_from_half_a_second_to_fifteen() {
        let (mut backoff, mut jitter) = (Backoff::default(), Jitter::fixed(u64::MAX));
        let mut bounds = Vec::new();
        for _ in 0..7 {
            let delay = backoff.next(Next::Resume, &mut jitter).unwrap();
            bounds.push(delay.as_secs_f64().mul_add(10.0, 0.5) as u64);
        }
        assert_eq!(bounds, [5, 10, 20, 40, 80, 150, 150]);
        backoff.lived(Duration::from_secs(4));
        assert!(backoff.next(Next::Resume, &mut jitter).unwrap() > FIRST);
        backoff.lived(Duration::from_secs(5));
        assert!(backoff.next(Next::Resume, &mut jitter).unwrap() <= FIRST);
    }

    #[test]
    fn a_busy_relay_is_left_alone_for_5_s_and_a_final_word_is_final() {
        let (mut backoff, mut jitter) = (Backoff::default(), Jitter::fixed(0));
        assert_eq!(backoff.next(Next::ResumeLater, &mut jitter), Some(BUSY));
        assert_eq!(backoff.next(Next::Resume, &mut jitter), Some(Duration::ZERO));
        assert_eq!(backoff.next(Next::Stop, &mut jitter), None);
    }
}
