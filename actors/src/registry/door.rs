//! A lane as an instance's actor sees it, and which lane a push takes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sovereign_relay_protocol::{
    platform::{Environment, Platform},
    push::PushAnswer,
};

use crate::{
    lane::{Lane, Verdict},
    now::Now,
    ports::TokenHash,
    push::{LaneJob, TurnKey},
};

/// What an actor needs of a lane. Tests put their own behind it.
pub(crate) trait Door: Send + Sync + 'static {
    /// Whether there are credentials for the platform.
    fn serves(&self, platform: Platform) -> bool;
    /// Takes a turn, calls the provider, judges.
    fn deliver(&self, job: LaneJob) -> BoxFuture<'static, Verdict>;
    /// Judges a token that can't be one.
    fn malformed(&self, platform: Platform, key: TurnKey, token: TokenHash, began: Now) -> PushAnswer;
}

impl Door for Lane {
    fn serves(&self, platform: Platform) -> bool {
        self.scope(platform).is_some()
    }

    fn deliver(&self, job: LaneJob) -> BoxFuture<'static, Verdict> {
        let lane = self.clone();
        Box::pin(async move { lane.deliver(job).await })
    }

    fn malformed(&self, platform: Platform, key: TurnKey, token: TokenHash, began: Now) -> PushAnswer {
        Lane::malformed(self, platform, key, token, began)
    }
}

/// All lanes.
#[derive(Clone)]
pub(crate) struct Doors {
    pub(crate) apns_production: Arc<dyn Door>,
    pub(crate) apns_sandbox: Arc<dyn Door>,
    pub(crate) fcm: Arc<dyn Door>,
    pub(crate) wns: Arc<dyn Door>,
}

impl Doors {
    /// The lane of a platform; the environment counts for Apple's alone.
    pub(crate) fn of(&self, platform: Platform, environment: Environment) -> &Arc<dyn Door> {
        match (platform, environment) {
            (Platform::Ios | Platform::Macos, Environment::Production) => &self.apns_production,
            (Platform::Ios | Platform::Macos, Environment::Sandbox) => &self.apns_sandbox,
            (Platform::Android, _) => &self.fcm,
            (Platform::Windows, _) => &self.wns,
        }
    }
}
