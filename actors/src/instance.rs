//! One actor per instance: its limits, its suspension, its memory of dead tokens.
//!
//! Started and found by the [registry](crate::registry). The decisions are in `state.rs` and are pure; this file
//! is the shell that owns mailbox, timer and tasks:
//!
//! ```text
//! Ask -> admit -> [key: begin, recall task -> Recalled] -> decide -> lane task -> Settled -> settle -> reply
//! Refresh -> read the standing -> acknowledge         tick -> write use, clean, leave when idle         Close
//! ```
//!
//! Handlers do microseconds of work and never wait: what waits is a task of its own (`work.rs`), which neither a
//! caller that hangs up nor the actor's death stops. Until the standing has been read, pushes wait in a queue
//! that their slots bound. A store that cannot tell is asked again at each tick; meanwhile pushes go on under
//! the default limits.
//!
//! A panic here ends this actor alone: each actor is a task, and tokio catches a panic at the task's edge. The
//! registry notices and starts a successor.
//!
//! Idle stop: all limits are whole again after a minute of quiet, dead tokens are answered from memory for a minute,
//! idempotency is not kept here, and pressure keeps the actor alive while it counts. So nothing is gained by
//! letting an actor stop.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use actix::{
    Actor, ActorContext as _, AsyncContext as _, Context, Handler, Message, WrapFuture as _,
    fut::ActorFutureExt as _,
};
use metrics::counter;
use sovereign_relay_protocol::{id::InstanceId, platform::Environment, token::TargetToken};
use tokio::sync::oneshot;
use tracing::{error, warn};

pub(crate) mod budgets;
pub(crate) mod memory;
pub(crate) mod pressure;
pub(crate) mod state;
pub(crate) mod work;

use state::{Decision, InstanceState, Rules, SOON, Use};
use work::{Ask, Pending, Recalled, Settled};

use crate::{
    idempotency::{Begin, InFlight, OutcomeMemory},
    now::Now,
    ports::{Clock, Delivery, Entropy, InstanceStore, SharedLimits, Standing, StoreError, Suspension},
    push::{Answered, LaneJob, Push, Refusal, TurnKey},
    registry::{directory::Directory, door::Doors, slots::Slots, tracker::Tracker},
};

/// Longest a store call may take. A store that hangs must hold up neither pushes nor the relay's stop.
const STORE_PATIENCE: Duration = Duration::from_secs(2);

/// What every actor works with.
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
    /// Writes under way.
    pub(crate) writes: Tracker,
}

/// One instance's actor.
pub(crate) struct InstanceActor {
    instance: InstanceId,
    generation: u64,
    slots: Arc<Slots>,
    kit: Arc<Kit>,
    state: InstanceState,
    standing: StandingPhase,
    /// Number of the last read of the standing; the answers of earlier ones are void.
    reads: u64,
    refreshers: Vec<oneshot::Sender<()>>,
}

/// ```text
/// Unread (pushes wait) --read--> Known <--refresh, retry-- Unsure (the store could not tell)
///                      --failed--------------------------> Unsure
/// ```
enum StandingPhase {
    Unread { waiting: VecDeque<Pending> },
    Known,
    Unsure,
}

/// The operator changed the standing.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Refresh(pub(crate) oneshot::Sender<()>);

/// The registry closes; no push is under way. Acknowledged when the last write has begun.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Close(pub(crate) oneshot::Sender<()>);

/// The store could not be told of some use.
#[derive(Message)]
#[rtype(result = "()")]
struct NotWritten(Use);

impl InstanceActor {
    pub(crate) fn new(instance: InstanceId, generation: u64, slots: Arc<Slots>, kit: Arc<Kit>) -> Self {
        let state = InstanceState::new(instance, kit.rules.clone(), kit.clock.now());
        let standing = StandingPhase::Unread {
            waiting: VecDeque::new(),
        };
        Self {
            instance,
            generation,
            slots,
            kit,
            state,
            standing,
            reads: 0,
            refreshers: Vec::new(),
        }
    }

