//! The circuit breaker of one provider: stops calling one that is down, finds out soon when it is back.
//!
//! The lane asks [`Breaker::admit`] before a push queues and again at its turn, and gives every [`Pass`] back once,
//! with what the call told ([`Breaker::finished`]), or that there was none ([`Breaker::abandoned`],
//! [`Breaker::starved`]). Probes are real pushes, of those that will show how the provider is.
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
//! timeouts, transport errors and 5xx; a lost connection is one call and one fault, whatever it carried. A push that
//! waits for its turn until it is too late, while nobody is answered, has timed out as well: a provider that is asked
//! one thing at a time and hangs would otherwise never be called often enough to be found out.

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
/// A probe that is due for longer is anybody's.
const OVERDUE: Duration = LONGEST_STEP;
/// Lost connections remembered, so that the many streams of one count once. A provider has a few connections;
/// when one more is lost the oldest is forgotten, and a straggler of it would count again.
const LOST_CONNECTIONS: usize = 64;

#[derive(Debug)]
pub(super) struct Breaker {
    phase: Phase,
    /// Counts the phases, so that a call begun in an earlier one says nothing about this one.
    era: u64,
    lost: VecDeque<u64>,
    /// When a call was last answered.
    answered_at: Option<Duration>,
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
            answered_at: None,
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

    /// May a push be sent that says nothing of the provider? Like [`Breaker::admit`], but it is not the probe, unless
    /// nobody else has come for long: it may still be answered.
    pub(super) fn admit_bystander(&mut self, now: Duration) -> Result<Pass, Refused> {
        match self.phase {
            Phase::Open { probe_at, .. } if now >= probe_at && now < probe_at.saturating_add(OVERDUE) => {
                Err(Refused {
                    retry_after: FIRST_STEP,
                })
            }
            Phase::Closed { .. } | Phase::Open { .. } | Phase::Probing { .. } => self.admit(now),
        }
    }

    /// What a call told. Answers of an earlier phase's calls are dropped.
    pub(super) fn finished(&mut self, pass: Pass, health: Health, now: Duration) {
        if health == Health::Answered {
            // Calls end on several threads, each of which looked at the clock before it came here.
            self.answered_at = self.answered_at.max(Some(now));
        }
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
            Health::Unknown => return self.abandoned(pass, now),
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

    /// A pass whose push has waited for its turn since `since`, until it was too late.
    pub(super) fn starved(&mut self, pass: Pass, since: Duration, now: Duration) {
        match self.answered_at {
            Some(answered_at) if answered_at >= since => self.abandoned(pass, now),
            Some(_) | None => self.finished(pass, Health::Faulty, now),
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
mod tests;
