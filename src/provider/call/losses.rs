//! Which lost pushes were on one connection, as far as their times tell: the HTTP client doesn't say.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use sovereign_relay_actors::ports::Health;

/// Losses this close together are one lost connection with many streams.
const SAME_LOSS: Duration = Duration::from_millis(500);

/// The lost connections of one provider, numbered.
#[derive(Default)]
pub(super) struct Losses(Mutex<Last>);

#[derive(Default)]
struct Last {
    number: u64,
    at: Duration,
}

impl Losses {
    /// A push was lost at `now` on the monotonic clock.
    pub(super) fn note(&self, now: Duration) -> Health {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.number == 0 || now.saturating_sub(last.at) > SAME_LOSS {
            last.number += 1;
        }
        last.at = now;
        Health::ConnectionLost {
            connection: last.number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_in_a_row_are_one_connection_and_one_after_a_pause_is_another() {
        let losses = Losses::default();
        let numbers = [0, 400, 900, 1401, 1402].map(|millis| losses.note(Duration::from_millis(millis)));
        let expected = [1, 1, 1, 2, 2].map(|connection| Health::ConnectionLost { connection });
        assert_eq!(numbers, expected);
    }
}