    fn ask(&mut self, mut pending: Pending, ctx: &mut Context<Self>) {
        pending.start();
        let admitted = self.state.admit(
            &pending.push.message,
            pending.slot.may_run(),
            self.kit.clock.now(),
        );
        if let Err(refusal) = admitted {
            return pending.finish(Err(refusal));
        }
        let Some(identity) = pending.push.idempotency else {
            return self.decide(pending, ctx);
        };
        match self.kit.in_flight.begin(identity) {
            Begin::First(claim) => {
                pending.claim = Some(claim);
                actix_rt::spawn(work::recall(
                    self.kit.clone(),
                    ctx.address(),
                    pending,
                    identity.key,
                ));
            }
            Begin::Wait(first) => pending.wait_for(first),
            Begin::Conflict => pending.finish(Err(Refusal::IdempotencyConflict)),
            Begin::Full => pending.finish(Err(Refusal::RateLimited { retry_after: SOON })),
        }
    }

    fn decide(&mut self, pending: Pending, ctx: &mut Context<Self>) {
        let push = pending.push.clone();
        let platform = push.message.platform;
        let environment = push.message.environment.unwrap_or(self.kit.default_environment);
        let door = self.kit.doors.of(platform, environment).clone();
        match self.state.decide(
            &push,
            door.serves(platform),
            &*self.kit.limits,
            self.kit.clock.now(),
        ) {
            Decision::Refuse(refusal) => pending.finish(Err(refusal)),
            Decision::Answer(answer) => pending.finish(Ok(work::fresh(answer))),
            Decision::Malformed => {
                let answer = door.malformed(platform, self.instance, push.token, pending.began);
                actix_rt::spawn(work::settle(self.kit.clone(), ctx.address(), pending, Ok(answer)));
            }
            Decision::Deliver { token, turn } => {
                let job = self.job(&push, environment, token, turn, pending.began);
                actix_rt::spawn(work::deliver(self.kit.clone(), ctx.address(), pending, door, job));
            }
        }
    }

    fn job(
        &self,
        push: &Push,
        environment: Environment,
        token: TargetToken,
        turn: TurnKey,
        began: Now,
    ) -> LaneJob {
        let message = &push.message;
        let mut random = [0; 16];
        self.kit.entropy.fill(&mut random);
        let delivery = Delivery {
            platform: message.platform,
            environment,
            token,
            payload: message.encrypted_payload.clone(),
            priority: message.priority,
            ttl_seconds: message.ttl_seconds,
            collapse: push.collapse.clone(),
            message_id: uuid::Builder::from_random_bytes(random).into_uuid(),
            deadline: began.mono.saturating_add(self.kit.push_deadline),
        };
        LaneJob {
            turn,
            instance: self.instance,
            token: push.token,
            delivery,
        }
    }

    fn read_standing(&mut self, ctx: &mut Context<Self>) {
        self.reads += 1;
        let number = self.reads;
        let read = patiently(self.kit.store.standing(self.instance));
        ctx.spawn(
            read.into_actor(self)
                .map(move |standing, actor, ctx| actor.on_standing(number, standing, ctx)),
        );
    }

    fn on_standing(
        &mut self,
        number: u64,
        standing: Result<Option<Standing>, StoreError>,
        ctx: &mut Context<Self>,
    ) {
        if number != self.reads {
            return;
        }
        let phase = match standing {
            Ok(standing) => {
                self.state.on_standing(standing);
                StandingPhase::Known
            }
            Err(error) => {
                warn!(instance = %self.instance, %error, "cannot read the instance's standing, going on without");
                StandingPhase::Unsure
            }
        };
        let before = std::mem::replace(&mut self.standing, phase);
        if let StandingPhase::Unread { waiting } = before {
            waiting.into_iter().for_each(|pending| self.ask(pending, ctx));
        }
        for refresher in self.refreshers.drain(..) {
            // Whoever asked and went away needs no answer.
            let _ = refresher.send(());
        }
    }

