//! Is the connection alive?
//!
//! ```text
//! quiet   --20 s without a frame either way, or a wake-up-->  probing (a text ping goes out)
//! probing --any frame-->                                      quiet
//! probing --10 s (4 s after a wake-up)-->                     lost
//! ```
//!
//! Invariant: who slept through the wait concludes nothing. A timer that fires more than 5 s late (a suspended
//! machine, a starved thread) leads to another ping.

use std::time::Duration;

/// Half a minute of silence is what proxies and carriers forgive.
const QUIET: Duration = Duration::from_secs(20);
/// An answer to a ping takes a round trip; ten seconds are a network that is no use.
const ANSWER: Duration = Duration::from_secs(10);
/// After a change of network the old connection is probably gone, and somebody is looking.
const ANSWER_AFTER_WAKE: Duration = Duration::from_secs(4);
/// A timer later than this was slept through.
const LATE: Duration = Duration::from_secs(5);

pub(crate) struct Liveness {
    heard: Duration,
    said: Duration,
    probe: Option<Probe>,
    ping: bool,
}

struct Probe {
    wait: Duration,
    until: Duration,
}

/// What a timer finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pulse {
    /// Nothing to conclude.
    Fine,
    /// The other end is gone.
    Lost,
}

impl Liveness {
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            heard: now,
            said: now,
            probe: None,
            ping: false,
        }
    }

    /// A frame came.
    pub(crate) fn heard(&mut self, now: Duration) {
        self.heard = now;
        self.probe = None;
    }

    /// A frame went out: the relay wants to hear us, too.
    pub(crate) fn said(&mut self, now: Duration) {
        self.said = now;
    }

    /// The network may have changed.
    pub(crate) fn wake(&mut self, now: Duration) {
        match &mut self.probe {
            Some(probe) if now <= probe.until + LATE => {
                probe.until = probe.until.min(now + ANSWER_AFTER_WAKE);
            }
            Some(_) | None => self.begin(now, ANSWER_AFTER_WAKE),
        }
    }

    /// A timer fired.
    pub(crate) fn tick(&mut self, now: Duration) -> Pulse {
        if now < self.deadline() {
            return Pulse::Fine;
        }
        match &self.probe {
            Some(probe) if now <= probe.until + LATE => return Pulse::Lost,
            Some(probe) => self.begin(now, probe.wait),
            None => self.begin(now, ANSWER),
        }
        Pulse::Fine
    }

    /// Whether a ping goes out now.
    pub(crate) fn take_ping(&mut self) -> bool {
        std::mem::take(&mut self.ping)
    }

    pub(crate) fn deadline(&self) -> Duration {
        match &self.probe {
            Some(probe) => probe.until,
            None => self.heard.min(self.said) + QUIET,
        }
    }

    fn begin(&mut self, now: Duration, wait: Duration) {
        self.ping = true;
        self.probe = Some(Probe {
            wait,
            until: now + wait,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn silence_leads_to_a_ping_and_an_unanswered_ping_to_loss() {
        let mut liveness = Liveness::new(at(0));
        assert_eq!(liveness.tick(at(19)), Pulse::Fine);
        assert!(!liveness.take_ping());
        assert_eq!(liveness.tick(at(20)), Pulse::Fine);
        assert!(liveness.take_ping() && !liveness.take_ping());
        assert_eq!(liveness.tick(at(29)), Pulse::Fine);
        assert_eq!(liveness.tick(at(30)), Pulse::Lost);
    }

    #[test]
    fn any_frame_answers_a_ping() {
        let mut liveness = Liveness::new(at(0));
        liveness.tick(at(20));
        liveness.take_ping();
        liveness.said(at(20));
        liveness.heard(at(29));
        assert_eq!(liveness.tick(at(30)), Pulse::Fine);
        assert_eq!(liveness.deadline(), at(40), "the relay heard us last at 20");
    }

    #[test]
    fn who_only_listens_still_lets_the_relay_hear_something() {
        let mut liveness = Liveness::new(at(0));
        for second in 1..=20 {
            liveness.heard(at(second));
        }
        liveness.tick(at(20));
        assert!(liveness.take_ping());
    }

    #[test]
    fn a_timer_that_runs_once_a_minute_never_drops_a_healthy_connection() {
        let mut liveness = Liveness::new(at(0));
        for minute in 1..=9 {
            assert_eq!(liveness.tick(at(60 * minute)), Pulse::Fine);
            assert!(liveness.take_ping());
        }
    }

    #[test]
    fn after_a_wake_up_an_answer_must_come_within_4_s() {
        let mut liveness = Liveness::new(at(0));
        liveness.wake(at(3));
        assert!(liveness.take_ping());
        liveness.wake(at(5));
        assert!(!liveness.take_ping(), "one is under way");
        assert_eq!(liveness.tick(at(7)), Pulse::Lost);
    }

    #[test]
    fn a_wake_up_after_a_long_sleep_asks_anew() {
        let mut liveness = Liveness::new(at(0));
        liveness.tick(at(20));
        liveness.take_ping();
        liveness.wake(at(600));
        assert!(liveness.take_ping());
        assert_eq!(liveness.deadline(), at(604));
    }
}
