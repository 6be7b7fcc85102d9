//! The lane's shell: one lock around the decisions, the waiting, and the provider's tasks.
//!
//! The lock is held for microseconds and never across an await; nothing of the provider's runs under it. What a
//! push has taken is a [`Place`], which gives it back when dropped.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use futures_util::FutureExt;
use sovereign_relay_protocol::{
    platform::Platform,
    push::{PushAnswer, Reason},
};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::{AbortHandle, JoinHandle},
    time::{MissedTickBehavior, interval, timeout},
};
use tracing::Instrument as _;

use super::{
    LaneConfig, LaneSnapshot, Verdict,
    breaker::Pass,
    judge::Case,
    place::{Place, Waited},
    series,
    state::State,
};
use crate::{
    now::Now,
    ports::{Certainty, Clock, Delivery, Failure, Health, Hold, Outcome, PushProvider, Scope, TokenHash},
    push::{LaneJob, TurnKey},
};

/// After a full queue or a turn that came too late: the queue is a matter of seconds.
pub(super) const QUEUE_RETRY: Duration = Duration::from_secs(1);
/// A call needs some time to be worth beginning: a tenth of the push's, at most this much. A turn that comes later
/// is refused, or a long queue would look like a provider that times out.
const LONGEST_RESERVE: Duration = Duration::from_millis(500);
/// A client learns of a deadline this much sooner, a tenth of the call at most, so that it is the client that ends a
/// call: it knows whether the push may have been accepted.
const HEAD_START: Duration = Duration::from_millis(50);
/// How often gauges are set and time passes for fuses and pace without pushes.
const TICK: Duration = Duration::from_secs(1);

/// What all clones of a lane and its tasks share.
pub(super) struct Core {
    provider: Arc<dyn PushProvider>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    state: Mutex<State>,
    pub(super) idle: Notify,
    /// The lane of the provider's other environment, where there is one.
    other: OnceLock<Weak<Self>>,
}

/// Aborts the task when dropped.
pub(super) struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts the lane and the task that follows the provider's capacity and the clock.
pub(super) fn start(
    provider: Arc<dyn PushProvider>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    config: LaneConfig,
) -> (Arc<Core>, AbortOnDrop) {
    let capacity = provider.capacity();
    let state = Mutex::new(State::new(config, *capacity.borrow()));
    let core = Arc::new(Core {
        provider,
        clock,
        runtime,
        state,
        idle: Notify::new(),
        other: OnceLock::new(),
    });
    let task = core.runtime.spawn(follow(Arc::downgrade(&core), capacity));
    (core, AbortOnDrop(task.abort_handle()))
}

async fn follow(core: Weak<Core>, mut capacity: watch::Receiver<usize>) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut provider_lives = true;
    loop {
        tokio::select! {
            changed = capacity.changed(), if provider_lives => provider_lives = changed.is_ok(),
            _ = tick.tick() => {}
        }
        let Some(core) = core.upgrade() else { return };
        let now_allowed = *capacity.borrow_and_update();
        core.refresh(now_allowed);
    }
}

impl Core {
    pub(super) fn pair(&self, other: &Arc<Self>) {
        // A second pairing would be a fault of the composition root; the first one stays.
        let _paired = self.other.set(Arc::downgrade(other));
    }

    pub(super) fn scope(&self, platform: Platform) -> Option<Scope> {
        self.provider.scope(platform)
    }

    pub(super) fn can_probe(&self, delivery: &Delivery) -> bool {
        self.provider.can_probe(delivery)
    }

    pub(super) async fn deliver(self: &Arc<Self>, job: LaneJob) -> Verdict {
        let call = match self.begin(job).await {
            Ok(call) => call,
            Err(refused) => {
                series::count_push(self.provider.name(), &refused);
                return refused;
            }
        };
        // The task catches the provider's panics itself; it only fails to join when its runtime stops.
        call.await.unwrap_or_else(|error| {
            tracing::error!(provider = self.provider.name(), %error, "call was lost");
            unknown_outcome()
        })
    }

    pub(super) fn malformed(
        &self,
        platform: Platform,
        key: TurnKey,
        token: TokenHash,
        began: Now,
    ) -> PushAnswer {
        let Some(scope) = self.scope(platform) else {
            return credentials_gone();
        };
        let case = Case {
            scope: Some(scope),
            key,
            token,
        };
        let now = self.now();
        let mut state = self.lock();
        let answer = state.judge.malformed(&case, platform, began.unix, now);
        let changes = state.judge.take_changes();
        drop(state);
        series::tell_fuses(&changes);
        series::count_answer(self.provider.name(), &answer);
        answer
    }

    pub(super) fn snapshot(&self) -> LaneSnapshot {
        let state = self.lock();
        LaneSnapshot {
            provider: self.provider.name(),
            breaker: state.breaker.state(),
            waiting: state.turns.waiting(),
            in_flight: state.turns.taken(),
            fuses: state.judge.fuses(),
        }
    }

