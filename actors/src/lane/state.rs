//! Turns, pace, breaker, holds and judge of one provider, put together: what lies under the lane's lock.
//!
//! Pure but for the signals to those who wait: time comes in, nothing is awaited. `shell` and `place` call it.

use std::time::Duration;

use tokio::sync::oneshot;

use super::{
    BreakerState, LaneConfig, Verdict,
    breaker::{Breaker, Pass},
    hint,
    holds::Holds,
    judge::{Case, Judge, ScopeChange},
    pace::Pace,
    turns::{Bounds, Turns},
};
use crate::ports::{Health, Hold, Outcome, TokenHash};

pub(super) struct State {
    pub(super) turns: Turns<oneshot::Sender<Signal>>,
    pub(super) judge: Judge,
    pub(super) holds: Holds,
    pub(super) breaker: Breaker,
    pace: Pace,
    capacity: usize,
    pub(super) closing: bool,
}

/// What a waiter is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signal {
    /// Its turn. It has it from the moment this is sent.
    Turn,
    /// It is out of the line, because breaker or holds have something to say to all.
    LookAgain,
}

impl State {
    /// Nothing under way, nobody waiting.
    pub(super) fn new(config: LaneConfig, capacity: usize) -> Self {
        let capacity = capacity.max(1);
        let bounds = Bounds {
            all: config.queue,
            per_key: config.queue_per_key,
        };
        Self {
            turns: Turns::new(bounds, capacity),
            judge: Judge::default(),
            holds: Holds::default(),
            breaker: Breaker::new(),
            pace: Pace::Full,
            capacity,
            closing: false,
        }
    }

    /// Leave to call, of holds and breaker. `can_probe`: the call will show how the provider is.
    pub(super) fn pass(&mut self, token: TokenHash, can_probe: bool, now: Duration) -> Result<Pass, Verdict> {
        if let Some(answer) = self.holds.check(token, now) {
            return Err(Verdict::Answer(answer));
        }
        let admitted = match can_probe {
            true => self.breaker.admit(now),
            false => self.breaker.admit_bystander(now),
        };
        admitted.map_err(|refused| Verdict::Overloaded {
            retry_after: hint::clamp(refused.retry_after),
        })
    }

    /// What a call came to: everybody learns, then it is judged.
    pub(super) fn settle(
        &mut self,
        pass: Option<Pass>,
        case: &Case,
        outcome: Outcome,
        began: Duration,
        now: Duration,
    ) -> (Verdict, Vec<ScopeChange>) {
        match (pass, health(&outcome)) {
            (Some(pass), Some(health)) => self.breaker.finished(pass, health, now),
            (Some(pass), None) => self.breaker.abandoned(pass, now),
            (None, _) => {}
        }
        match &outcome {
            Outcome::Sent { .. } | Outcome::Gone { .. } => self.pace.succeeded(self.capacity, now),
            Outcome::Failed(failure) => {
                self.holds.note(case.token, failure, now);
                if failure.hold == Hold::Provider {
                    self.pace.throttled(self.turns.taken(), began, now);
                }
            }
            Outcome::Unreachable | Outcome::HostUnreachable | Outcome::Overloaded { .. } => {}
        }
        self.pace_turns(now);
        self.send_away(now);
        let verdict = self.judge.judge(case, outcome, now);
        (verdict, self.judge.take_changes())
    }

    /// A push has waited since `since` and got no turn in its time.
    pub(super) fn starved(&mut self, pass: Pass, since: Duration, now: Duration) {
        self.breaker.starved(pass, since, now);
        self.send_away(now);
    }

    /// The provider's capacity is this now, and it is this late. At least one call: a provider that connects on
    /// demand needs one to do so.
    pub(super) fn refresh(&mut self, capacity: usize, now: Duration) -> Vec<ScopeChange> {
        self.capacity = capacity.max(1);
        self.pace_turns(now);
        self.judge.advance(now);
        self.judge.take_changes()
    }

    /// When everybody would be refused, nobody waits for that.
    fn send_away(&mut self, now: Duration) {
        if self.breaker.state() == BreakerState::Open || self.holds.holds_everything(now) {
            self.turns
                .clear()
                .into_iter()
                .for_each(|waiter| tell(waiter, Signal::LookAgain));
        }
    }

    /// Gives as many turns as capacity and pace allow now.
    fn pace_turns(&mut self, now: Duration) {
        let limit = self.pace.allowed(self.capacity, now);
        self.turns.set_limit(limit);
        self.grant();
    }

    /// Tells those whose turn it is.
    pub(super) fn grant(&mut self) {
        while let Some(waiter) = self.turns.grant() {
            tell(waiter, Signal::Turn);
        }
    }

    /// Whether a closing lane is done.
    pub(super) fn is_idle(&self) -> bool {
        self.turns.taken() == 0 && self.turns.waiting() == 0
    }
}

/// Sent under the lock, so that a waiter that leaves finds either its ticket in the line or the signal. One that
/// has already gone finds the signal when its place is dropped, and gives its turn back: nothing to do here.
fn tell(waiter: oneshot::Sender<Signal>, signal: Signal) {
    let _gone = waiter.send(signal);
}

fn health(outcome: &Outcome) -> Option<Health> {
    match outcome {
        Outcome::Sent { .. } | Outcome::Gone { .. } => Some(Health::Answered),
        Outcome::Failed(failure) => Some(failure.health),
        Outcome::Unreachable => Some(Health::Faulty),
        Outcome::HostUnreachable | Outcome::Overloaded { .. } => None,
    }
}

#[cfg(test)]
mod tests;
