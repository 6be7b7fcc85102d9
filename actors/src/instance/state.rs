//! The decisions of one instance's actor. Pure: time, the standing and what the lanes answer are passed in.
//!
//! Called by the actor in `instance.rs`, in this order for each push:
//!
//! ```text
//! admit   suspension 403 - size 413 - concurrency 429
//!         (idempotency, which waits for others, is the shell's; a replay ends there: it is no push, so it costs
//!         nothing of the rate limits, only a place among those at the same time)
//! bill    [what replicas share is paid: the shell may have to wait for it, a moment]
//! decide  rate limits 429 - platform configured 503 - dead-token memory - token shape - the lane
//! settle  what the lane answered
//! ```
//!
//! Invariant: what `admit` and `decide` refuse has changed nothing here but the time of use.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use sovereign_relay_protocol::{
    envelope::{AlertTitles, check_size},
    id::InstanceId,
    limits,
    push::{PushAnswer, PushMessage, PushResult, Reason},
    time::UnixMillis,
    token::{ChannelRule, TargetToken},
};

use super::{
    budgets::{Budgets, Spend},
    pressure::{Consequence, Pressure, SUSPENDED_FOR, SUSPENSION_REASON},
    signal::Signaling,
};
use crate::{
    now::Now,
    ports::{Bill, Paid, SharedLimits, SharedSpend, Standing, Suspension, TokenHash},
    push::{Newcomer, Push, Refusal, TurnKey},
    wait::Limit,
};

/// When nothing can name the moment at which a call passes (it depends on when pushes under way end).
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// What is the same for all instances.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Titles in the APNs envelope.
    pub(crate) titles: AlertTitles,
    /// Hosts a channel URI may name.
    pub(crate) channel_rule: ChannelRule,
    /// Pushes a minute without an operator's limit. A reload changes it; an instance goes by it from its next standing.
    pub(crate) per_minute: AtomicU32,
    /// Signaling sessions that each makes in a minute.
    pub(crate) sessions_per_minute: u32,
}

impl Rules {
    fn per_minute(&self) -> u32 {
        self.per_minute.load(Ordering::Relaxed)
    }
}

/// What becomes of a push that was admitted.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Refused.
    Refuse(Refusal),
    /// Answered from memory.
    Answer(PushAnswer),
    /// The token can't be one; the lane has the last word on that.
    Malformed {
        /// Whom it counts for.
        turn: TurnKey,
    },
    /// To the provider.
    Deliver {
        /// The parsed token.
        token: TargetToken,
        /// Whose turn it takes.
        turn: TurnKey,
    },
}

/// Use of the instance that the store has not been told of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Use {
    /// Pushes sent.
    pub(crate) sent: u64,
    /// Last use.
    pub(crate) at: UnixMillis,
}

/// One instance.
pub(crate) struct InstanceState {
    instance: InstanceId,
    rules: Arc<Rules>,
    enrolled_at: Option<UnixMillis>,
    group: Option<u64>,
    /// The operator allows it more than the default.
    trusted: bool,
    suspension: Option<Suspension>,
    /// The suspension is this actor's own, and the store has not taken it in: that it knows of none is no pardon.
    is_untold: bool,
    sent: u64,
    budgets: Budgets,
    pub(super) signaling: Signaling,
    pressure: Pressure,
    unwritten: Option<Use>,
    active_at: Duration,
}

impl InstanceState {
    /// An instance of which nothing is known yet.
    pub(crate) fn new(instance: InstanceId, rules: Arc<Rules>, now: Now) -> Self {
        Self {
            instance,
            budgets: Budgets::new(rules.per_minute()),
            signaling: Signaling::new(rules.sessions_per_minute),
            rules,
            enrolled_at: None,
            group: None,
            trusted: false,
            suspension: None,
            is_untold: false,
            sent: 0,
            pressure: Pressure::new(),
            unwritten: None,
            active_at: now.mono,
        }
    }

