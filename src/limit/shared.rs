//! The shared budgets of a single node: young groups and tokens. Asked by the instances' actors for each push.

use std::time::Duration;

use sovereign_relay_actors::{
    limiter::{Limiter, Rate, Room, WhenFull},
    now::Now,
    ports::{SharedLimits, SharedSpend, TokenHash},
    wait::{Limit, Wait},
};
use sovereign_relay_protocol::limits::{TOKEN_PER_MINUTE, YOUNG_GROUP_PER_MINUTE};

/// Tokens remembered, about 60 bytes each; one is forgotten seconds after its last push. Beyond, further tokens
/// pass: their instances' own limits hold.
const TOKENS: usize = 500_000;
/// Groups remembered; one is forgotten within a minute of its last push. Beyond, further groups pass likewise.
const GROUPS: usize = 100_000;

/// Budgets in memory.
pub struct EmbeddedLimits {
    tokens: Limiter<TokenHash>,
    groups: Limiter<u64>,
}

impl EmbeddedLimits {
    /// All budgets full.
    pub fn new() -> Self {
        let room = |keys| Room {
            keys,
            when_full: WhenFull::Pass,
        };
        Self {
            tokens: Limiter::shared(Rate::per_minute(TOKEN_PER_MINUTE), room(TOKENS)),
            groups: Limiter::shared(Rate::per_minute(YOUNG_GROUP_PER_MINUTE), room(GROUPS)),
        }
    }

    /// Forgets what is full again. Call it every few seconds: tokens come and go quickly.
    pub fn clean(&self, now: Now) {
        self.tokens.clean(now.mono);
        self.groups.clean(now.mono);
    }

    /// Keys remembered, for metrics.
    pub fn keys(&self) -> usize {
        self.tokens.keys() + self.groups.keys()
    }
}

impl Default for EmbeddedLimits {
    fn default() -> Self {
        Self::new()
    }
}

impl SharedLimits for EmbeddedLimits {
    fn take(&self, spend: SharedSpend, now: Now) -> Result<(), Wait> {
        // What is shared is not taken, not even for a moment, for a push that is refused.
        self.check(spend, now)?;
        let Some(group) = spend.group else {
            return self.tokens.take(&spend.token, now.mono).map_err(of_device);
        };
        // Somebody else may have taken meanwhile. When one refuses, the other is asked too: the wait is for both.
        let group_wait = self.groups.take(&group, now.mono).map_err(of_group).err();
        let token_wait = self.tokens.take(&spend.token, now.mono).map_err(of_device).err();
        match (group_wait, token_wait) {
            (None, None) => Ok(()),
            (None, Some(wait)) => {
                self.groups.give_back(&group);
                Err(wait)
            }
            (Some(wait), None) => {
                self.tokens.give_back(&spend.token);
                Err(wait)
            }
            (Some(one), Some(other)) => Err(one.max(other)),
        }
    }

    fn check(&self, spend: SharedSpend, now: Now) -> Result<(), Wait> {
        let token_wait = self.tokens.check(&spend.token, now.mono).map_err(of_device).err();
        let group_wait = spend
            .group
            .and_then(|group| self.groups.check(&group, now.mono).map_err(of_group).err());
        token_wait.max(group_wait).map_or(Ok(()), Err)
    }
}

fn of_device(time: Duration) -> Wait {
    Limit::Device.wait(time)
}

fn of_group(time: Duration) -> Wait {
    Limit::Group.wait(time)
}

#[cfg(test)]
mod tests;
