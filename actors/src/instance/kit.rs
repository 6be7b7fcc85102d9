//! What every actor works with.

use std::{sync::Arc, time::Duration};

use sovereign_relay_protocol::platform::Environment;

use super::state::Rules;
use crate::{
    idempotency::{InFlight, OutcomeMemory},
    ports::{Clock, Entropy, InstanceStore, SharedLimits},
    registry::{directory::Directory, door::Doors, tracker::Tracker},
};

/// Shared by all actors of a registry.
pub(crate) struct Kit {
    pub(crate) rules: Arc<Rules>,
    pub(crate) default_environment: Environment,
    pub(crate) push_deadline: Duration,
    pub(crate) idle_after: Duration,
    pub(crate) tick: Duration,
    pub(crate) doors: Doors,
    pub(crate) store: Arc<dyn InstanceStore>,
    pub(crate) limits: Arc<dyn SharedLimits>,
    pub(crate) outcomes: Arc<dyn OutcomeMemory>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) in_flight: InFlight,
    pub(crate) directory: Arc<Directory>,
    /// Pushes under way.
    pub(crate) pushes: Tracker,
    /// Writes to the store under way.
    pub(crate) writes: Tracker,
}