    /// What the store knows, at the start and whenever the operator changed it.
    pub(crate) fn on_standing(&mut self, standing: Option<Standing>) {
        let told = standing.as_ref().and_then(|known| known.suspension.clone());
        if told.is_none() && !self.is_untold && self.suspension.is_some() {
            self.pressure.pardon();
        }
        let per_minute = standing.as_ref().and_then(|known| known.per_minute);
        let default = self.rules.per_minute();
        self.trusted = per_minute.is_some_and(|limit| limit > default);
        self.budgets.set_rate(per_minute.unwrap_or(default));
        self.enrolled_at = standing.as_ref().and_then(|known| known.enrolled_at);
        self.group = standing.as_ref().and_then(|known| known.group);
        // What was sent since the store was last told is counted here alone.
        self.sent = self.sent.max(standing.as_ref().map_or(0, |known| known.sent));
        self.signaling.on_standing(standing.as_ref());
        self.suspension = match self.suspension.take().filter(|_| self.is_untold) {
            Some(own) => Some(told.filter(|told| told.outlasts(&own)).unwrap_or(own)),
            None => told,
        };
    }

    /// The suspension that the store is to be told of, while it lasts.
    pub(crate) fn untold_suspension(&self, now: Now) -> Option<&Suspension> {
        let lasts = self.is_untold && self.suspended(now).is_some();
        self.suspension.as_ref().filter(|_| lasts)
    }

    /// The store has taken it in: from now on its word holds.
    pub(crate) fn on_suspension_told(&mut self) {
        self.is_untold = false;
    }

    /// The checks that come before everything else. `has_slot`: whether it is among the pushes that may be under
    /// way at the same time.
    pub(crate) fn admit(&mut self, message: &PushMessage, has_slot: bool, now: Now) -> Result<(), Refusal> {
        self.active_at = now.mono;
        if let Some(retry_after) = self.suspended(now) {
            return Err(Refusal::Suspended { retry_after });
        }
        check_size(message.platform, &message.encrypted_payload, &self.rules.titles)
            .map_err(|_| Refusal::PayloadTooLarge)?;
        has_slot
            .then_some(())
            .ok_or(Refusal::RateLimited(Limit::UnderWay.wait(SOON)))
    }

    /// What the push has to pay of the limits that replicas share.
    pub(crate) fn bill(&self, push: &Push, now: Now) -> Bill {
        Bill {
            instance: self.instance,
            per_minute: self.budgets.per_minute(),
            group: self.young_group(push.newcomer, now),
        }
    }

    /// What becomes of an admitted push. `paid`: its bill, where replicas share limits. `configured`: whether there
    /// are credentials for its platform.
    pub(crate) fn decide(
        &mut self,
        push: &Push,
        paid: Option<Paid>,
        configured: bool,
        shared: &dyn SharedLimits,
        now: Now,
    ) -> Decision {
        let young = self.young_group(push.newcomer, now);
        let spend = self.spend(push.token, young, now);
        if let Err(wait) = self.budgets.spend(spend, paid, shared, now) {
            return Decision::Refuse(Refusal::RateLimited(wait));
        }
        self.note_use(0, now);
        if !configured {
            return Decision::Refuse(Refusal::PlatformNotConfigured);
        }
        if let Some(rest) = self.pressure.recently_gone(push.token, now.mono) {
            return Decision::Answer(PushAnswer::failed(
                Reason::RecentlyInvalid,
                true,
                Some(whole_seconds(rest)),
            ));
        }
        let turn = young.map_or(TurnKey::Instance(self.instance), TurnKey::Group);
        match TargetToken::parse(
            push.message.platform,
            &push.message.device_token,
            &self.rules.channel_rule,
        ) {
            Ok(token) => Decision::Deliver { token, turn },
            Err(_) => Decision::Malformed { turn },
        }
    }

    /// What was answered to a push that began at `began`. A suspension that follows holds at once and is to be
    /// written.
    pub(crate) fn settle(
        &mut self,
        token: TokenHash,
        result: PushResult,
        began: Now,
        now: Now,
    ) -> Option<Suspension> {
        self.active_at = now.mono;
        match result {
            PushResult::Sent => {
                self.sent = self.sent.saturating_add(1);
                self.note_use(1, now);
                self.pressure.on_sent(token, now.mono);
                None
            }
            PushResult::InvalidToken => match self.pressure.on_gone(token, began.mono, now.mono) {
                Consequence::Nothing => None,
                Consequence::Suspend => Some(self.suspend(now)),
            },
            PushResult::Failed => None,
        }
    }

