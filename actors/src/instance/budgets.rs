//! Everything one push has to pay, taken together or not at all.
//!
//! ```text
//! instance 600/min - instance and token 120/min - [slowed down: a tenth] - [strangers] - shared: group, token
//! ```
//!
//! Where replicas share the limits, instance and group are paid beforehand ([`SharedLimits::pay`]), and the receipt
//! comes in: a push that is refused for another reason gives it back.
//!
//! Invariant: a refused push has taken nothing, and its wait is the longest of all that refuse: when it is over
//! and nothing else came in between, the push passes.

use std::time::Duration;

use sovereign_relay_protocol::limits::TOKEN_PER_INSTANCE_PER_MINUTE;

use crate::{
    limiter::{Limiter, ONLY, Rate, Room, WhenFull},
    now::Now,
    ports::{Paid, SharedLimits, SharedSpend, TokenHash},
    wait::{Limit, Wait},
};

/// Tokens whose rate is watched. One is forgotten seconds after its last push, so only an instance with a limit
/// far over the default comes near; beyond, the instance's own limit and the shared one hold.
const TOKENS: Room = Room {
    keys: 65_536,
    when_full: WhenFull::Pass,
};
/// What is left of its rate to an instance that keeps pushing to dead tokens.
const SLOWED_TO_ONE_IN: u32 = 10;

/// The budgets of one instance.
pub(crate) struct Budgets {
    per_minute: u32,
    instance: Limiter<()>,
    slowed: Limiter<()>,
    tokens: Limiter<TokenHash>,
}

/// What one push is about to pay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spend {
    /// To budgets that instances share.
    pub(crate) shared: SharedSpend,
    /// How much longer the instance is slowed down.
    pub(crate) slowed: Option<Duration>,
    /// How long the push has to wait whatever the budgets say.
    pub(crate) wait: Option<Duration>,
}

impl Budgets {
    /// All budgets full.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self {
            per_minute,
            instance: Limiter::single(Rate::per_minute(per_minute)),
            slowed: Limiter::single(Rate::per_minute(per_minute / SLOWED_TO_ONE_IN)),
            tokens: Limiter::own(Rate::per_minute(TOKEN_PER_INSTANCE_PER_MINUTE), TOKENS),
        }
    }

    /// The operator's word. The same rate again changes nothing; another one starts with a full budget.
    pub(crate) fn set_rate(&mut self, per_minute: u32) {
        if per_minute != self.per_minute {
            let tokens = std::mem::replace(self, Self::new(per_minute)).tokens;
            self.tokens = tokens;
        }
    }

    /// Pushes a minute.
    pub(crate) fn per_minute(&self) -> u32 {
        self.per_minute
    }

    /// Pays for one push, or says how long until it could. `paid`: what replicas share, where they do.
    pub(crate) fn spend(
        &self,
        spend: Spend,
        paid: Option<Paid>,
        limits: &dyn SharedLimits,
        now: Now,
    ) -> Result<(), Wait> {
        let Some(paid) = paid else {
            let of_instance = |time| Limit::Instance.wait(time);
            let instance_wait = self.instance.check(&ONLY, now.mono).map_err(of_instance);
            self.spend_here(spend, instance_wait.err(), limits, now)?;
            // It does not refuse: it was asked above, and nobody else takes from it.
            return self.instance.take(&ONLY, now.mono).map_err(of_instance);
        };
        let rest = Spend {
            shared: SharedSpend {
                group: None,
                ..spend.shared
            },
            ..spend
        };
        match paid {
            Ok(receipt) => {
                self.spend_here(rest, None, limits, now)?;
                receipt.keep();
                Ok(())
            }
            Err(wait) => self.spend_here(rest, Some(wait), limits, now),
        }
    }

    /// Forgets tokens whose budgets are full again. Called on a timer.
    pub(crate) fn clean(&self, now: Now) {
        self.tokens.clean(now.mono);
    }

    /// Tokens remembered.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.tokens.keys()
    }

    /// Everything but the instance's rate, for which there may be a wait already.
    fn spend_here(
        &self,
        spend: Spend,
        instance_wait: Option<Wait>,
        limits: &dyn SharedLimits,
        now: Now,
    ) -> Result<(), Wait> {
        if let Some(wait) = instance_wait.max(self.own_wait(spend, now)) {
            return Err(limits
                .check(spend.shared, now)
                .err()
                .map_or(wait, |shared| wait.max(shared)));
        }
        limits.take(spend.shared, now)?;
        // None of these refuses: they were asked above, and nobody else takes from them.
        self.tokens
            .take(&spend.shared.token, now.mono)
            .map_err(|time| Limit::Device.wait(time))?;
        if spend.slowed.is_some() {
            self.slowed
                .take(&ONLY, now.mono)
                .map_err(|time| Limit::Slowed.wait(time))?;
        }
        Ok(())
    }

    fn own_wait(&self, spend: Spend, now: Now) -> Option<Wait> {
        let slowed = spend.slowed.and_then(|ends| {
            let wait = self.slowed.check(&ONLY, now.mono).err()?;
            Some(Limit::Slowed.wait(wait.min(ends)))
        });
        let token = self.tokens.check(&spend.shared.token, now.mono).err();
        let token = token.map(|time| Limit::Device.wait(time));
        let strangers = spend.wait.map(|time| Limit::Strangers.wait(time));
        strangers.max(slowed).max(token)
    }
}
