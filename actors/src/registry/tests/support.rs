//! Doubles, and the bench that a test works at.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use sovereign_relay_protocol::{
    id::InstanceId,
    platform::{Platform, Priority},
    push::{PushAnswer, PushMessage, Reason},
    redacted::Redacted,
    time::UnixMillis,
};
use tokio::sync::Semaphore;

pub(super) use super::store::TestStore;
use crate::{
    idempotency::{OutcomeMemory, Remembered},
    lane::Verdict,
    now::Now,
    ports::{Clock, Entropy, SharedLimits, SharedSpend, Standing, TokenHash},
    push::{Answered, Idempotency, LaneJob, Newcomer, Push, PushName, Refusal, TurnKey},
    registry::{
        Registry, RegistryConfig,
        config::Ports,
        door::{Door, Doors},
    },
    wait::Wait,
};

/// A push to this token makes the actor panic: the limits it asks do.
pub(super) const POISON: u128 = 666;
/// A push to this token makes the lane panic.
pub(super) const LANE_POISON: u128 = 667;
/// A push to this token is answered `invalid_token`.
pub(super) const GONE: u128 = 410;
/// And so is one to any token from there to here.
pub(super) const LAST_GONE: u128 = 420;
/// A push to this token is answered `failed`, retryable.
pub(super) const BUSY: u128 = 429;
/// A push to this token is refused for a fault of the relay's.
pub(super) const MISCONFIGURED: u128 = 403;
/// A push to this token finds no provider.
pub(super) const UNREACHABLE: u128 = 502;
/// A push to this token finds a full queue.
pub(super) const OVERLOADED: u128 = 503;
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct TestClock(AtomicU64);

impl TestClock {
    pub(super) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Now {
        let millis = self.0.load(Ordering::SeqCst);
        Now {
            mono: Duration::from_millis(millis),
            unix: UnixMillis(1_700_000_000_000 + millis),
        }
    }
}

struct Counting(AtomicU64);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, Ordering::SeqCst) as u8);
    }
}

struct Generous;

impl SharedLimits for Generous {
    fn take(&self, spend: SharedSpend, _: Now) -> Result<(), Wait> {
        assert_ne!(spend.token, TokenHash(POISON), "a panic that a test asked for");
        Ok(())
    }

    fn check(&self, _: SharedSpend, _: Now) -> Result<(), Wait> {
        Ok(())
    }
}

/// A lane that answers by token, each call when the gate lets it.
pub(super) struct TestLane {
    pub(super) gate: Semaphore,
    pub(super) jobs: Mutex<Vec<LaneJob>>,
    pub(super) serves: AtomicBool,
}

impl TestLane {
    /// Calls that have begun.
    pub(super) fn calls(&self) -> usize {
        self.jobs.lock().unwrap().len()
    }

    pub(super) fn open(&self, calls: usize) {
        self.gate.add_permits(calls);
    }
}

struct TestDoor(Arc<TestLane>);

impl Door for TestDoor {
    fn serves(&self, _: Platform) -> bool {
        self.0.serves.load(Ordering::SeqCst)
    }

    fn deliver(&self, job: LaneJob) -> BoxFuture<'static, Verdict> {
        let lane = self.0.clone();
        async move {
            let token = job.token.0;
            lane.jobs.lock().unwrap().push(job);
            lane.gate.acquire().await.unwrap().forget();
            let retry_after = Duration::from_secs(3);
            match token {
                LANE_POISON => panic!("a panic that a test asked for"),
                GONE..=LAST_GONE => {
                    Verdict::Answer(PushAnswer::invalid_token(Reason::Unregistered, UnixMillis(5)))
                }
                BUSY => Verdict::Answer(PushAnswer::failed(Reason::ProviderUnavailable, true, None)),
                MISCONFIGURED => Verdict::Answer(PushAnswer::failed(Reason::RelayMisconfigured, false, None)),
                UNREACHABLE => Verdict::Unreachable { retry_after },
                OVERLOADED => Verdict::Overloaded { retry_after },
                _ => Verdict::Answer(PushAnswer::sent(None)),
            }
        }
        .boxed()
    }

    fn malformed(&self, _: Platform, _: TurnKey, _: TokenHash, began: Now) -> PushAnswer {
        PushAnswer::invalid_token(Reason::MalformedToken, began.unix)
    }
}

#[derive(Default)]
pub(super) struct TestOutcomes(pub(super) Mutex<HashMap<u128, Remembered>>);

