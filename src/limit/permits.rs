//! What an instance may do in signaling, as its actor says: the registry of instances, or a double in tests.

use futures_util::future::{BoxFuture, FutureExt as _};
use sovereign_relay_actors::{
    instance::signal::{Admitted, SessionRefusal, TurnFor},
    registry::Registry,
};
use sovereign_relay_protocol::id::InstanceId;

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