    fn on_tick(&mut self, ctx: &mut Context<Self>) {
        let now = self.kit.clock.now();
        self.state.clean(now);
        self.write_use(ctx);
        match self.standing {
            StandingPhase::Unsure => self.read_standing(ctx),
            StandingPhase::Known if self.is_idle(now) => self.leave(ctx),
            StandingPhase::Known | StandingPhase::Unread { .. } => {}
        }
    }

    fn is_idle(&self, now: Now) -> bool {
        self.slots.all_free() && self.refreshers.is_empty() && self.state.is_idle(self.kit.idle_after, now)
    }

    fn leave(&mut self, ctx: &mut Context<Self>) {
        self.kit.directory.leave(self.instance, self.generation);
        ctx.stop();
    }

    fn write_use(&mut self, ctx: &mut Context<Self>) {
        let Some(noted) = self.state.take_use() else {
            return;
        };
        let written = patiently(self.kit.store.note_use(self.instance, noted.sent, noted.at));
        let (actor, tracked, instance) = (ctx.address(), self.kit.writes.enter(), self.instance);
        actix_rt::spawn(async move {
            if let Err(error) = written.await {
                warn!(%instance, %error, "cannot write the instance's use");
                // A stopped actor's last use is lost: it is best effort.
                let _ = actor.try_send(NotWritten(noted));
            }
            drop(tracked);
        });
    }

    fn write_suspension(&self, suspension: Suspension) {
        counter!("relay_abuse_suspensions_total").increment(1);
        warn!(instance = %self.instance, reason = suspension.reason, "instance suspended");
        let written = patiently(self.kit.store.suspend(self.instance, suspension));
        let (tracked, instance) = (self.kit.writes.enter(), self.instance);
        actix_rt::spawn(async move {
            if let Err(error) = written.await {
                error!(%instance, %error, "cannot write the suspension, which holds until the relay restarts");
            }
            drop(tracked);
        });
    }
}

impl Actor for InstanceActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.read_standing(ctx);
        ctx.run_interval(self.kit.tick, Self::on_tick);
    }

    fn stopping(&mut self, ctx: &mut Context<Self>) -> actix::Running {
        self.write_use(ctx);
        actix::Running::Stop
    }
}

impl Handler<Ask> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Ask(pending): Ask, ctx: &mut Context<Self>) {
        match &mut self.standing {
            StandingPhase::Unread { waiting } => waiting.push_back(pending),
            StandingPhase::Known | StandingPhase::Unsure => self.ask(pending, ctx),
        }
    }
}

impl Handler<Recalled> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Recalled { pending, remembered }: Recalled, ctx: &mut Context<Self>) {
        let message = pending.push.idempotency.map(|identity| identity.message);
        match remembered {
            None => self.decide(pending, ctx),
            Some(remembered) if Some(remembered.message) == message => {
                pending.finish(Ok(Answered {
                    answer: remembered.answer,
                    replayed: true,
                }));
            }
            Some(_) => pending.finish(Err(Refusal::IdempotencyConflict)),
        }
    }
}

impl Handler<Settled> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Settled { pending, result }: Settled, _: &mut Context<Self>) {
        if let Ok(answer) = &result {
            let now = self.kit.clock.now();
            let suspension = self
                .state
                .settle(pending.push.token, answer.result, pending.began, now);
            if let Some(suspension) = suspension {
                self.write_suspension(suspension);
            }
        }
        pending.finish(result.map(work::fresh));
    }
}

impl Handler<Refresh> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Refresh(done): Refresh, ctx: &mut Context<Self>) {
        self.refreshers.push(done);
        self.read_standing(ctx);
    }
}

impl Handler<NotWritten> for InstanceActor {
    type Result = ();

    fn handle(&mut self, NotWritten(noted): NotWritten, _: &mut Context<Self>) {
        self.state.put_back_use(noted);
    }
}

impl Handler<Close> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Close(done): Close, ctx: &mut Context<Self>) {
        self.write_use(ctx);
        self.leave(ctx);
        // Nobody waits when closing itself was given up.
        let _ = done.send(());
    }
}

async fn patiently<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    match tokio::time::timeout(STORE_PATIENCE, call).await {
        Ok(result) => result,
        Err(_) => Err(StoreError("no answer in time".to_owned())),
    }
}
