//! The circuit breaker of one provider: stops calling one that is down, finds out soon when it is back.
//!
//! The lane asks [`Breaker::admit`] before a push queues and again at its turn, and gives every [`Pass`] back once,
//! with what the call told ([`Breaker::finished`]) or without ([`Breaker::abandoned`]). Probes are real pushes.
//!
//! ```text
//!            >= 20 calls in 10 s, more than half of them faults
//!   Closed ------------------------------------------------------> Open (step 1 s)
//!     ^                                                             |   ^
//!     |                                             the step is over |   | a fault: the step doubles, to 10 s
//!     |                                                             v   | abandoned: a probe is due at once
//!     `------------------- answered ---------------------------- Probing (one push)
//! ```
//!
//! Invariant: at most one probe is out, and while it or the step lasts everybody else is refused. Faults are
//! timeouts, transport errors and 5xx; a lost connection is one call and one fault, whatever it carried.

use std::{collections::VecDeque, time::Duration};

use super::BreakerState;
use crate::ports::Health;

/// Calls in the window below which nothing is concluded.
const FEWEST_CALLS: u32 = 20;
/// What is looked back on, in seconds. Counted by the second.
const WINDOW_SECONDS: u64 = 10;
/// First step.
const FIRST_STEP: Duration = Duration::from_secs(1);
/// Longest step: how late the first push after a recovery may be.
const LONGEST_STEP: Duration = Duration::from_secs(10);
/// Lost connections remembered, so that the many streams of one count once. A provider has a few connections;
/// when one more is lost the oldest is forgotten, and a straggler of it would count again.
const LOST_CONNECTIONS: usize = 64;

#[derive(Debug)]
pub(super) struct Breaker {
    phase: Phase,
    /// Counts the phases, so that a call begun in an earlier one says nothing about this one.
    era: u64,
    lost: VecDeque<u64>,
}

#[derive(Debug)]
enum Phase {
    Closed { seconds: VecDeque<Second> },
    Open { step: Duration, probe_at: Duration },
    Probing { step: Duration, since: Duration },
}

#[derive(Clone, Copy, Debug)]
struct Second {
    second: u64,
    calls: u32,
    faults: u32,
}

/// Leave to call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pass {
    era: u64,
    /// Whether it is the one that finds out: then it needs no second look.
    pub(super) probe: bool,
}

/// Refused: the provider is down. The next probe may go then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refused {
    pub(super) retry_after: Duration,
}

impl Breaker {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Closed {
                seconds: VecDeque::new(),
            },
            era: 0,
            lost: VecDeque::new(),
        }
    }

    /// May a push be sent? A probe's pass is taken by the first who asks when it is due.
    pub(super) fn admit(&mut self, now: Duration) -> Result<Pass, Refused> {
        match self.phase {
            Phase::Closed { .. } => Ok(Pass {
                era: self.era,
                probe: false,
            }),
            Phase::Open { step, probe_at } if now >= probe_at => {
                self.enter(Phase::Probing { step, since: now });
                Ok(Pass {
                    era: self.era,
                    probe: true,
                })
            }
            Phase::Open { probe_at, .. } => Err(Refused {
                retry_after: probe_at.saturating_sub(now),
            }),
            // When the probe fails, the next is due one longer step later; when it doesn't, sooner is fine.
            Phase::Probing { step, since } => {
                let retry_after = since.saturating_add(step).saturating_sub(now).max(FIRST_STEP);
                Err(Refused { retry_after })
            }
        }
    }

    /// What a call told. Answers of an earlier phase's calls are dropped.
    pub(super) fn finished(&mut self, pass: Pass, health: Health, now: Duration) {
        if pass.era != self.era {
            return;
        }
        let fault = match health {
            Health::Answered => false,
            Health::Faulty => true,
            Health::ConnectionLost { connection } => {
                if self.is_known_loss(connection) && !pass.probe {
                    return;
                }
                true
            }
        };
        match &mut self.phase {
            Phase::Closed { seconds } => {
                count(seconds, fault, now);
                if is_failing(seconds) {
                    self.open(FIRST_STEP, now);
                }
            }
            Phase::Probing { step, .. } if fault => {
                let longer = step.saturating_mul(2).min(LONGEST_STEP);
                self.open(longer, now);
            }
            Phase::Probing { .. } => self.enter(Phase::Closed {
                seconds: VecDeque::new(),
            }),
            Phase::Open { .. } => {}
        }
    }

    /// A pass that came to nothing: its caller went away, or the call ended by a fault of ours.
    pub(super) fn abandoned(&mut self, pass: Pass, now: Duration) {
        if pass.era != self.era {
            return;
        }
        if let Phase::Probing { step, .. } = self.phase {
            self.enter(Phase::Open { step, probe_at: now });
        }
    }

    /// For metrics, and for the lane to see a change.
    pub(super) fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::Probing { .. } => BreakerState::Probing,
        }
    }

    fn open(&mut self, step: Duration, now: Duration) {
        self.enter(Phase::Open {
            step,
            probe_at: now.saturating_add(step),
        });
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.era += 1;
    }

    fn is_known_loss(&mut self, connection: u64) -> bool {
        if self.lost.contains(&connection) {
            return true;
        }
        if self.lost.len() >= LOST_CONNECTIONS {
            self.lost.pop_front();
        }
        self.lost.push_back(connection);
        false
    }
}

