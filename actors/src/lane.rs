//! What stands in front of one provider: turns, breaker, holds, and the judgement of what it answers.
//!
//! An instance's actor hands it pushes ([`Lane::deliver`]); there is one lane for APNs production, APNs sandbox, FCM
//! and WNS each, and none knows of the others, so that one provider's trouble stays its own.
//!
//! ```text
//! deliver -> holds (Retry-After runs?) -> breaker (down?) -> turns (fair, bounded, paced)
//!         -> holds and breaker again -> PushProvider::deliver, in a task of its own on the provider's runtime
//!         -> breaker, holds, pace learn -> judge (guard, fuses) -> Verdict
//! ```
//!
//! | file | decides |
//! |---|---|
//! | `turns` | who is next |
//! | `pace` | how many calls at a time after a throttle |
//! | `breaker` | whether the provider is down |
//! | `holds` | what must not be called before when |
//! | `guard`, `window`, `sent_memory`, `fuse` | whether "gone" is to be believed |
//! | `judge` | what the caller is told |
//! | `state` | all of these together, under the lane's lock |
//! | `place`, `shell` | nothing: waiting, tasks, log |
//!
//! Invariants: a call that has begun is judged, whether or not anybody still waits for it; never more calls are
//! under way than the provider's capacity; everybody is answered by the push's deadline.

mod breaker;
mod fuse;
mod guard;
mod hint;
mod holds;
mod judge;
mod pace;
mod place;
mod sent_memory;
mod series;
mod shell;
mod state;
mod turns;
mod window;

use std::{sync::Arc, time::Duration};

use sovereign_relay_protocol::{platform::Platform, push::PushAnswer};

pub use self::hint::{LONGEST_RETRY_AFTER, SHORTEST_RETRY_AFTER};
use crate::{
    now::Now,
    ports::{Clock, PushProvider, Scope, TokenHash},
    push::{LaneJob, TurnKey},
};

/// Sizes of a lane's queue. What does not fit is answered `overloaded` at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneConfig {
    /// Most pushes that wait for a turn: at 1,000 a second what can still be sent within the default deadline of
    /// 10 s, and with a payload each about 50 MB.
    pub queue: usize,
    /// Most pushes of one turn key that wait. An instance has no more than 256 at the same time; a group of young
    /// instances shares one line, and can't fill the queue either.
    pub queue_per_key: usize,
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self {
            queue: 10_000,
            queue_per_key: 1_024,
        }
    }
}

/// What became of a push that was given to a lane.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// 200.
    Answer(PushAnswer),
    /// 502 `send_failed`: no connection before the deadline.
    Unreachable {
        /// Earliest useful retry.
        retry_after: Duration,
    },
    /// 503 `overloaded`: breaker open, queue full, no turn before the deadline, or closing.
    Overloaded {
        /// Earliest useful retry; of an open breaker when the next probe is due.
        retry_after: Duration,
    },
}

/// The breaker as metrics and `/readyz` tell it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls are refused until the next probe.
    Open,
    /// One call is under way to see whether the provider is back.
    Probing,
}

/// One scope's fuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FuseSnapshot {
    /// Name of the scope.
    pub scope: Arc<str>,
    /// Conditional verdicts are held.
    pub conditional_open: bool,
    /// Conditional verdicts of an instance are held that was alone on the relay.
    pub single_instance_open: bool,
    /// Certain verdicts are held too.
    pub certain_open: bool,
}

/// A lane at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaneSnapshot {
    /// [`PushProvider::name`].
    pub provider: &'static str,
    /// The breaker.
    pub breaker: BreakerState,
    /// Pushes waiting for a turn.
    pub waiting: usize,
    /// Calls under way.
    pub in_flight: usize,
    /// Fuses of the scopes that had pushes lately.
    pub fuses: Vec<FuseSnapshot>,
}

/// What stands in front of one provider. Clones are the same lane.
#[derive(Clone)]
pub struct Lane {
    core: Arc<shell::Core>,
    _watch: Arc<shell::AbortOnDrop>,
}

impl Lane {
    /// A lane in front of `provider`, whose calls run on `runtime`.
    pub fn new(
        provider: Arc<dyn PushProvider>,
        clock: Arc<dyn Clock>,
        runtime: tokio::runtime::Handle,
        config: LaneConfig,
    ) -> Self {
        let (core, watch) = shell::start(provider, clock, runtime, config);
        Self {
            core,
            _watch: Arc::new(watch),
        }
    }

    /// Makes two lanes one provider's environments: a token that one of them takes is not gone because the other doesn't
    /// know it. Once, before the first push.
    pub fn pair(&self, other: &Self) {
        self.core.pair(&other.core);
        other.core.pair(&self.core);
    }

    /// The scope of pushes to `platform`; `None` answers `platform_not_configured`.
    pub fn scope(&self, platform: Platform) -> Option<Scope> {
        self.core.scope(platform)
    }

    /// Takes a turn, calls the provider and judges its answer. A caller that goes away cancels its waiting, but
    /// not a call that has begun.
    pub async fn deliver(&self, job: LaneJob) -> Verdict {
        self.core.deliver(job).await
    }

    /// Judges a token that can't be one, without a call. `began` is when the push came in.
    pub fn malformed(&self, platform: Platform, key: TurnKey, token: TokenHash, began: Now) -> PushAnswer {
        self.core.malformed(platform, key, token, began)
    }

    /// For metrics and `/readyz`.
    pub fn snapshot(&self) -> LaneSnapshot {
        self.core.snapshot()
    }

    /// Refuses new pushes and waits until those it has are answered: the calls under way, and whoever waits for a
    /// turn. Their deadlines bound it.
    pub async fn close(&self) {
        self.core.close().await;
    }
}

#[cfg(test)]
mod tests;
