//! Whether pushes to APNs wait behind a provider that does not answer.
//!
//! Judged is the median of the rounds' p99, so that a neighbour's noise in a few rounds decides nothing. A latency
//! counts from the moment the call was due, and the timer that waits for it is good to a millisecond: so much is no
//! effect.

/// What the client's timer can be late by.
const TIMER_MILLIS: f64 = 1.0;

/// APNs' p99 of one round, in milliseconds.
#[derive(Clone, Copy)]
pub(super) struct P99 {
    /// Beside a provider that answers.
    pub(super) answering: f64,
    /// Beside the same one when it does not.
    pub(super) black_holed: f64,
}

/// What is let pass.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    /// How many times as long.
    pub(super) tolerance: f64,
}

/// Of all rounds.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    rounds: usize,
    answering: Spread,
    black_holed: Spread,
}

#[derive(Clone, Copy)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Verdict {
    pub(super) fn of(rounds: &[P99]) -> Self {
        Self {
            rounds: rounds.len(),
            answering: Spread::of(rounds.iter().map(|round| round.answering)),
            black_holed: Spread::of(rounds.iter().map(|round| round.black_holed)),
        }
    }

    /// Whether the others don't wait.
    pub(super) fn keeps(&self, limit: Limit) -> bool {
        self.rounds > 0 && self.black_holed.median <= self.most(limit)
    }

    /// What was judged, by what, and what came out.
    pub(super) fn sentence(&self, provider: &str, limit: Limit) -> String {
        let (answering, black_holed) = (&self.answering, &self.black_holed);
        format!(
            "APNs' p99, median of {} rounds: {:.2} ms ({:.2} to {:.2}) beside {provider} that answers, {:.2} ms \
             ({:.2} to {:.2}) beside {provider} black-holed, which is {:.2} times. Let pass: {} times and {TIMER_MILLIS} ms \
             for the timer, {:.2} ms",
            self.rounds,
            answering.median,
            answering.least,
            answering.most,
            black_holed.median,
            black_holed.least,
            black_holed.most,
            black_holed.median / answering.median,
            limit.tolerance,
            self.most(limit),
        )
    }

    /// Whether the rounds differ by more than is let pass where nothing was wrong: then a neighbour is in the figures.
    pub(super) fn is_noisy(&self, limit: Limit) -> bool {
        self.answering.most > limit.of(self.answering.least)
    }

    fn most(&self, limit: Limit) -> f64 {
        limit.of(self.answering.median)
    }
}

impl Limit {
    fn of(self, millis: f64) -> f64 {
        millis * self.tolerance + TIMER_MILLIS
    }
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
        let (last, half) = (values.len().saturating_sub(1), values.len() / 2);
        Self {
            least: at(0),
            median: (at(half) + at(last - half)) / 2.0,
            most: at(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { tolerance: 1.2 };

    fn verdict(rounds: &[(f64, f64)]) -> Verdict {
        let rounds: Vec<P99> = rounds
            .iter()
            .map(|&(answering, black_holed)| P99 {
                answering,
                black_holed,
            })
            .collect();
        Verdict::of(&rounds)
    }

    #[test]
    fn a_fifth_and_the_timers_millisecond_pass_and_no_more() {
        assert!(verdict(&[(10.0, 10.0)]).keeps(LIMIT));
        assert!(verdict(&[(10.0, 13.0)]).keeps(LIMIT));
        assert!(!verdict(&[(10.0, 13.1)]).keeps(LIMIT));
        assert!(verdict(&[(10.0, 13.1)]).keeps(Limit { tolerance: 1.3 }));
    }

    #[test]
    fn noise_in_a_few_rounds_decides_nothing_and_an_effect_in_most_does() {
        assert!(verdict(&[(2.0, 2.1), (2.2, 90.0), (2.1, 2.0), (80.0, 2.3), (2.0, 70.0)]).keeps(LIMIT));
        assert!(!verdict(&[(2.0, 5.0), (2.2, 2.1), (2.1, 5.2), (2.0, 2.3), (2.0, 6.0)]).keeps(LIMIT));
    }

    #[test]
    fn rounds_that_differ_where_nothing_was_wrong_are_called_noisy() {
        assert!(!verdict(&[(2.0, 9.0), (2.2, 9.0)]).is_noisy(LIMIT));
        assert!(verdict(&[(2.0, 2.0), (2.1, 2.0), (3.5, 2.0)]).is_noisy(LIMIT));
    }

    #[test]
    fn of_an_even_number_of_rounds_the_median_is_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 2.0, 8.0].into_iter());
        assert_eq!((spread.least, spread.median, spread.most), (1.0, 3.0, 8.0));
        assert_eq!(Spread::of([5.0].into_iter()).median, 5.0);
        assert_eq!(Spread::of([5.0, 1.0, 2.0].into_iter()).median, 2.0);
    }

    #[test]
    fn what_was_never_measured_keeps_nothing() {
        assert!(!verdict(&[]).keeps(LIMIT));
        assert!(!verdict(&[(2.0, f64::NAN)]).keeps(LIMIT));
    }

    #[test]
    fn the_sentence_says_what_was_judged_by_what() {
        assert_eq!(
            verdict(&[(2.0, 2.5)]).sentence("FCM", LIMIT),
            "APNs' p99, median of 1 rounds: 2.00 ms (2.00 to 2.00) beside FCM that answers, 2.50 ms (2.50 to 2.50) \
             beside FCM black-holed, which is 1.25 times. Let pass: 1.2 times and 1 ms for the timer, 3.40 ms"
        );
    }
}
