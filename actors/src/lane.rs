//! What stands in front of one provider: turns, breaker, holds, and the judgement of what it answers.

use std::{sync::Arc, time::Duration};

use sovereign_relay_protocol::{id::InstanceId, platform::Platform, push::PushAnswer};

use crate::{
    now::Now,
    ports::{Clock, PushProvider, Scope, TokenHash},
    push::LaneJob,
};

/// Sizes of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneConfig {
    /// Most pushes that wait for a turn.
    pub queue: usize,
    /// Most pushes of one turn key that wait.
    pub queue_per_key: usize,
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self { queue: 10_000, queue_per_key: 1_024 }
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
        /// Earliest useful retry.
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
    provider: Arc<dyn PushProvider>,
}

impl Lane {
    /// A lane in front of `provider`, whose calls run on `runtime`.
    pub fn new(
        provider: Arc<dyn PushProvider>,
        _clock: Arc<dyn Clock>,
        _runtime: tokio::runtime::Handle,
        _config: LaneConfig,
    ) -> Self {
        Self { provider }
    }

    /// The scope of pushes to `platform`; `None` answers `platform_not_configured`.
    pub fn scope(&self, platform: Platform) -> Option<Scope> {
        self.provider.scope(platform)
    }

    /// Takes a turn, calls the provider and judges its answer. A caller that goes away cancels its waiting, but
    /// not a call that has begun.
    pub async fn deliver(&self, _job: LaneJob) -> Verdict {
        Verdict::Overloaded { retry_after: Duration::from_secs(1) }
    }

    /// Judges a token that can't be one, without a call. `began` is when the push came in.
    pub fn malformed(&self, _platform: Platform, _instance: InstanceId, _token: TokenHash, began: Now) -> PushAnswer {
        PushAnswer::invalid_token(sovereign_relay_protocol::push::Reason::MalformedToken, began.unix)
    }

    /// For metrics and `/readyz`.
    pub fn snapshot(&self) -> LaneSnapshot {
        LaneSnapshot {
            provider: self.provider.name(),
            breaker: BreakerState::Closed,
            waiting: 0,
            in_flight: 0,
            fuses: Vec::new(),
        }
    }

    /// Refuses new pushes and waits until every call under way has been answered.
    pub async fn close(&self) {}
}
