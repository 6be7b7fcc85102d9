//! How fast this side speaks: as fast as the relay lets a slot, so that nothing is refused that could have waited here.
//!
//! The generic cell rate algorithm: each message moves `full_at`, when the whole burst is to be had again, one interval
//! on; a message may go while that is less than a burst ahead.
//!
//! Invariant: no more messages leave than the limits allow, over all connections; one of the burst is left alone, for
//! messages that the network bunches up.

use std::time::Duration;

use sovereign_relay_protocol::signal::session::SessionLimits;

pub(super) struct Pace {
    interval: Duration,
    ahead: Duration,
    full_at: Duration,
}

impl Pace {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        let (interval, ahead) = measures(limits);
        Self {
            interval,
            ahead,
            full_at: Duration::ZERO,
        }
    }

    /// The relay said what it allows, perhaps something else than before.
    pub(super) fn told(&mut self, limits: &SessionLimits) {
        (self.interval, self.ahead) = measures(limits);
    }

    /// When the next message may go.
    pub(super) fn ready_at(&self) -> Duration {
        self.full_at.saturating_sub(self.ahead)
    }

    /// A message goes.
    pub(super) fn take(&mut self, now: Duration) {
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
    }

    /// The relay has none left before `until`: another page load of this slot had them.
    pub(super) fn drained(&mut self, until: Duration) {
        self.full_at = self.full_at.max(until.saturating_add(self.ahead));
    }
}

fn measures(limits: &SessionLimits) -> (Duration, Duration) {
    let interval = Duration::from_secs(1) / limits.messages_per_second.max(1);
    (interval, interval.saturating_mul(limits.burst.saturating_sub(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(messages_per_second: u32, burst: u32) -> Pace {
        Pace::new(&SessionLimits {
            messages_per_second,
            burst,
            ..SessionLimits::default()
        })
    }

    fn gone(pace: &mut Pace, now: Duration) -> usize {
        let mut gone = 0;
        while pace.ready_at() <= now {
            pace.take(now);
            gone += 1;
        }
        gone
    }

    #[test]
    fn a_burst_goes_at_once_but_for_one_and_the_rest_at_the_rate() {
        let mut pace = pace(20, 60);
        let now = Duration::from_secs(7);
        assert_eq!(gone(&mut pace, now), 59);
        assert_eq!(pace.ready_at(), now + Duration::from_millis(50));
        assert_eq!(gone(&mut pace, now + Duration::from_secs(1)), 20);
        assert_eq!(gone(&mut pace, now + Duration::from_secs(60)), 59);
    }

    #[test]
    fn the_smallest_limits_still_let_one_message_a_second_go() {
        for burst in [0, 1, 2] {
            let mut pace = pace(0, burst);
            assert_eq!(gone(&mut pace, Duration::ZERO), 1, "{burst}");
            assert_eq!(pace.ready_at(), Duration::from_secs(1));
        }
    }

    #[test]
    fn after_a_refusal_one_goes_when_the_relay_says_and_the_rest_at_the_rate() {
        let mut pace = pace(20, 60);
        let until = Duration::from_secs(3);
        pace.drained(until);
        assert_eq!(pace.ready_at(), until);
        assert_eq!(gone(&mut pace, until), 1);
        assert_eq!(pace.ready_at(), until + Duration::from_millis(50));
    }

    #[test]
    fn other_limits_hold_from_the_next_message_on() {
        let mut pace = pace(1, 2);
        pace.take(Duration::ZERO);
        assert_eq!(pace.ready_at(), Duration::from_secs(1));
        pace.told(&SessionLimits::default());
        assert_eq!(gone(&mut pace, Duration::ZERO), 39, "what was sent still counts");
    }
}
