//! What a push has taken from the lane: its place in the line or its turn, and its breaker pass.
//!
//! Taken by `shell`, given back by dropping it, whether the push ended, its caller went away or a provider
//! panicked.
//!
//! ```text
//!   Waiting --- told: your turn ---> Turn --- dropped: the next one's turn
//!      |`------ told: look again --> None
//!      `------- dropped: out of the line, or the turn it was just given goes on
//! ```

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::timeout};

use super::{
    Verdict,
    breaker::Pass,
    shell::{Core, QUEUE_RETRY, credentials_gone},
    state::Signal,
    turns::{Joined, Ticket},
};
use crate::{ports::Scope, push::LaneJob};

/// What a push has taken.
pub(super) struct Place {
    pub(super) core: Arc<Core>,
    /// Taken out by whoever gives it back with a result.
    pub(super) pass: Option<Pass>,
    spot: Spot,
}

enum Spot {
    Waiting {
        ticket: Ticket,
        told: oneshot::Receiver<Signal>,
    },
    Turn,
    None,
}

/// How the waiting ended.
pub(super) enum Waited {
    Turn,
    LookAgain,
    TooLate,
}

impl Place {
    /// Takes a place in the line, unless there is an answer without.
    pub(super) fn take(core: &Arc<Core>, job: &LaneJob) -> Result<Self, Verdict> {
        let (tell, told) = oneshot::channel();
        let (now, can_probe) = (core.now(), core.can_probe(&job.delivery));
        let mut state = core.lock();
        if state.closing {
            return Err(Verdict::Overloaded {
                retry_after: QUEUE_RETRY,
            });
        }
        let pass = state.pass(job.token, can_probe, now)?;
        let spot = match state.turns.join(job.turn, tell) {
            Joined::Turn => Spot::Turn,
            Joined::Waiting(ticket) => Spot::Waiting { ticket, told },
            Joined::Full => {
                state.breaker.abandoned(pass, now);
                return Err(Verdict::Overloaded {
                    retry_after: QUEUE_RETRY,
                });
            }
        };
        Ok(Self {
            core: core.clone(),
            pass: Some(pass),
            spot,
        })
    }

    /// Waits for the turn. Cancel-safe.
    pub(super) async fn turn(&mut self, patience: Duration) -> Waited {
        let Spot::Waiting { told, .. } = &mut self.spot else {
            return Waited::Turn;
        };
        match timeout(patience, told).await {
            Ok(Ok(Signal::Turn)) => {
                self.spot = Spot::Turn;
                Waited::Turn
            }
            Ok(Ok(Signal::LookAgain) | Err(_)) => {
                self.spot = Spot::None;
                Waited::LookAgain
            }
            Err(_) => Waited::TooLate,
        }
    }

    /// At its turn: what has changed while it waited?
    pub(super) fn look_again(&mut self, job: &LaneJob) -> Result<Scope, Verdict> {
        let scope = self.core.scope(job.delivery.platform);
        let (now, can_probe) = (self.core.now(), self.core.can_probe(&job.delivery));
        if now >= job.delivery.deadline {
            return Err(Verdict::Overloaded {
                retry_after: QUEUE_RETRY,
            });
        }
        let mut state = self.core.lock();
        if let Some(answer) = state.holds.check(job.token, now) {
            return Err(Verdict::Answer(answer));
        }
        if !self.pass.is_some_and(|pass| pass.probe) {
            self.pass = Some(state.pass(job.token, can_probe, now)?);
        }
        scope.ok_or_else(|| Verdict::Answer(credentials_gone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let now = self.core.now();
        let mut state = self.core.lock();
        if let Some(pass) = self.pass.take() {
            state.breaker.abandoned(pass, now);
        }
        match std::mem::replace(&mut self.spot, Spot::None) {
            Spot::Waiting { ticket, mut told } => {
                if !state.turns.leave(ticket) && told.try_recv() == Ok(Signal::Turn) {
                    state.turns.give_back();
                }
            }
            Spot::Turn => state.turns.give_back(),
            Spot::None => {}
        }
        state.grant();
        if state.closing && state.is_idle() {
            self.core.idle.notify_waiters();
        }
    }
}
