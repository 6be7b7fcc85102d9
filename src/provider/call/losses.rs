//! Which lost pushes were on one connection, as far as their times tell: the HTTP client doesn't say.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use sovereign_relay_actors::ports::Health;

/// The streams of one lost connection learn of it within this, counted from the first.
const SAME_LOSS: Duration = Duration::from_millis(500);

/// The lost connections of one provider, numbered.
#[derive(Default)]
pub(super) struct Losses(Mutex<Last>);

#[derive(Default)]
struct Last {
    number: u64,
    first_at: Duration,
}

/// A push that was lost, in times of the monotonic clock.
#[derive(Clone, Copy)]
pub(super) struct Loss {
    /// Its try began.
    pub(super) began: Duration,
    /// It was lost.
    pub(super) at: Duration,
    /// Other pushes may have been on its connection.
    pub(super) shared: bool,
}

impl Losses {
    /// A push was lost.
    pub(super) fn note(&self, loss: Loss) -> Health {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // What began after a connection was lost was on another.
        let is_same = last.number > 0
            && loss.shared
            && loss.began < last.first_at
            && loss.at.saturating_sub(last.first_at) <= SAME_LOSS;
        if !is_same {
            last.number += 1;
            last.first_at = loss.at;
        }
        Health::ConnectionLost {
            connection: last.number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(losses: &[(u64, u64)], shared: bool) -> Vec<u64> {
        let all = Losses::default();
        let number = |(began, at): &(u64, u64)| {
            let (began, at) = (Duration::from_millis(*began), Duration::from_millis(*at));
            match all.note(Loss { began, at, shared }) {
                Health::ConnectionLost { connection } => connection,
                other => panic!("{other:?}"),
            }
        };
        losses.iter().map(number).collect()
    }

    #[test]
    fn pushes_that_were_under_way_when_a_connection_was_lost_are_one_loss_for_half_a_second() {
        let losses = [
            (0, 1000),
            (900, 1000),
            (999, 1400),
            (0, 1500),
            (0, 1501),
            (0, 1900),
        ];
        assert_eq!(numbers(&losses, true), [1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn pushes_lost_one_after_the_other_are_each_a_loss_however_quickly_they_come() {
        let losses: Vec<_> = (0..100).map(|number| (10 * number, 10 * number + 9)).collect();
        assert_eq!(numbers(&losses, true), (1..=100).collect::<Vec<_>>());
    }

    #[test]
    fn pushes_that_share_no_connection_are_each_a_loss() {
        assert_eq!(numbers(&[(0, 1000); 3], false), [1, 2, 3]);
    }
}
