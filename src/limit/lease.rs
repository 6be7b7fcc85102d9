//! One replica's part in a limit that all replicas share: tokens leased in batches, decided without I/O.
//!
//! The budget itself is one GCRA in Redis, which grants tokens and never more than there are. A replica leases a batch,
//! spends it push by push, and asks for the next one before the last is gone:
//!
//! ```text
//! Shared: stock -> Granted       none, a refusal holds -> Refused      none -> Wait, ask(waiting + batch)
//!   | no answer in time
//!   v
//! Local:  stock, then this replica's share -> Granted or Refused, nobody waits; ask again each second
//!   | an answer
//!   v
//! Shared: what was spent meanwhile is charged with the next ask
//! ```
//!
//! Called by `leases.rs`, which does the asking. Time is passed in, by threads that have looked at the clock one after
//! the other and come in any order; here it never goes back.
//!
//! Invariants: in `Shared` no push passes without a token that Redis granted, so replicas together never exceed the
//! limit; a replica hoards at most a batch and a half, unused tokens lapse after [`LASTS`], and the batch shrinks with
//! the number of replicas, so together they hold back at most [`HOARDED`] of what a minute allows.

use std::time::Duration;

/// A batch is a minute's budget divided by this and by the number of replicas. At most a batch and a half lies unused
/// at each: 7.5 % of a minute's budget over all, 3.75 % of what a minute that begins with a full budget lets through.
const HOARDED: u32 = 20;
/// Unused tokens are worth nothing after this: what was granted for one minute is not spent in another.
const LASTS: Duration = Duration::from_secs(10);
/// How soon after a refusal Redis is asked again at the earliest, so that a flood costs it little.
const PAUSE: Duration = Duration::from_millis(20);
/// How often Redis is tried again while it does not answer.
const RETRY: Duration = Duration::from_secs(1);
/// The interval of all limits, and how long a spent token matters.
const MINUTE: Duration = Duration::from_secs(60);

/// What a push is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Take {
    /// It has its token.
    Granted,
    /// It is over the limit for so long.
    Refused(Duration),
    /// The next answer of Redis decides: see [`Lease::serve`].
    Wait,
}

/// A call to make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Pushes a minute of the account.
    pub per_minute: u32,
    /// Tokens wanted, at most.
    pub wanted: u32,
    /// Tokens already spent while Redis did not answer, to be taken whether they are there or not.
    pub charge: u32,
}

/// Redis' answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// Tokens granted, at most as many as were wanted.
    pub granted: u32,
    /// Tokens that are left.
    pub left: u32,
    /// How long until there is another one.
    pub wait: Duration,
}

/// One replica's part in one account.
#[derive(Debug)]
pub(super) struct Lease {
    per_minute: u32,
    replicas: u32,
    stock: u32,
    stock_until: Duration,
    refused_until: Duration,
    asked: Option<Ask>,
    waiting: u32,
    mode: Mode,
    /// Spent from the local share and not told yet, and when the last was.
    untold: u32,
    untold_at: Duration,
    /// The latest time that was passed in.
    seen: Duration,
}

#[derive(Debug)]
enum Mode {
    /// Redis answers; so much was left when it last did.
    Shared { left: u32, at: Duration },
    /// It does not.
    Local { share: Share, retry_at: Duration },
}

impl Lease {
    /// Nothing leased yet. `replicas`: how many share the account, as far as is known, at least one.
    pub(super) fn new(per_minute: u32, replicas: u32, now: Duration) -> Self {
        Self {
            per_minute: per_minute.max(1),
            replicas: replicas.max(1),
            stock: 0,
            stock_until: now,
            refused_until: now,
            asked: None,
            waiting: 0,
            mode: Mode::Shared {
                left: per_minute,
                at: now,
            },
            untold: 0,
            untold_at: now,
            seen: now,
        }
    }

    /// Another rate starts with a full budget, as it does in Redis. An answer under way is for the old one.
    pub(super) fn agree(&mut self, per_minute: u32, replicas: u32, now: Duration) {
        let now = self.see(now);
        self.replicas = replicas.max(1);
        if per_minute.max(1) == self.per_minute {
            return;
        }
        let (asked, waiting) = (self.asked, self.waiting);
        *self = Self {
            asked,
            waiting,
            ..Self::new(per_minute, replicas, now)
        };
    }

    /// One token, if there is one. After `Wait` somebody waits, until [`Lease::serve`].
    pub(super) fn take(&mut self, now: Duration) -> Take {
        let now = self.see(now);
        self.lapse(now);
        if self.stock > 0 {
            self.stock -= 1;
            return Take::Granted;
        }
        match &mut self.mode {
            Mode::Local { share, .. } => match share.take(now) {
                Ok(()) => {
                    self.untold = self.untold.saturating_add(1).min(self.per_minute);
                    self.untold_at = now;
                    Take::Granted
                }
                Err(wait) => Take::Refused(wait),
            },
            Mode::Shared { .. } if now < self.refused_until => Take::Refused(self.refused_until - now),
            Mode::Shared { .. } => {
                self.waiting += 1;
                Take::Wait
            }
        }
    }

    /// A token that was not used after all.
    pub(super) fn give_back(&mut self, now: Duration) {
        let now = self.see(now);
        self.lapse(now);
        if self.stock == 0 {
            self.stock_until = now + LASTS;
        }
        self.stock += 1;
    }

