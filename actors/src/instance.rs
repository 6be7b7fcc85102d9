//! One actor per instance: its limits, its suspension, its memory of dead tokens.
//!
//! Started and found by the [registry](crate::registry). The decisions are in `state.rs` and are pure; this file
//! is the shell that owns mailbox, timer and tasks:
//!
//! ```text
//! Ask -> admit -> [key: begin, recall task -> Recalled] -> [bill, pay task -> Funded] -> decide
//!     -> lane task -> Settled -> settle -> reply
//! Consult -> the state answers (signaling)
//! Refresh -> read the standing -> acknowledge         tick -> write use, clean, leave when idle         Close
//! ```
//!
//! Handlers do microseconds of work and never wait: what waits is a task of its own (`work.rs`, `records.rs`), which
//! neither a caller that hangs up nor the actor's death stops. Until the standing has been read, pushes wait in a queue
//! that their slots bound. A store that cannot tell is asked again at each tick; meanwhile pushes go on under
//! the default limits.
//!
//! A panic ends this actor alone, and its arbiter goes on. It is caught at each handler and not left to tokio: actix
//! polls a context once more while it is dropped, which in the middle of unwinding would run `stopping` on the
//! broken state, and a second panic there aborts the process. A dead actor lets its messages fall: an `Ask` goes to
//! the successor, a `Settled` answers its caller by itself.
//!
//! Idle stop: all limits are whole again after a minute of quiet, dead tokens are answered from memory for a minute,
//! idempotency is not kept here, and pressure keeps the actor alive while it counts. So nothing is gained by
//! letting an actor stop.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, Message, Running};
use sovereign_relay_protocol::{id::InstanceId, platform::Environment, token::TargetToken};
use tokio::sync::oneshot;
use tracing::Instrument as _;

pub(crate) mod budgets;
pub(crate) mod kit;
pub(crate) mod memory;
pub(crate) mod pressure;
pub(crate) mod records;
pub mod signal;
pub(crate) mod state;
pub(crate) mod work;

use kit::Kit;
use state::{Decision, InstanceState};
use work::{Ask, Funded, Outcome, Pending, Recalled, Settled};

use crate::{
    idempotency::{Begin, names::Recall},
    now::Now,
    ports::{Delivery, Paid, Payment},
    push::{Answered, LaneJob, Push, Refusal, TurnKey},
    registry::slots::Slots,
};

/// Questions that wait for the standing to be read, which takes milliseconds: more than a minute's budget of them.
const QUESTIONS: usize = 256;

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
    /// The store is being told of a suspension.
    is_telling: bool,
    /// It panicked; its state means nothing any more.
    dead: bool,
}

/// ```text
/// Unread (pushes and questions wait) --read--> Known <--refresh, retry-- Unsure (the store could not tell)
///                      --failed--------------------------> Unsure
/// ```
enum StandingPhase {
    Unread {
        waiting: VecDeque<Pending>,
        questions: Vec<Question>,
    },
    Known,
    Unsure,
}

/// A question that the state answers at once. One that is dropped, its asker asks again.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Consult(pub(crate) Question);

/// See [`Consult`].
pub(crate) type Question = Box<dyn FnOnce(&mut InstanceState, Now) + Send>;

/// The registry closes; no push is under way. Acknowledged when the last write has begun.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Close(pub(crate) oneshot::Sender<()>);

impl InstanceActor {
    pub(crate) fn new(instance: InstanceId, generation: u64, slots: Arc<Slots>, kit: Arc<Kit>) -> Self {
        let state = InstanceState::new(instance, kit.rules.clone(), kit.clock.now());
        let standing = StandingPhase::Unread {
            waiting: VecDeque::new(),
            questions: Vec::new(),
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
            is_telling: false,
            dead: false,
        }
    }

    fn ask(&mut self, mut pending: Pending, ctx: &mut Context<Self>) {
        let _entered = pending.span.clone().entered();
        pending.start();
        let admitted = self.state.admit(
            &pending.push.message,
            pending.slot.may_run(),
            self.kit.clock.now(),
        );
        if let Err(refusal) = admitted {
            return pending.finish(Err(refusal));
        }
        let Some(identity) = pending.push.idempotency.clone() else {
            return self.pay(pending, ctx);
        };
        match self.kit.in_flight.begin(&identity) {
            Begin::First(claim) => {
                pending.claim = Some(claim);
                let (kit, actor) = (self.kit.clone(), ctx.address());
                spawn(pending, |pending| work::recall(kit, actor, pending, identity));
            }
            Begin::Wait(first) => pending.wait_for(first),
            Begin::Conflict => pending.finish(Err(Refusal::IdempotencyConflict)),
        }
    }

    fn on_recalled(&mut self, pending: Pending, recall: Recall, ctx: &mut Context<Self>) {
        let _entered = pending.span.clone().entered();
        match recall {
            Recall::First => self.pay(pending, ctx),
            Recall::Replay(answer) => pending.finish(Ok(Answered {
                answer,
                replayed: true,
            })),
            Recall::Conflict => pending.finish(Err(Refusal::IdempotencyConflict)),
        }
    }