    pub(super) async fn close(&self) {
        self.lock().closing = true;
        loop {
            let mut idle = std::pin::pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// Waits for a turn and starts the call.
    async fn begin(self: &Arc<Self>, job: LaneJob) -> Result<JoinHandle<Verdict>, Verdict> {
        let since = self.now();
        let gives_up = since.saturating_add(patience(job.delivery.deadline, since));
        loop {
            let mut place = Place::take(self, &job)?;
            match place.turn(gives_up.saturating_sub(self.now())).await {
                Waited::Turn => {
                    let scope = place.look_again(&job)?;
                    return Ok(self.runtime.spawn(call(place, scope, job).in_current_span()));
                }
                Waited::LookAgain => {}
                Waited::TooLate => {
                    self.starved(place.pass.take(), since);
                    return Err(Verdict::Overloaded {
                        retry_after: QUEUE_RETRY,
                    });
                }
            }
        }
    }

    /// The scope of a call that began under `scope` and has ended. A provider uses its current credentials at each
    /// try, and its generations only grow: the same scope before and after was the scope of all tries between.
    fn unchanged(&self, scope: Scope, platform: Platform) -> Option<Scope> {
        self.scope(platform).filter(|current| *current == scope)
    }

    /// A token that its provider takes in its other environment is alive, whatever is said of it here: then it is the
    /// push that names the wrong one, which says nothing of anybody's credentials either. The two locks are never
    /// held together.
    fn doubt(&self, outcome: Outcome, token: TokenHash) -> Outcome {
        let conditional = matches!(
            outcome,
            Outcome::Gone {
                certainty: Certainty::Conditional,
                ..
            }
        );
        if !conditional || !self.other_knows(token) {
            return outcome;
        }
        Outcome::Failed(Failure {
            reason: Reason::UnconfirmedToken,
            retryable: true,
            retry_after: None,
            hold: Hold::Nothing,
            health: Health::Answered,
        })
    }

    fn other_knows(&self, token: TokenHash) -> bool {
        let other = self.other.get().and_then(Weak::upgrade);
        other.is_some_and(|other| other.lock().judge.was_sent(token, other.now()))
    }

    fn settle(&self, pass: Option<Pass>, case: &Case, outcome: Outcome, began: Duration) -> Verdict {
        let now = self.now();
        let (verdict, changes) = self.learn(|state| state.settle(pass, case, outcome, began, now));
        series::tell_fuses(&changes);
        verdict
    }

    fn starved(&self, pass: Option<Pass>, since: Duration) {
        let now = self.now();
        if let Some(pass) = pass {
            self.learn(|state| state.starved(pass, since, now));
        }
    }

    /// Something that may change the breaker, and tells so.
    fn learn<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let before = state.breaker.state();
        let learned = change(&mut state);
        let after = state.breaker.state();
        drop(state);
        if before != after {
            series::tell_breaker(self.provider.name(), before, after);
        }
        learned
    }

    fn refresh(&self, capacity: usize) {
        let now = self.now();
        let mut state = self.lock();
        let changes = state.refresh(capacity, now);
        let (waiting, in_flight) = (state.turns.waiting(), state.turns.taken());
        let breaker = state.breaker.state();
        drop(state);
        series::show_queue(self.provider.name(), waiting, in_flight);
        series::show_breaker(self.provider.name(), breaker);
        series::tell_fuses(&changes);
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.now().mono
    }

    /// A panic under the lock would be a bug of the decisions; their sums may be off then, but the relay goes on.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call, from its turn to its verdict. Runs to its end whoever still waits for it; the place goes with it.
async fn call(mut place: Place, scope: Scope, job: LaneJob) -> Verdict {
    let core = place.core.clone();
    let provider = core.provider.name();
    let platform = job.delivery.platform;
    let began = core.now();
    let ended = called(&core.provider, job.delivery, began).await;
    series::measure_call(provider, core.now().saturating_sub(began));
    let case = Case {
        scope: core.unchanged(scope, platform),
        key: job.turn,
        token: job.token,
    };
    let verdict = match ended {
        Some(outcome) => {
            let outcome = core.doubt(outcome, job.token);
            core.settle(place.pass.take(), &case, outcome, began)
        }
        None => unknown_outcome(),
    };
    series::count_push(provider, &verdict);
    verdict
}

/// `None`: the provider client panicked, which is a bug and says nothing about the provider.
///
/// A client ends its calls by the deadline itself, knowing whether the push may have been accepted. One that does
/// not is cut here: its callers are waiting, and others for the turn.
async fn called(provider: &Arc<dyn PushProvider>, mut delivery: Delivery, now: Duration) -> Option<Outcome> {
    let left = delivery.deadline.saturating_sub(now);
    delivery.deadline = delivery.deadline.saturating_sub(HEAD_START.min(left / 10));
    let call = AssertUnwindSafe(async { provider.deliver(delivery).await }).catch_unwind();
    match timeout(left, call).await {
        Ok(Ok(outcome)) => Some(outcome),
        Ok(Err(_panic)) => {
            tracing::error!(provider = provider.name(), "provider client panicked");
            None
        }
        Err(_) => Some(Outcome::Failed(Failure {
            reason: Reason::UnknownOutcome,
            retryable: true,
            retry_after: None,
            hold: Hold::Nothing,
            health: Health::Faulty,
        })),
    }
}

fn patience(deadline: Duration, now: Duration) -> Duration {
    let left = deadline.saturating_sub(now);
    left.saturating_sub((left / 10).min(LONGEST_RESERVE))
}

fn unknown_outcome() -> Verdict {
    Verdict::Answer(PushAnswer::failed(Reason::UnknownOutcome, true, None))
}

/// The credentials were taken away after the push was let in.
pub(super) fn credentials_gone() -> PushAnswer {
    PushAnswer::failed(Reason::RelayMisconfigured, true, None)
}
