//! The shell with a provider that does as it is told, on a paused clock.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
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
    capacity: watch::Sender<usize>,
    calls: AtomicUsize,
    under_way: Arc<AtomicUsize>,
    most_under_way: AtomicUsize,
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
            capacity: watch::Sender::new(capacity),
            calls: AtomicUsize::new(0),
            under_way: Arc::new(AtomicUsize::new(0)),
            most_under_way: AtomicUsize::new(0),
        })
    }

    fn now_does(&self, script: impl Fn(&Delivery) -> BoxFuture<'static, Outcome> + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Arc::new(Box::new(script));
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
        Some(Scope {
            name: "fake/production/topic".into(),
            generation: 1,
        })
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.capacity.subscribe()
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
        let mut id = [0; 16];
        id[..8].copy_from_slice(&of.to_be_bytes());
        LaneJob {
            turn: TurnKey::Group(of),
            instance: InstanceId::from_bytes(id),
            token: token_hash(token),
            delivery: Delivery {
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

#[tokio::test(start_paused = true)]
async fn callers_of_a_black_holed_provider_are_answered_by_the_deadline() {
    let bench = bench(Fake::new(10, black_hole));
    let began = bench.clock.now().mono;
    let pushes: Vec<_> = (0..100).map(|number| bench.push(number % 7, number)).collect();
    let mut unknown = 0;
    for push in pushes {
        let verdict = push.await.unwrap();
        unknown += usize::from(reason(&verdict) == Some(Reason::UnknownOutcome));
        assert!(is_overloaded(&verdict) || reason(&verdict) == Some(Reason::UnknownOutcome));
    }
    assert_eq!(
        unknown, 10,
        "those that were under way may have been accepted, the others were not"
    );
    assert!(bench.clock.now().mono - began <= DEADLINE + Duration::from_millis(5));
    bench.lane.close().await;
    assert_eq!(bench.fake.under_way.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lane_next_to_a_black_holed_one_is_as_fast_as_ever() {
    let dead = bench(Fake::new(10, black_hole));
    let well = bench(Fake::new(10, sends_after(Duration::from_millis(5))));
    let waiting: Vec<_> = (0..500).map(|number| dead.push(1 + number % 7, number)).collect();
    let began = well.clock.now().mono;
    for number in 0..50 {
        assert!(is_sent(&well.push(1, number).await.unwrap()));
    }
    assert!(well.clock.now().mono - began <= Duration::from_millis(50 * 7));
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_answers_overloaded_at_once() {
    let bench = bench(Fake::new(1, black_hole));
    let config = LaneConfig::default();
    let waiting: Vec<_> = (0..=config.queue as u64)
        .map(|number| bench.push(number / 500, number))
        .collect();
    bench.settled().await;
    assert_eq!(bench.lane.snapshot().waiting, config.queue);
    let before = bench.clock.now().mono;
    assert!(is_overloaded(&bench.lane.deliver(bench.job(999, 0)).await));
    assert_eq!(bench.clock.now().mono, before);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    for push in waiting {
        assert!(push.await.unwrap_err().is_cancelled());
    }
    assert_eq!(
        bench.lane.snapshot().waiting,
        0,
        "whoever hangs up leaves the line"
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_loses_neither_the_turn_nor_the_outcome() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_secs(1))));
    let (first, second) = (bench.push(1, 1), bench.push(1, 2));
    bench.settled().await;
    first.abort();
    assert!(is_sent(&second.await.unwrap()), "the turn went on");
    assert_eq!(bench.fake.calls(), 2);
    // The outcome of the first was judged: with a `sent` a conditional verdict is believed.
    let gone = |_: &Delivery| {
        let since = UnixMillis(1);
        std::future::ready(Outcome::Gone {
            certainty: Certainty::Conditional,
            reason: Reason::BadToken,
            since,
        })
        .boxed()
    };
    bench.fake.now_does(sends_after(Duration::from_secs(1)));
    let push = bench.push(1, 3);
    bench.settled().await;
    push.abort();
    sleep(Duration::from_secs(2)).await;
    bench.fake.now_does(gone);
    assert_eq!(reason(&bench.push(1, 4).await.unwrap()), Some(Reason::BadToken));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_hangs_up_just_when_its_turn_comes_passes_it_on() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_millis(10))));
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    bench.fake.now_does(move |_| {
        let gate = held.clone();
        Box::pin(async move {
            gate.acquire().await.unwrap().forget();
            Outcome::Sent { message_id: None }
        })
    });
    let first = bench.push(1, 1);
    bench.settled().await;
    let mut second = Box::pin(bench.lane.deliver(bench.job(1, 2)));
    assert!(second.as_mut().now_or_never().is_none());
    let third = bench.push(1, 3);
    bench.settled().await;
    gate.add_permits(2);
    assert!(is_sent(&first.await.unwrap()));
    bench.settled().await;
    assert_eq!(
        bench.lane.snapshot().in_flight,
        1,
        "granted to the second, which has not looked yet"
    );
    drop(second);
    assert!(is_sent(&third.await.unwrap()));
    assert_eq!((bench.fake.calls(), bench.lane.snapshot().in_flight), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn capacity_from_one_to_a_thousand_drains_the_queue_and_is_never_exceeded() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_millis(100))));
    let pushes: Vec<_> = (0..2_000_u64)
        .map(|number| bench.push(number % 20, number))
        .collect();
    sleep(Duration::from_millis(950)).await;
    assert_eq!(bench.fake.most_under_way.load(Ordering::SeqCst), 1);
    bench.fake.capacity.send_replace(10);
    sleep(Duration::from_millis(950)).await;
    assert_eq!(bench.fake.most_under_way.load(Ordering::SeqCst), 10);
    bench.fake.capacity.send_replace(1_000);
    for push in pushes {
        assert!(is_sent(&push.await.unwrap()));
    }
    assert!(bench.fake.most_under_way.load(Ordering::SeqCst) <= 1_000);
    assert_eq!(bench.fake.calls(), 2_000);
    assert!(bench.clock.now().mono < Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_costs_its_own_push_only() {
    let bench = bench(Fake::new(1, |delivery: &Delivery| {
        assert!(delivery.ttl_seconds != 13, "a bug");
        sends_after(Duration::from_millis(1))(delivery)
    }));
    for number in 0..50 {
        let mut job = bench.job(1, number);
        job.delivery.ttl_seconds = 13;
        let verdict = bench.lane.deliver(job).await;
        assert_eq!(
            verdict,
            Verdict::Answer(PushAnswer::failed(Reason::UnknownOutcome, true, None))
        );
    }
    assert!(is_sent(&bench.push(1, 99).await.unwrap()));
    assert_eq!(bench.lane.snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_burst_behind_a_project_wide_429_costs_one_call_and_shares_what_is_left_afterwards() {
    let bench = bench(Fake::new(1, |_: &Delivery| {
        let failure = Failure {
            reason: Reason::ProviderThrottled,
            retryable: true,
            retry_after: Some(Duration::from_secs(37)),
            hold: Hold::Provider,
            health: Health::Answered,
        };
        sleep(Duration::from_millis(50))
            .map(|()| Outcome::Failed(failure))
            .boxed()
    }));
    let pushes: Vec<_> = (0..300_u64)
        .map(|number| bench.push(number % 5, number))
        .collect();
    for push in pushes {
        let verdict = push.await.unwrap();
        let expected = PushAnswer::failed(Reason::ProviderThrottled, true, Some(37));
        assert_eq!(verdict, Verdict::Answer(expected));
    }
    assert_eq!(bench.fake.calls(), 1);
    sleep(Duration::from_secs(30)).await;
    let again = bench.push(1, 1).await.unwrap();
    assert_eq!(
        again,
        Verdict::Answer(PushAnswer::failed(Reason::ProviderThrottled, true, Some(7)))
    );
    sleep(Duration::from_secs(7)).await;
    let order = Arc::new(Mutex::new(VecDeque::new()));
    let noted = order.clone();
    bench.fake.now_does(move |delivery| {
        noted.lock().unwrap().push_back(delivery.ttl_seconds);
        sends_after(Duration::from_millis(50))(delivery)
    });
    let shared: FuturesUnordered<_> = (0..60_u32)
        .map(|number| {
            let of = if number < 50 { 1 } else { number };
            let mut job = bench.job(of.into(), number.into());
            job.delivery.ttl_seconds = of;
            let lane = bench.lane.clone();
            async move { lane.deliver(job).await }
        })
        .collect();
    assert!(shared.all(|verdict| std::future::ready(is_sent(&verdict))).await);
    let first: Vec<_> = order.lock().unwrap().iter().take(12).copied().collect();
    assert_eq!(
        first,
        [1, 1, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59],
        "each has a turn, the flood waits"
    );
}

#[tokio::test(start_paused = true)]
async fn a_throttled_device_costs_no_call_and_the_others_go_on() {
    let throttled = Failure {
        reason: Reason::DeviceThrottled,
        retryable: true,
        retry_after: Some(Duration::from_secs(20)),
        hold: Hold::Token,
        health: Health::Answered,
    };
    let bench = bench(Fake::new(4, fails(throttled)));
    bench.push(1, 1).await.unwrap();
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    for _ in 0..20 {
        assert_eq!(
            reason(&bench.push(1, 1).await.unwrap()),
            Some(Reason::DeviceThrottled)
        );
    }
    assert!(is_sent(&bench.push(1, 2).await.unwrap()));
    assert_eq!(bench.fake.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn unreachable_for_twenty_seconds_then_back_pushes_are_sent_within_one_step_without_a_restart() {
    let bench = bench(Fake::new(100, |_: &Delivery| {
        std::future::ready(Outcome::Unreachable).boxed()
    }));
    for number in 0..20 {
        assert!(matches!(
            bench.push(1, number).await.unwrap(),
            Verdict::Unreachable { .. }
        ));
    }
    assert_eq!(bench.lane.snapshot().breaker, BreakerState::Open);
    let refused = bench.push(1, 1).await.unwrap();
    assert_eq!(
        refused,
        Verdict::Overloaded {
            retry_after: Duration::from_secs(1)
        }
    );
    while bench.clock.now().mono < Duration::from_secs(20) {
        sleep(Duration::from_millis(100)).await;
        bench.push(1, 1).await.unwrap();
    }
    assert!(
        bench.fake.calls() <= 25,
        "20 to open it and a probe at 1, 3, 7 and 15 s"
    );
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    while !is_sent(&bench.push(1, 1).await.unwrap()) {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(bench.clock.now().mono <= Duration::from_secs(31));
    assert_eq!(bench.lane.snapshot().breaker, BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_breaker_that_opens_answers_those_who_wait_at_once() {
    let bench = bench(Fake::new(20, |_: &Delivery| {
        sleep(Duration::from_secs(2))
            .map(|()| Outcome::Unreachable)
            .boxed()
    }));
    let pushes: Vec<_> = (0..200).map(|number| bench.push(number, number)).collect();
    for push in pushes {
        push.await.unwrap();
    }
    assert!(bench.clock.now().mono < Duration::from_millis(2_100));
    assert_eq!(bench.fake.calls(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_probe_whose_caller_hangs_up_in_the_line_is_taken_by_the_next() {
    let bench = bench(Fake::new(21, |_: &Delivery| {
        std::future::ready(Outcome::Unreachable).boxed()
    }));
    bench.fake.now_does(black_hole);
    let stuck: Vec<_> = (0..20).map(|number| bench.push(1, number)).collect();
    bench.settled().await;
    bench
        .fake
        .now_does(|_| std::future::ready(Outcome::Unreachable).boxed());
    for number in 0..20 {
        bench.push(2, number).await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    bench.fake.capacity.send_replace(1);
    bench.settled().await;
    let mut probe = Box::pin(bench.lane.deliver(bench.job(3, 1)));
    assert!(probe.as_mut().now_or_never().is_none());
    assert!(is_overloaded(&bench.push(3, 2).await.unwrap()));
    drop(probe);
    bench.fake.capacity.send_replace(100);
    bench.settled().await;
    bench.fake.now_does(sends_after(Duration::from_millis(1)));
    assert!(is_sent(&bench.push(3, 3).await.unwrap()));
    stuck.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn closing_refuses_new_pushes_and_waits_for_those_it_has() {
    let bench = bench(Fake::new(1, sends_after(Duration::from_millis(100))));
    let pushes: Vec<_> = (0..5).map(|number| bench.push(1, number)).collect();
    bench.settled().await;
    let closing = tokio::spawn({
        let lane = bench.lane.clone();
        async move { lane.close().await }
    });
    bench.settled().await;
    assert!(is_overloaded(&bench.push(1, 9).await.unwrap()));
    assert!(!closing.is_finished());
    closing.await.unwrap();
    assert_eq!(bench.lane.snapshot().in_flight, 0);
    for push in pushes {
        assert!(is_sent(&push.await.unwrap()));
    }
    bench.lane.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_pushes_some_hung_up_leave_nothing_behind() {
    let bench = bench(Fake::new(50, |delivery: &Delivery| {
        sends_after(Duration::from_millis(u64::from(delivery.ttl_seconds)))(delivery)
    }));
    for round in 0..200_u64 {
        let pushes: Vec<_> = (0..500_u64)
            .map(|number| bench.push(number % 40, (round * 500 + number).into()))
            .collect();
        bench.settled().await;
        pushes.iter().step_by(7).for_each(tokio::task::JoinHandle::abort);
        for push in pushes {
            assert!(
                push.await
                    .map_or_else(|error| error.is_cancelled(), |verdict| is_sent(&verdict))
            );
        }
    }
    sleep(Duration::from_secs(400)).await;
    let snapshot = bench.lane.snapshot();
    assert_eq!(
        (
            snapshot.in_flight,
            snapshot.waiting,
            bench.fake.under_way.load(Ordering::SeqCst)
        ),
        (0, 0, 0)
    );
    let state = bench.lane.core.lock();
    assert_eq!((state.judge.tokens(), state.holds.tokens()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lane_ends_its_task() {
    let bench = bench(Fake::new(1, sends_after(Duration::ZERO)));
    bench.settled().await;
    let alive = Handle::current().metrics().num_alive_tasks();
    drop(bench.lane);
    sleep(Duration::from_millis(1)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), alive - 1);
}
