//! What an instance may do in signaling, as its actor says: the registry of instances, or a double in tests.
//!
//! Where replicas share, the actor is asked first (it knows of suspensions, and refuses a flood by itself), and then the
//! budget of all.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use sovereign_relay_actors::{
    instance::signal::{Admitted, SessionRefusal, TurnFor},
    ports::Clock,
    registry::Registry,
};
use sovereign_relay_protocol::id::InstanceId;

use super::leases::{Account, LeasedLimits};

/// Asked before a session is made for an instance.
pub trait Permits: Send + Sync + 'static {
    /// Takes one session of an instance's budget, unless the instance is suspended. `turn`: to whom the relay gives
    /// TURN credentials, where the session is to have them.
    fn admit_session(
        &self,
        instance: InstanceId,
        turn: TurnFor,
    ) -> BoxFuture<'_, Result<Admitted, SessionRefusal>>;
}

impl Permits for Registry {
    fn admit_session(
        &self,
        instance: InstanceId,
        turn: TurnFor,
    ) -> BoxFuture<'_, Result<Admitted, SessionRefusal>> {
        Self::admit_session(self, instance, turn).boxed()
    }
}

/// The permits of a replica.
pub struct SharedPermits {
    /// What it says by itself.
    pub own: Arc<dyn Permits>,
    /// What all share.
    pub limits: LeasedLimits,
    /// Sessions an instance may make.
    pub per_minute: u32,
    /// For the budgets.
    pub clock: Arc<dyn Clock>,
}

impl Permits for SharedPermits {
    fn admit_session(
        &self,
        instance: InstanceId,
        turn: TurnFor,
    ) -> BoxFuture<'_, Result<Admitted, SessionRefusal>> {
        let taken = async move {
            let admitted = self.own.admit_session(instance, turn).await?;
            let account = Account::Sessions(instance);
            let spent = self
                .limits
                .spend(account, self.per_minute, self.clock.now())
                .await;
            spent
                .map_err(|retry_after| SessionRefusal::TooOften { retry_after })?
                .keep();
            Ok(admitted)
        };
        taken.boxed()
    }
}