    fn pay(&mut self, pending: Pending, ctx: &mut Context<Self>) {
        let now = self.kit.clock.now();
        let bill = self.state.bill(&pending.push, now);
        match self.kit.limits.pay(bill, now) {
            Payment::Alone => self.decide(pending, None, ctx),
            Payment::Now(paid) => self.decide(pending, Some(paid), ctx),
            Payment::Soon(paid) => spawn(pending, |pending| work::pay(ctx.address(), pending, paid)),
        }
    }

    fn decide(&mut self, pending: Pending, paid: Option<Paid>, ctx: &mut Context<Self>) {
        let _entered = pending.span.clone().entered();
        let push = pending.push.clone();
        let platform = push.message.platform;
        let environment = push.message.environment.unwrap_or(self.kit.default_environment);
        let door = self.kit.doors.of(platform, environment).clone();
        match self.state.decide(
            &push,
            paid,
            door.serves(platform),
            &*self.kit.limits,
            self.kit.clock.now(),
        ) {
            Decision::Refuse(refusal) => self.conclude(pending, Err(refusal)),
            Decision::Answer(answer) => self.conclude(pending, Ok(work::fresh(answer))),
            Decision::Malformed { turn } => {
                let answer = door.malformed(platform, turn, push.token, pending.began);
                let (kit, actor) = (self.kit.clone(), ctx.address());
                spawn(pending, |pending| work::settle(kit, actor, pending, Ok(answer)));
            }
            Decision::Deliver { token, turn } => {
                let job = self.job(&push, environment, token, turn, pending.began);
                let (kit, actor) = (self.kit.clone(), ctx.address());
                spawn(pending, |pending| work::deliver(kit, actor, pending, door, job));
            }
        }
    }

    fn conclude(&self, pending: Pending, outcome: Outcome) {
        if pending.claim.is_none() {
            return pending.finish(outcome);
        }
        let kit = self.kit.clone();
        spawn(pending, |pending| work::conclude(kit, pending, outcome));
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
            sender: turn,
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
            token: push.token,
            delivery,
        }
    }

    fn on_tick(&mut self, ctx: &mut Context<Self>) {
        let now = self.kit.clock.now();
        self.state.clean(now);
        self.write_use(ctx);
        if let Some(untold) = self.state.untold_suspension(now).cloned() {
            self.write_suspension(untold, ctx);
        }
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

    /// Runs a handler's body and catches its panic. A dead actor does nothing more.
    fn guarded(&mut self, ctx: &mut Context<Self>, body: impl FnOnce(&mut Self, &mut Context<Self>)) {
        if self.dead {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| body(self, ctx))).is_err() {
            self.dead = true;
            self.kit.directory.bury(self.instance, self.generation);
            ctx.terminate();
        }
    }
}

/// What waits for a push runs in the span of its request, so that its lines carry the request's id.
fn spawn<F>(pending: Pending, task: impl FnOnce(Pending) -> F)
where
    F: Future<Output = ()> + 'static,
{
    let span = pending.span.clone();
    actix_rt::spawn(task(pending).instrument(span));
}

impl Actor for InstanceActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.guarded(ctx, Self::read_standing);
        ctx.run_interval(self.kit.tick, |actor, ctx| actor.guarded(ctx, Self::on_tick));
    }

    fn stopping(&mut self, ctx: &mut Context<Self>) -> Running {
        self.guarded(ctx, Self::write_use);
        Running::Stop
    }
}

impl Handler<Ask> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Ask(pending): Ask, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| match &mut actor.standing {
            StandingPhase::Unread { waiting, .. } => waiting.push_back(pending),
            StandingPhase::Known | StandingPhase::Unsure => actor.ask(pending, ctx),
        });
    }
}

impl Handler<Recalled> for InstanceActor {
    type Result = ();

    fn handle(&mut self, recalled: Recalled, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            if let Some((pending, recall)) = recalled.open() {
                actor.on_recalled(pending, recall, ctx);
            }
        });
    }
}

impl Handler<Funded> for InstanceActor {
    type Result = ();

    fn handle(&mut self, funded: Funded, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            if let Some((pending, paid)) = funded.open() {
                actor.decide(pending, Some(paid), ctx);
            }
        });
    }
}

impl Handler<Settled> for InstanceActor {
    type Result = ();

    fn handle(&mut self, settled: Settled, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            if let Some(suspension) = settled.answer().and_then(|(push, began, result)| {
                actor
                    .state
                    .settle(push.token, result, began, actor.kit.clock.now())
            }) {
                actor.on_suspended(suspension, ctx);
            }
            // Dropping it answers the caller.
        });
    }
}

impl Handler<Consult> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Consult(question): Consult, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, _| match &mut actor.standing {
            StandingPhase::Unread { questions, .. } => {
                if questions.len() < QUESTIONS {
                    questions.push(question);
                }
            }
            StandingPhase::Known | StandingPhase::Unsure => question(&mut actor.state, actor.kit.clock.now()),
        });
    }
}

impl Handler<Close> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Close(done): Close, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            actor.write_use(ctx);
            actor.leave(ctx);
            // Nobody waits when closing itself was given up.
            let _ = done.send(());
        });
    }
}
