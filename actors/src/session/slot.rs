//! One slot of a session: who has it, and what its peer is told.
//!
//! ```text
//!            bind               unbind (lost)
//! Absent ----------> Bound ------------------> Lost { since }
//!                    ^  |  <------------------
//!                    |  |         bind
//!               bind |  | unbind (bye)
//!                    |  v
//!                    Left
//! ```
//!
//! What the peer is told follows from the phase and the time: a lost connection is `online` for 2 s more, `away` until
//! its 30 s of grace are over, then `left`. So nothing has to happen for it to be right.

use std::{collections::VecDeque, time::Duration};

use sovereign_relay_protocol::{
    id::InstanceId,
    limits::{AWAY_AFTER_SECONDS, GRACE_SECONDS, RETIRED_CONNECTIONS},
    signal::frame::{PeerPresence, PeerState},
};

use super::{
    mailbox::Mailbox,
    port::{Bind, BindRefusal, ConnectionHash, Presence},
    rules::SessionRules,
};
use crate::now::Now;

const AWAY_AFTER: Duration = Duration::from_secs(AWAY_AFTER_SECONDS);
const GRACE: Duration = Duration::from_secs(GRACE_SECONDS);
const MINUTE: Duration = Duration::from_secs(60);

/// One slot.
#[derive(Debug)]
pub(crate) struct SlotRecord {
    /// Whose ticket opens it; `None` until a second instance came to the rendezvous.
    pub(crate) instance: Option<InstanceId>,
    /// Fences connections: only the holder of the latest may act.
    pub(crate) epoch: u64,
    /// Page loads.
    pub(crate) generation: u32,
    /// The `n` expected next.
    pub(crate) next: u64,
    /// What waits for this slot.
    pub(crate) mailbox: Mailbox,
    phase: Phase,
    connection: Option<ConnectionHash>,
    attempt: u64,
    retired: VecDeque<ConnectionHash>,
    loads: Count,
    resumes: Count,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Absent,
    Bound,
    Lost { since: Duration },
    Left,
}

/// How often something happened in the current minute.
#[derive(Clone, Copy, Default, Debug)]
struct Count {
    began: Duration,
    count: u32,
}

impl SlotRecord {
    /// Nobody has come yet. A bind takes longer than a nanosecond: so epochs are higher than any in an earlier session
    /// of the same id, whose connections may outlive it by a moment.
    pub(crate) fn new(instance: Option<InstanceId>, now: Now) -> Self {
        Self {
            instance,
            epoch: u64::try_from(now.mono.as_nanos()).unwrap_or(0),
            generation: 0,
            next: 1,
            mailbox: Mailbox::default(),
            phase: Phase::Absent,
            connection: None,
            attempt: 0,
            retired: VecDeque::new(),
            loads: Count::default(),
            resumes: Count::default(),
        }
    }

    /// Gives the slot to a connection; says whether it is a new page load.
    pub(crate) fn bind(&mut self, bind: &Bind, rules: &SessionRules, now: Now) -> Result<bool, BindRefusal> {
        let is_new_load = self.connection != Some(bind.connection);
        if is_new_load {
            self.check_load(bind, rules, now)?;
            self.retire();
            self.connection = Some(bind.connection);
            self.generation = self.generation.saturating_add(1);
            self.next = 1;
            self.resumes = Count::default();
        } else {
            self.check_resume(bind, rules, now)?;
        }
        self.attempt = bind.attempt;
        self.epoch += 1;
        self.phase = Phase::Bound;
        Ok(is_new_load)
    }

    fn check_load(&mut self, bind: &Bind, rules: &SessionRules, now: Now) -> Result<(), BindRefusal> {
        if self.retired.contains(&bind.connection) {
            return Err(BindRefusal::Replaced);
        }
        self.check_last(bind)?;
        if !self.loads.take(rules.loads_per_minute, now) {
            return Err(BindRefusal::TooManyLoads);
        }
        Ok(())
    }

    fn check_resume(&mut self, bind: &Bind, rules: &SessionRules, now: Now) -> Result<(), BindRefusal> {
        if bind.attempt <= self.attempt {
            return Err(BindRefusal::Replaced);
        }
        self.check_last(bind)?;
        if !self.resumes.take(rules.resumes_per_minute, now) {
            return Err(BindRefusal::TooManyResumes);
        }
        Ok(())
    }

    fn check_last(&self, bind: &Bind) -> Result<(), BindRefusal> {
        if bind.last > self.mailbox.sent() {
            return Err(BindRefusal::BeyondSent);
        }
        Ok(())
    }

    fn retire(&mut self) {
        let Some(old) = self.connection.take() else {
            return;
        };
        if self.retired.len() >= RETIRED_CONNECTIONS {
            self.retired.pop_front();
        }
        self.retired.push_back(old);
    }

    /// Whether the connection of `epoch` has the slot.
    pub(crate) fn is_held_by(&self, epoch: u64) -> bool {
        self.epoch == epoch && self.phase == Phase::Bound
    }

    /// Its socket is gone.
    pub(crate) fn lose(&mut self, now: Now) {
        self.phase = Phase::Lost { since: now.mono };
    }

    /// It said goodbye.
    pub(crate) fn leave(&mut self) {
        self.phase = Phase::Left;
    }

    /// Whether it said goodbye and did not come back.
    pub(crate) fn said_bye(&self) -> bool {
        self.phase == Phase::Left
    }

    /// What its peer is told.
    pub(crate) fn presence(&self, now: Now) -> Presence {
        let (state, changes_in) = match self.phase {
            Phase::Absent => (PeerState::Absent, None),
            Phase::Bound => (PeerState::Online, None),
            Phase::Left => (PeerState::Left, None),
            Phase::Lost { since } => lost_for(now.mono.saturating_sub(since)),
        };
        let told = PeerPresence {
            state,
            generation: self.generation,
        };
        Presence { told, changes_in }
    }
}

fn lost_for(time: Duration) -> (PeerState, Option<Duration>) {
    if time < AWAY_AFTER {
        (PeerState::Online, Some(AWAY_AFTER.saturating_sub(time)))
    } else if time < GRACE {
        (PeerState::Away, Some(GRACE.saturating_sub(time)))
    } else {
        (PeerState::Left, None)
    }
}

impl Count {
    /// Counts one more, if `most` are not reached within the minute that the first one began.
    fn take(&mut self, most: u32, now: Now) -> bool {
        if self.count == 0 || now.mono.saturating_sub(self.began) >= MINUTE {
            *self = Self {
                began: now.mono,
                count: 0,
            };
        }
        let passes = self.count < most;
        self.count += u32::from(passes);
        passes
    }
}
