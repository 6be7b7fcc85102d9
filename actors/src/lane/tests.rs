//! The shell with a provider that does as it is told, on a paused clock.

mod faults;
mod lines;
mod queue;
mod reload;

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use sovereign_relay_protocol::{
    platform::{Environment, Priority},
    push::{PushResult, Reason},
    redacted::Redacted,
    time::UnixMillis,
    token::TargetToken,
};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, watch},
    time::{Instant, sleep},
};
use uuid::Uuid;

use super::*;
use crate::{
    lane::sent_memory::tests::token as token_hash,
    ports::{Certainty, Delivery, Failure, Health, Hold, Outcome},
    push::TurnKey,
};

const DEADLINE: Duration = Duration::from_secs(10);

struct PausedClock(Instant);

impl PausedClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the paused clock of the test is the time"
    )]
    fn start() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Now {
        let mono = self.0.elapsed();
        Now {
            mono,
            unix: UnixMillis(1_700_000_000_000),
        }
    }
}

type Script = Box<dyn Fn(&Delivery) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Answers by its script and counts.
struct Fake {
    script: Mutex<Arc<Script>>,
    scope: Mutex<Scope>,
    capacity: watch::Sender<usize>,
    calls: AtomicUsize,
    under_way: Arc<AtomicUsize>,
    most_under_way: AtomicUsize,
    can_probe: AtomicBool,
}

struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Fake {
    fn new(
        capacity: usize,
        script: impl Fn(&Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(Arc::new(Box::new(script))),
            scope: Mutex::new(Scope {
                name: "fake/production/topic".into(),
                generation: 1,
            }),
            capacity: watch::Sender::new(capacity),
            calls: AtomicUsize::new(0),
            under_way: Arc::new(AtomicUsize::new(0)),
            most_under_way: AtomicUsize::new(0),
            can_probe: AtomicBool::new(true),
        })
    }

    fn now_does(&self, script: impl Fn(&Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(Box::new(script));
    }

    fn reload(&self, scope: Scope) {
        *self.scope.lock().unwrap() = scope;
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl PushProvider for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn scope(&self, _: Platform) -> Option<Scope> {
        Some(self.scope.lock().unwrap().clone())
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.capacity.subscribe()
    }

    fn can_probe(&self, _: &Delivery) -> bool {
        self.can_probe.load(Ordering::SeqCst)
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'static, Outcome> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(under_way, Ordering::SeqCst);
        let ends = UnderWay(self.under_way.clone());
        let script = self.script.lock().unwrap().clone();
        let answer = script(&delivery);
        Box::pin(async move {
            let _ends = ends;
            answer.await
        })
    }
}

fn sends_after(delay: Duration) -> impl Fn(&Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + 'static {
    move |_| sleep(delay).map(|()| Outcome::Sent { message_id: None }).boxed()
}

fn fails(failure: Failure) -> impl Fn(&Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + 'static {
    move |_| std::future::ready(Outcome::Failed(failure.clone())).boxed()
}

fn black_hole(_: &Delivery) -> BoxFuture<'static, Outcome> {
    std::future::pending().boxed()
}

struct Bench {
    lane: Lane,
    fake: Arc<Fake>,
    clock: Arc<PausedClock>,
}

fn bench(fake: Arc<Fake>) -> Bench {
    let clock = PausedClock::start();
    let lane = Lane::new(
        fake.clone(),
        clock.clone(),
        Handle::current(),
        LaneConfig::default(),
    );
    Bench { lane, fake, clock }
}

impl Bench {
    fn job(&self, of: u64, token: u64) -> LaneJob {
        LaneJob {
            turn: TurnKey::Group(of),
            token: token_hash(token),
            delivery: Delivery {
                sender: TurnKey::Group(of),
                platform: Platform::Ios,
                environment: Environment::Production,
                token: TargetToken::Apple(Redacted::new("00")),
                payload: Redacted::new("payload"),
                priority: Priority::High,
                ttl_seconds: 60,
                collapse: None,
                message_id: Uuid::nil(),
                deadline: self.clock.now().mono + DEADLINE,
            },
        }
    }

    fn push(&self, of: u64, token: u64) -> tokio::task::JoinHandle<Verdict> {
        let (lane, job) = (self.lane.clone(), self.job(of, token));
        tokio::spawn(async move { lane.deliver(job).await })
    }

    /// Waits until every task waits for something: only then the paused clock moves.
    async fn settled(&self) {
        sleep(Duration::from_millis(1)).await;
    }
}

fn reason(verdict: &Verdict) -> Option<Reason> {
    match verdict {
        Verdict::Answer(answer) => answer.reason,
        Verdict::Unreachable { .. } | Verdict::Overloaded { .. } => None,
    }
}

fn is_sent(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Answer(answer) if answer.result == PushResult::Sent)
}

fn is_overloaded(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Overloaded { .. })
}
