//! What all pools of one provider share: where to dial, how, and the tasks of it all.

use std::{
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use sovereign_relay_actors::ports::{Clock, Entropy};
use tokio::{runtime::Handle, sync::watch, task::JoinSet, time::timeout};

use crate::provider::{
    apns::{keep_alive::KeepAliveTiming, slots::Bounds},
    transport::{Endpoint, Transport},
};

/// How long connections may take to say goodbye when the provider is closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// What all pools of one provider share, also across reloads.
pub(in crate::provider::apns) struct Base {
    pub(in crate::provider::apns) name: &'static str,
    pub(in crate::provider::apns) transport: Transport,
    pub(in crate::provider::apns) endpoint: Endpoint,
    pub(in crate::provider::apns) clock: Arc<dyn Clock>,
    pub(in crate::provider::apns) entropy: Arc<dyn Entropy>,
    pub(in crate::provider::apns) runtime: Handle,
    pub(in crate::provider::apns) dial_within: Duration,
    pub(in crate::provider::apns) keep_alive: KeepAliveTiming,
    pub(in crate::provider::apns) bounds: Bounds,
    pub(in crate::provider::apns) capacity: watch::Sender<usize>,
    pub(in crate::provider::apns) tasks: Mutex<JoinSet<()>>,
    pub(in crate::provider::apns) next_id: AtomicU64,
}

impl Base {
    /// Runs `task` until it ends or the provider is closed or dropped.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(task, &self.runtime);
    }

    /// Lets the tasks end, and ends those that don't.
    pub(in crate::provider::apns) async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = timeout(CLOSE_WITHIN, async { while tasks.join_next().await.is_some() {} }).await;
        tasks.shutdown().await;
    }

    pub(super) fn jitter(&self) -> u8 {
        let mut byte = [0];
        self.entropy.fill(&mut byte);
        byte[0]
    }
}