    /// The call to make now, if any: after each take and each answer. Until it is answered there is no other.
    pub(super) fn ask(&mut self, now: Duration) -> Option<Ask> {
        let now = self.see(now);
        if self.asked.is_some() {
            return None;
        }
        let batch = self.batch();
        let wanted = match &self.mode {
            Mode::Shared { .. } if self.waiting > 0 => self.waiting.saturating_add(batch),
            Mode::Shared { .. } if self.stock < batch / 2 && now >= self.refused_until => batch,
            Mode::Local { retry_at, .. } if now >= *retry_at => batch,
            Mode::Shared { .. } | Mode::Local { .. } => return None,
        };
        let ask = Ask {
            per_minute: self.per_minute,
            wanted: wanted.min(self.per_minute),
            charge: self.untold(now),
        };
        self.asked = Some(ask);
        self.asked
    }

    /// Redis has answered.
    pub(super) fn on_grant(&mut self, grant: Grant, now: Duration) {
        let Some(asked) = self.asked.take() else {
            return;
        };
        if asked.per_minute != self.per_minute {
            return;
        }
        let now = self.see(now);
        self.lapse(now);
        self.untold = self.untold.saturating_sub(asked.charge);
        self.stock = self.stock.saturating_add(grant.granted);
        if grant.granted > 0 {
            self.stock_until = now + LASTS;
        }
        if grant.granted < asked.wanted {
            self.refused_until = now + grant.wait.max(PAUSE);
        }
        self.mode = Mode::Shared {
            left: grant.left,
            at: now,
        };
    }

    /// Redis has not answered in time: from now on this replica's share of what was left holds.
    pub(super) fn on_away(&mut self, now: Duration) {
        let now = self.see(now);
        self.asked = None;
        let share = match &self.mode {
            Mode::Local { share, .. } => *share,
            Mode::Shared { left, at } => self.share(*left, now.saturating_sub(*at), now),
        };
        self.mode = Mode::Local {
            share,
            retry_at: now + RETRY,
        };
    }

    /// What the longest waiting is told; `None` while nobody waits or the answer is not there.
    pub(super) fn serve(&mut self, now: Duration) -> Option<Result<(), Duration>> {
        if self.waiting == 0 || self.asked.is_some() {
            return None;
        }
        self.waiting -= 1;
        match self.take(now) {
            Take::Granted => Some(Ok(())),
            Take::Refused(wait) => Some(Err(wait)),
            // It was counted again.
            Take::Wait => None,
        }
    }

    /// Whether forgetting it changes no answer: nothing is under way, held, owed or refused, and the budget is full
    /// again as far as is known, for that is what a new one goes by where Redis does not answer.
    pub(super) fn is_idle(&self, now: Duration) -> bool {
        let now = now.max(self.seen);
        let settled = match &self.mode {
            Mode::Shared { left, at } => self.level(*left, now.saturating_sub(*at)) >= self.per_minute,
            Mode::Local { share, .. } => share.is_full(now),
        };
        let spent = self.stock == 0 || now >= self.stock_until;
        settled
            && spent
            && self.asked.is_none()
            && self.waiting == 0
            && now >= self.refused_until
            && self.untold(now) == 0
    }

    /// What counts as now.
    fn see(&mut self, now: Duration) -> Duration {
        self.seen = self.seen.max(now);
        self.seen
    }

    fn batch(&self) -> u32 {
        (self.per_minute / HOARDED / self.replicas).max(1)
    }

    fn lapse(&mut self, now: Duration) {
        if now >= self.stock_until {
            self.stock = 0;
        }
    }

    /// What was spent more than a minute ago is as good as back.
    fn untold(&self, now: Duration) -> u32 {
        if now.saturating_sub(self.untold_at) < MINUTE {
            self.untold
        } else {
            0
        }
    }

    fn share(&self, left: u32, since: Duration, now: Duration) -> Share {
        let level = self.level(left, since);
        Share::new(self.emission() * self.replicas, level / self.replicas, now)
    }

    /// What the budget has by now of which so much was left.
    fn level(&self, left: u32, since: Duration) -> u32 {
        let refilled = since.as_nanos() / self.emission().as_nanos().max(1);
        let refilled = u32::try_from(refilled).unwrap_or(u32::MAX);
        left.saturating_add(refilled).min(self.per_minute)
    }

    fn emission(&self) -> Duration {
        MINUTE / self.per_minute
    }
}

/// This replica's share while it is on its own: a GCRA at the account's rate divided by the replicas.
#[derive(Clone, Copy, Debug)]
struct Share {
    emission: Duration,
    burst: Duration,
    arrival: Duration,
}

impl Share {
    fn new(emission: Duration, level: u32, now: Duration) -> Self {
        // A share of less than one a minute is one, more rarely.
        let burst = MINUTE.max(emission);
        let arrival = (now + burst).saturating_sub(emission * level);
        Self {
            emission,
            burst,
            arrival,
        }
    }

    fn take(&mut self, now: Duration) -> Result<(), Duration> {
        let next = self.arrival.max(now) + self.emission;
        let wait = next.saturating_sub(now + self.burst);
        if !wait.is_zero() {
            return Err(wait);
        }
        self.arrival = next;
        Ok(())
    }

    fn is_full(&self, now: Duration) -> bool {
        self.arrival <= now
    }
}

#[cfg(test)]
mod tests;