fn count(seconds: &mut VecDeque<Second>, fault: bool, now: Duration) {
    let second = now.as_secs();
    while seconds
        .front()
        .is_some_and(|oldest| oldest.second + WINDOW_SECONDS <= second)
    {
        seconds.pop_front();
    }
    match seconds.back_mut() {
        Some(latest) if latest.second >= second => {
            latest.calls = latest.calls.saturating_add(1);
            latest.faults = latest.faults.saturating_add(u32::from(fault));
        }
        _ => seconds.push_back(Second {
            second,
            calls: 1,
            faults: u32::from(fault),
        }),
    }
}

fn is_failing(seconds: &VecDeque<Second>) -> bool {
    let calls: u64 = seconds.iter().map(|second| u64::from(second.calls)).sum();
    let faults: u64 = seconds.iter().map(|second| u64::from(second.faults)).sum();
    calls >= u64::from(FEWEST_CALLS) && faults * 2 > calls
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn call(breaker: &mut Breaker, health: Health, now: Duration) {
        let pass = breaker.admit(now).unwrap();
        breaker.finished(pass, health, now);
    }

    fn opened(now: Duration) -> Breaker {
        let mut breaker = Breaker::new();
        for _ in 0..20 {
            call(&mut breaker, Health::Faulty, now);
        }
        assert_eq!(breaker.state(), BreakerState::Open);
        breaker
    }

    #[test]
    fn it_opens_at_twenty_calls_with_more_than_half_of_them_faults() {
        let mut breaker = Breaker::new();
        for number in 0..19 {
            call(
                &mut breaker,
                if number < 9 {
                    Health::Answered
                } else {
                    Health::Faulty
                },
                ms(number),
            );
        }
        assert_eq!(breaker.state(), BreakerState::Closed, "19 calls are too few");
        call(&mut breaker, Health::Answered, ms(20));
        assert_eq!(
            breaker.state(),
            BreakerState::Closed,
            "half is not more than half"
        );
        call(&mut breaker, Health::Faulty, ms(21));
        assert_eq!(breaker.state(), BreakerState::Open);
        assert_eq!(
            breaker.admit(ms(21)),
            Err(Refused {
                retry_after: FIRST_STEP
            })
        );
    }

    #[test]
    fn faults_of_more_than_ten_seconds_ago_are_forgotten() {
        let mut breaker = Breaker::new();
        for _ in 0..19 {
            call(&mut breaker, Health::Faulty, ms(0));
        }
        call(&mut breaker, Health::Faulty, ms(10_000));
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn answers_never_open_it_whatever_they_say() {
        let mut breaker = Breaker::new();
        for number in 0..1_000 {
            call(&mut breaker, Health::Answered, ms(number));
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn a_lost_connection_counts_once_whatever_its_streams() {
        let mut breaker = Breaker::new();
        for connection in 0..19 {
            for _stream in 0..100 {
                call(&mut breaker, Health::ConnectionLost { connection }, ms(5));
            }
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
        call(&mut breaker, Health::ConnectionLost { connection: 19 }, ms(5));
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn it_probes_with_one_push_after_a_second_doubling_to_ten() {
        let mut now = ms(500);
        let mut breaker = opened(now);
        for step in [1_000, 2_000, 4_000, 8_000, 10_000, 10_000] {
            assert_eq!(
                breaker.admit(now),
                Err(Refused {
                    retry_after: ms(step)
                })
            );
            assert!(breaker.admit(now + ms(step - 1)).is_err());
            now += ms(step);
            let probe = breaker.admit(now).unwrap();
            assert!(probe.probe && breaker.admit(now).is_err(), "one probe at a time");
            breaker.finished(probe, Health::Faulty, now);
        }
    }

    #[test]
    fn unreachable_for_twenty_seconds_then_back_the_next_push_within_a_step_is_sent_and_nothing_is_restarted()
    {
        let back_at = ms(20_000);
        let mut breaker = opened(ms(0));
        let mut sent_at = None;
        for now in (0..60_000).step_by(10).map(ms) {
            let Ok(pass) = breaker.admit(now) else { continue };
            let health = if now < back_at {
                Health::Faulty
            } else {
                Health::Answered
            };
            breaker.finished(pass, health, now);
            if now >= back_at {
                sent_at.get_or_insert(now);
            }
        }
        let late = sent_at.unwrap() - back_at;
        assert!(late <= LONGEST_STEP, "{late:?}");
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn an_abandoned_probe_is_due_again_at_once() {
        let mut breaker = opened(ms(0));
        let probe = breaker.admit(ms(1_000)).unwrap();
        breaker.abandoned(probe, ms(1_200));
        assert!(breaker.admit(ms(1_200)).is_ok_and(|pass| pass.probe));
    }

    #[test]
    fn what_began_before_it_opened_neither_fails_nor_passes_the_probe() {
        let mut breaker = Breaker::new();
        let early = breaker.admit(ms(0)).unwrap();
        for _ in 0..20 {
            call(&mut breaker, Health::Faulty, ms(0));
        }
        let probe = breaker.admit(ms(1_000)).unwrap();
        breaker.finished(early, Health::Faulty, ms(1_001));
        breaker.finished(early, Health::Answered, ms(1_001));
        breaker.abandoned(early, ms(1_001));
        assert_eq!(breaker.state(), BreakerState::Probing);
        breaker.finished(probe, Health::Answered, ms(1_002));
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    proptest! {
        #[test]
        fn never_two_probes_and_a_refused_push_passes_at_the_moment_it_was_told(
            steps in proptest::collection::vec((0..4_u8, 0..1_500_u64), 1..300),
        ) {
            let (mut breaker, mut now) = (Breaker::new(), Duration::ZERO);
            let mut out: Vec<Pass> = Vec::new();
            for (step, millis) in steps {
                now += ms(millis) / 10;
                match step {
                    0 => match breaker.admit(now) {
                        Ok(pass) => out.push(pass),
                        Err(refused) if breaker.state() == BreakerState::Open => {
                            let passes = now + refused.retry_after;
                            now = passes;
                            out.push(breaker.admit(passes).unwrap());
                        }
                        Err(_) => {}
                    },
                    1 | 2 => for pass in out.drain(..) {
                        breaker.finished(pass, if step == 1 { Health::Faulty } else { Health::Answered }, now);
                    },
                    _ => if let Some(pass) = out.pop() { breaker.abandoned(pass, now) },
                }
                let probes = out.iter().filter(|pass| pass.probe && pass.era == breaker.era).count();
                prop_assert_eq!(probes, usize::from(breaker.state() == BreakerState::Probing));
            }
        }
    }
}