impl OutcomeMemory for TestOutcomes {
    fn get(&self, key: u128, _: Now) -> BoxFuture<'static, Option<Remembered>> {
        std::future::ready(self.0.lock().unwrap().get(&key).cloned()).boxed()
    }

    fn put(&self, key: u128, outcome: Remembered, _: Now) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().entry(key).or_insert(outcome);
        std::future::ready(()).boxed()
    }
}

/// A registry and everything around it.
pub(super) struct Bench {
    pub(super) registry: Registry,
    pub(super) clock: Arc<TestClock>,
    pub(super) lane: Arc<TestLane>,
    pub(super) store: Arc<TestStore>,
    pub(super) outcomes: Arc<TestOutcomes>,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(RegistryConfig {
            tick: Duration::from_millis(5),
            ..RegistryConfig::default()
        })
    }

    pub(super) fn with(config: RegistryConfig) -> Self {
        let clock = Arc::new(TestClock(AtomicU64::new(1_000_000)));
        let lane = Arc::new(TestLane {
            gate: Semaphore::new(0),
            jobs: Mutex::default(),
            serves: AtomicBool::new(true),
        });
        let store = Arc::new(TestStore::new());
        let outcomes = Arc::new(TestOutcomes::default());
        let door = || Arc::new(TestDoor(lane.clone()));
        let doors = Doors {
            apns_production: door(),
            apns_sandbox: door(),
            fcm: door(),
            wns: door(),
        };
        let ports = Ports {
            doors,
            store: store.clone(),
            limits: Arc::new(Generous),
            outcomes: outcomes.clone(),
            clock: clock.clone(),
            entropy: Arc::new(Counting(AtomicU64::new(0))),
        };
        Self {
            registry: Registry::open(config, ports),
            clock,
            lane,
            store,
            outcomes,
        }
    }

    /// A push in a task of its own, as an HTTP worker has it.
    pub(super) fn begin(
        &self,
        instance: InstanceId,
        push: Push,
    ) -> tokio::task::JoinHandle<Result<Answered, Refusal>> {
        let registry = self.registry.clone();
        tokio::spawn(async move { registry.push(instance, push).await })
    }

    /// Begins a push and waits until the lane has it.
    pub(super) async fn begin_in_lane(
        &self,
        instance: InstanceId,
        push: Push,
    ) -> tokio::task::JoinHandle<Result<Answered, Refusal>> {
        let before = self.lane.calls();
        let begun = self.begin(instance, push);
        eventually("the lane has the push", || self.lane.calls() > before).await;
        begun
    }

    /// Nothing is under way, and nothing of a push is left anywhere.
    pub(super) async fn is_quiet(&self) {
        let kit = &self.registry.inner.kit;
        eventually("nothing under way", || {
            self.registry.snapshot().in_flight == 0 && kit.in_flight.len() == 0
        })
        .await;
        assert!(kit.directory.all().iter().all(|seat| seat.slots.all_free()));
    }
}

/// Runs a test inside an actix system.
pub(super) fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    actix::System::new().block_on(async {
        tokio::time::timeout(PATIENCE * 2, test())
            .await
            .expect("the test hangs")
    });
}

/// Waits for something that another thread does.
pub(super) async fn eventually(what: &str, happened: impl Fn() -> bool) {
    let waiting = async {
        let mut looks = tokio::time::interval(Duration::from_millis(1));
        while !happened() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("not in time: {what}"));
}

pub(super) fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

pub(super) fn grown() -> Standing {
    Standing {
        enrolled_at: Some(UnixMillis(0)),
        group: Some(5),
        sent: 1_000,
        per_minute: None,
        turn: None,
        suspension: None,
    }
}

pub(super) fn push(token: u128) -> Push {
    let message = PushMessage {
        platform: Platform::Android,
        device_token: Redacted::new(format!("token-{token}")),
        encrypted_payload: Redacted::new("sealed"),
        priority: Priority::High,
        ttl_seconds: 60,
        collapse_id: None,
        environment: None,
        idempotency_key: None,
    };
    Push {
        message,
        token: TokenHash(token),
        collapse: None,
        idempotency: None,
        newcomer: Newcomer::EarlierRelay,
    }
}

pub(super) fn keyed(token: u128, key: u128) -> Push {
    Push {
        idempotency: Some(Idempotency::new(PushName { key, message: token }, [])),
        ..push(token)
    }
}

pub(super) fn sent(replayed: bool) -> Result<Answered, Refusal> {
    Ok(Answered {
        answer: PushAnswer::sent(None),
        replayed,
    })
}