    /// Takes the use that the store is to be told of.
    pub(crate) fn take_use(&mut self) -> Option<Use> {
        self.unwritten.take()
    }

    /// The store could not be told.
    pub(crate) fn put_back_use(&mut self, lost: Use) {
        let at = UnixMillis(
            self.unwritten
                .map_or(lost.at.0, |newer| newer.at.0.max(lost.at.0)),
        );
        let sent = self
            .unwritten
            .map_or(0, |newer| newer.sent)
            .saturating_add(lost.sent);
        self.unwritten = Some(Use { sent, at });
    }

    /// Forgets what is over. Called on a timer.
    pub(crate) fn clean(&mut self, now: Now) {
        self.budgets.clean(now);
        self.pressure.clean(now.mono);
    }

    /// Whether the actor may stop: nothing came for `idle_after`, and nothing is remembered whose loss would let the
    /// instance do more than it may.
    pub(crate) fn is_idle(&self, idle_after: Duration, now: Now) -> bool {
        now.mono.saturating_sub(self.active_at) >= idle_after
            && self.pressure.is_calm(now.mono)
            && self.untold_suspension(now).is_none()
    }

    /// Entries of all maps.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.budgets.len() + self.pressure.len()
    }

    /// `Some(rest)` while suspended; a rest of `None` has no end of its own.
    pub(super) fn suspended(&self, now: Now) -> Option<Option<Duration>> {
        match self.suspension.as_ref()?.until {
            None => Some(None),
            Some(until) => {
                let rest = until.0.checked_sub(now.unix.0).filter(|&millis| millis > 0)?;
                Some(Some(Duration::from_millis(rest)))
            }
        }
    }

    fn suspend(&mut self, now: Now) -> Suspension {
        let until = now.plus(SUSPENDED_FOR).unix;
        let suspension = Suspension {
            until: Some(until),
            reason: SUSPENSION_REASON.to_owned(),
        };
        self.suspension = Some(suspension.clone());
        self.is_untold = true;
        suspension
    }

    fn spend(&self, token: TokenHash, group: Option<u64>, now: Now) -> Spend {
        Spend {
            shared: SharedSpend { group, token },
            slowed: self.pressure.slowed(now.mono),
            wait: self.pressure.stranger_wait(token, now.mono),
        }
    }

    /// The group whose budget and turn a young instance shares. Without an enrollment on record the key decides,
    /// and such an instance stays what its key says. An operator's limit above the default takes an instance out, or
    /// it could never send as much as it was given; a lower one is a restraint and loosens nothing.
    fn young_group(&self, newcomer: Newcomer, now: Now) -> Option<u64> {
        if self.trusted {
            return None;
        }
        match (self.enrolled_at, newcomer) {
            (Some(at), _) => {
                let age_millis = now.unix.0.saturating_sub(at.0);
                let grown = age_millis >= limits::YOUNG_SECONDS * 1000 && self.sent >= limits::YOUNG_SENT;
                self.group.filter(|_| !grown)
            }
            (None, Newcomer::EarlierRelay) => None,
            (None, Newcomer::Young { group }) => Some(group),
        }
    }

    /// The instance did something.
    pub(super) fn touch(&mut self, now: Now) {
        self.active_at = now.mono;
    }

    pub(super) fn note_use(&mut self, sent: u64, now: Now) {
        let before = self.unwritten.map_or(0, |unwritten| unwritten.sent);
        self.unwritten = Some(Use {
            sent: before.saturating_add(sent),
            at: now.unix,
        });
    }
}

/// Rounded up, at least one.
fn whole_seconds(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_add(u64::from(duration.subsec_nanos() > 0))
        .max(1)
}

#[cfg(test)]
mod tests;
