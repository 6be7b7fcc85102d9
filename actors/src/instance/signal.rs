//! What an instance may do in signaling: make sessions, and have their peers given TURN credentials.
//!
//! Asked through [`Registry::admit_session`](crate::registry::Registry::admit_session). Pure, like the rest of the
//! state. How many sessions live at the same time is counted by their store, and how often credentials are given out
//! where that is done.
//!
//! Invariant: what is refused has taken nothing of the budget. Where the operator's word is not known, it counts as
//! not given.

use std::time::Duration;

use thiserror::Error;

use super::state::InstanceState;
use crate::{
    limiter::{Limiter, ONLY, Rate},
    now::Now,
    ports::Standing,
};

/// Whose peers are given TURN credentials. An instance that the operator denied them gets none in any case.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TurnFor {
    /// Nobody's.
    None,
    /// Those of instances that the operator allowed: open enrollment must not make an open proxy.
    #[default]
    Allowed,
    /// Everybody's.
    All,
}

/// An instance may make a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted {
    /// Whether peers in the slots that it owns may be given TURN credentials.
    pub turn: bool,
}

/// Why an instance makes no session now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SessionRefusal {
    /// 403.
    #[error("this instance is suspended; ask the relay's operator")]
    Suspended {
        /// Until it ends by itself; `None`: until the operator resumes the instance.
        retry_after: Option<Duration>,
    },
    /// 429.
    #[error("too many new sessions; try again when Retry-After is over")]
    TooOften {
        /// When one would be made.
        retry_after: Duration,
    },
    /// 503: the relay is stopping.
    #[error("this relay is stopping")]
    Draining,
    /// 503: nobody could tell.
    #[error("too much waits for this instance's limits to be looked at")]
    Unavailable,
}

/// The budget, and the operator's word.
pub(super) struct Signaling {
    sessions: Limiter<()>,
    turn: Option<bool>,
}

impl Signaling {
    pub(super) fn new(sessions_per_minute: u32) -> Self {
        Self {
            sessions: Limiter::single(Rate::per_minute(sessions_per_minute)),
            turn: None,
        }
    }

    pub(super) fn on_standing(&mut self, standing: Option<&Standing>) {
        self.turn = standing.and_then(|known| known.turn);
    }

    fn may_turn(&self, given_to: TurnFor) -> bool {
        match given_to {
            TurnFor::None => false,
            TurnFor::Allowed => self.turn == Some(true),
            TurnFor::All => self.turn != Some(false),
        }
    }
}

impl InstanceState {
    /// Whether it may make a session now. A suspension stops that, and nothing else of signaling.
    pub(crate) fn admit_session(&mut self, turn: TurnFor, now: Now) -> Result<Admitted, SessionRefusal> {
        self.touch(now);
        if let Some(retry_after) = self.suspended(now) {
            return Err(SessionRefusal::Suspended { retry_after });
        }
        let took = self.signaling.sessions.take(&ONLY, now.mono);
        took.map_err(|retry_after| SessionRefusal::TooOften { retry_after })?;
        self.note_use(0, now);
        Ok(Admitted {
            turn: self.signaling.may_turn(turn),
        })
    }
}
