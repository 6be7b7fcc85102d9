use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::{FutureExt as _, future::BoxFuture};
use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};
use tokio::sync::Semaphore;

use super::support::grown;
use crate::ports::{InstanceStore, Standing, StoreError, Suspension};

pub(super) struct TestStore {
    pub(super) standings: Mutex<HashMap<InstanceId, Standing>>,
    pub(super) uses: Mutex<Vec<(InstanceId, u64)>>,
    pub(super) suspensions: Mutex<Vec<(InstanceId, Suspension)>>,
    pub(super) failing: AtomicBool,
    pub(super) note_use_panics: AtomicBool,
    pub(super) reads: Arc<Semaphore>,
}

impl TestStore {
    pub(super) fn new() -> Self {
        Self {
            standings: Mutex::default(),
            uses: Mutex::default(),
            suspensions: Mutex::default(),
            failing: AtomicBool::new(false),
            note_use_panics: AtomicBool::new(false),
            reads: Arc::new(Semaphore::new(1)),
        }
    }

    pub(super) fn suspend(&self, instance: InstanceId) {
        let suspension = Some(Suspension {
            until: None,
            reason: "by hand".to_owned(),
        });
        self.standings.lock().unwrap().insert(
            instance,
            Standing {
                suspension,
                ..grown()
            },
        );
    }

    pub(super) fn sent(&self, instance: InstanceId) -> u64 {
        self.uses
            .lock()
            .unwrap()
            .iter()
            .filter(|(who, _)| *who == instance)
            .map(|(_, sent)| sent)
            .sum()
    }

    fn result<T>(&self, value: T) -> Result<T, StoreError> {
        if self.failing.load(Ordering::SeqCst) {
            Err(StoreError("a fault that a test asked for".to_owned()))
        } else {
            Ok(value)
        }
    }
}

impl InstanceStore for TestStore {
    fn standing(&self, instance: InstanceId) -> BoxFuture<'static, Result<Option<Standing>, StoreError>> {
        let result = self.result(self.standings.lock().unwrap().get(&instance).cloned());
        let gate = self.reads.clone();
        async move {
            drop(gate.acquire().await.unwrap());
            result
        }
        .boxed()
    }

    fn note_use(
        &self,
        instance: InstanceId,
        sent: u64,
        _: UnixMillis,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        assert!(
            !self.note_use_panics.load(Ordering::SeqCst),
            "a panic that a test asked for"
        );
        let result = self.result(());
        if result.is_ok() {
            self.uses.lock().unwrap().push((instance, sent));
        }
        std::future::ready(result).boxed()
    }

    fn suspend(
        &self,
        instance: InstanceId,
        suspension: Suspension,
    ) -> BoxFuture<'static, Result<(), StoreError>> {
        let result = self.result(());
        if result.is_ok() {
            let mut standings = self.standings.lock().unwrap();
            standings.entry(instance).or_insert_with(grown).suspension = Some(suspension.clone());
            self.suspensions.lock().unwrap().push((instance, suspension));
        }
        std::future::ready(result).boxed()
    }
}
