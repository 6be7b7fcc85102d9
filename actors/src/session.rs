//! One actor per session that this replica holds connections of: it routes what one peer says to the other.
//!
//! Started and found by [`registry::Sessions`]. The decisions are pure: `record.rs` (what is kept, called by a store)
//! and `state.rs` (what this replica does with a frame). This file is the shell that owns mailbox and timers:
//!
//! ```text
//! Dial   -> store.bind -> link of the old connection closed 4409, the peer told
//! Submit -> judge -> store.append -> ack on the sender's link, mail on the receiver's -> its connection pulls
//! Depart -> store.unbind -> the peer told, now and when 2 s and 30 s are over
//! ```
//!
//! A handler does microseconds of work; what asks the store is a future of its own. A connection submits one frame at
//! a time and waits for its answer, so messages of one slot are appended in their order, and a slow store slows one
//! socket. What a client is told goes through its [`Link`], which is no queue.
//!
//! Everything that must last is in the store: an actor may stop, panic or run on another replica at any time. Its
//! connections are then closed 1011 and resume.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use actix::{
    Actor, ActorContext as _, AsyncContext as _, Context, Handler, Message, SpawnHandle, WrapFuture as _,
    fut::ActorFutureExt as _,
};
use metrics::counter;
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        close::CloseCode,
        frame::{Mood, Opaque},
        id::{SessionId, Slot},
    },
};
use tokio::sync::oneshot;

mod bucket;
pub mod link;
mod mailbox;
pub mod port;
pub mod record;
pub mod registry;
mod slot;
mod state;

#[cfg(test)]
mod tests;

use link::Link;
use port::{Appended, Bind, BindRefusal, Bound, Departure, Gone, Presence, Trimmed};
use registry::Kit;
use state::{Answer, SessionState, Verdict, after_trim};

/// An actor without connections stops after this. Its budgets are whole again sooner, so that nothing is gained by
/// coming back.
const IDLE: Duration = Duration::from_secs(5);

/// One session's actor.
pub(crate) struct SessionActor {
    id: SessionId,
    generation: u64,
    kit: Arc<Kit>,
    state: SessionState,
    a: Option<Local>,
    b: Option<Local>,
    idle: Option<SpawnHandle>,
    expiry: Option<SpawnHandle>,
    /// It panicked; its state means nothing any more.
    dead: bool,
}

/// A connection on this replica.
struct Local {
    epoch: u64,
    link: Arc<Link>,
    /// Looks again when the peer's presence changes by itself.
    look: Option<SpawnHandle>,
}

/// A connection wants a slot.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Dial {
    pub(crate) bind: Bind,
    pub(crate) link: Arc<Link>,
    pub(crate) reply: oneshot::Sender<Result<Bound, BindRefusal>>,
}

/// What a connection that has its slot says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Said {
    /// A message for the peer.
    Message {
        /// Its number.
        n: u64,
        /// Its content.
        content: Opaque,
    },
    /// Everything up to `seq` was processed.
    Ack {
        /// Cumulative.
        seq: u64,
    },
    /// It leaves.
    Bye {
        /// How it went.
        mood: Option<Mood>,
    },
}

/// A frame of a connection. The answer is only whether the connection goes on; the rest goes over its link.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Submit {
    pub(crate) slot: Slot,
    pub(crate) epoch: u64,
    pub(crate) said: Said,
    pub(crate) reply: Reply,
}

type Reply = oneshot::Sender<Result<(), CloseCode>>;

/// A connection's socket is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Depart {
    pub(crate) slot: Slot,
    pub(crate) epoch: u64,
}

/// Ends connections: of one instance, or all.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct End {
    pub(crate) code: CloseCode,
    pub(crate) only: Option<InstanceId>,
    /// The links that were closed, so that the caller can wait until they fell silent.
    pub(crate) done: oneshot::Sender<Vec<Arc<Link>>>,
}

/// Tells the connections that the relay goes away.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Leave {
    pub(crate) within: Duration,
}

impl SessionActor {
    pub(crate) fn new(id: SessionId, generation: u64, kit: Arc<Kit>) -> Self {
        Self {
            id,
            generation,
            kit,
            state: SessionState::new(),
            a: None,
            b: None,
            idle: None,
            expiry: None,
            dead: false,
        }
    }

    fn dial(&mut self, dial: Dial, ctx: &mut Context<Self>) {
        let Dial { bind, link, reply } = dial;
        let bound = self.kit.store.bind(self.id, bind);
        self.ask(ctx, bound, move |actor, ctx, outcome| {
            let outcome = outcome.and_then(|bound| actor.seat(bind.slot, link, bound, ctx));
            // A connection that went away meanwhile departs like any other.
            let lost = outcome.as_ref().ok().map(|bound| bound.epoch);
            if reply.send(outcome).is_err()
                && let Some(epoch) = lost
            {
                actor.depart(bind.slot, epoch, Departure::Lost, None, ctx);
            }
        });
    }

    fn seat(
        &mut self,
        slot: Slot,
        link: Arc<Link>,
        bound: Bound,
        ctx: &mut Context<Self>,
    ) -> Result<Bound, BindRefusal> {
        if !self.state.on_bound(slot, &bound) {
            return Err(BindRefusal::Gone(Gone::Fenced));
        }
        let local = Local {
            epoch: bound.epoch,
            link,
            look: None,
        };
        if let Some(old) = self.local_mut(slot).replace(local) {
            old.link.close(CloseCode::Replaced);
        }
        self.cancel_idle(ctx);
        self.expire_in(bound.expires_in, ctx);
        self.look_again(slot, bound.peer, ctx);
        self.mail(slot.other());
        self.look(slot.other(), ctx);
        Ok(bound)
    }

    fn submit(&mut self, submit: Submit, ctx: &mut Context<Self>) {
        let Submit {
            slot,
            epoch,
            said,
            reply,
        } = submit;
        match said {
            Said::Message { n, content } => self.message(slot, epoch, n, content, reply, ctx),
            Said::Ack { seq } => self.acknowledge(slot, epoch, seq, reply, ctx),
            Said::Bye { mood } => {
                counter!("relay_signal_goodbyes_total", "mood" => mood.map_or("none", Mood::as_str))
                    .increment(1);
                self.depart(slot, epoch, Departure::Bye, Some(reply), ctx);
            }
        }
    }

    fn message(
        &mut self,
        slot: Slot,
        epoch: u64,
        n: u64,
        content: Opaque,
        reply: Reply,
        ctx: &mut Context<Self>,
    ) {
        match self.state.judge(slot, epoch, n, &content, self.kit.clock.now()) {
            Verdict::Append => {
                let appended = self.kit.store.append(self.id, slot, epoch, n, content);
                self.ask(ctx, appended, move |actor, _, outcome: Result<Appended, Gone>| {
                    let answer = actor.state.on_appended(slot, epoch, n, &outcome);
                    // A connection that is gone hears nothing; it resumes and asks again.
                    let _ = reply.send(actor.answer(slot, answer));
                });
            }
            Verdict::Repeat(stored) => drop(reply.send(self.answer(slot, Answer::Ack(stored, false)))),
            Verdict::Skip => drop(reply.send(Ok(()))),
            Verdict::Refuse(refusal) => drop(reply.send(self.answer(slot, Answer::Refuse(refusal)))),
            Verdict::Close(code) => drop(reply.send(Err(code))),
        }
    }

    fn answer(&mut self, slot: Slot, answer: Answer) -> Result<(), CloseCode> {
        match answer {
            Answer::Ack(n, is_news) => {
                self.say(slot, |words| {
                    words.ack = Some(n);
                    words.refusal.take_if(|refusal| refusal.n <= n);
                });
                if is_news {
                    counter!("relay_signal_messages_total").increment(1);
                    self.mail(slot.other());
                }
                Ok(())
            }
            Answer::Refuse(refusal) => {
                counter!("relay_signal_refused_total", "code" => refusal.code.as_str()).increment(1);
                self.say(slot, |words| words.refusal = Some(refusal));
                Ok(())
            }
            Answer::Close(code) => Err(code),
        }
    }

    fn acknowledge(&mut self, slot: Slot, epoch: u64, seq: u64, reply: Reply, ctx: &mut Context<Self>) {
        let trimmed = self.kit.store.trim(self.id, slot, epoch, seq);
        self.ask(ctx, trimmed, move |_, _, outcome: Result<Trimmed, Gone>| {
            let _ = reply.send(after_trim(&outcome).map_or(Ok(()), Err));
        });
    }

    fn depart(
        &mut self,
        slot: Slot,
        epoch: u64,
        departure: Departure,
        reply: Option<Reply>,
        ctx: &mut Context<Self>,
    ) {
        self.state.on_departed(slot, epoch);
        if self.local(slot).is_some_and(|local| local.epoch == epoch) {
            let local = self.local_mut(slot).take();
            cancel(ctx, local.and_then(|local| local.look));
        }
        let unbound = self.kit.store.unbind(self.id, slot, epoch, departure);
        self.ask(
            ctx,
            unbound,
            move |actor, ctx, _: Result<Option<Duration>, Gone>| {
                // One that was replaced meanwhile changed nothing, and the peer sees the newer one.
                actor.look(slot.other(), ctx);
                if let Some(reply) = reply {
                    let _ = reply.send(Err(CloseCode::Normal));
                }
                actor.stop_when_idle(ctx);
            },
        );
    }

    /// Reads the presence of a connection's peer, if the connection is here.
    fn look(&mut self, slot: Slot, ctx: &mut Context<Self>) {
        let Some(epoch) = self.local(slot).map(|local| local.epoch) else {
            return;
        };
        let peer = self.kit.store.peer(self.id, slot);
        self.ask(ctx, peer, move |actor, ctx, outcome: Result<Presence, Gone>| {
            if let Ok(presence) = outcome
                && actor.state.is_live(slot, epoch)
            {
                actor.say(slot, |words| words.peer = Some(presence.told));
                actor.look_again(slot, presence, ctx);
            }
        });
    }

    fn look_again(&mut self, slot: Slot, presence: Presence, ctx: &mut Context<Self>) {
        let later = presence.changes_in.map(|changes_in| {
            ctx.run_later(changes_in, move |actor, ctx| {
                actor.guarded(ctx, |actor, ctx| actor.look(slot, ctx));
            })
        });
        if let Some(local) = self.local_mut(slot) {
            let earlier = std::mem::replace(&mut local.look, later);
            cancel(ctx, earlier);
        }
    }

    fn end(&mut self, end: End, ctx: &mut Context<Self>) {
        let mut closed = Vec::new();
        for slot in Slot::BOTH {
            let named = end.only.map(|instance| self.state.epoch_of(slot, instance));
            if named == Some(None) {
                continue;
            }
            let Some(local) = self.local(slot) else {
                continue;
            };
            local.link.close(end.code);
            closed.push(local.link.clone());
            let epoch = local.epoch;
            self.depart(slot, epoch, Departure::Bye, None, ctx);
        }
        // Nobody waits when closing itself was given up.
        let _ = end.done.send(closed);
        self.stop_when_idle(ctx);
    }

    fn mail(&mut self, slot: Slot) {
        self.say(slot, |words| words.mail = true);
    }

    fn say(&self, slot: Slot, change: impl FnOnce(&mut link::Words)) {
        if let Some(local) = self.local(slot) {
            local.link.say(change);
        }
    }

    fn local(&self, slot: Slot) -> Option<&Local> {
        match slot {
            Slot::A => self.a.as_ref(),
            Slot::B => self.b.as_ref(),
        }
    }

    fn local_mut(&mut self, slot: Slot) -> &mut Option<Local> {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }

    fn expire_in(&mut self, life: Duration, ctx: &mut Context<Self>) {
        let timer = ctx.run_later(life, |actor, ctx| {
            actor.guarded(ctx, |actor, ctx| {
                let (done, _) = oneshot::channel();
                actor.end(
                    End {
                        code: CloseCode::SessionOver,
                        only: None,
                        done,
                    },
                    ctx,
                );
            });
        });
        cancel(ctx, self.expiry.replace(timer));
    }

    fn stop_when_idle(&mut self, ctx: &mut Context<Self>) {
        if self.a.is_some() || self.b.is_some() {
            return;
        }
        let timer = ctx.run_later(IDLE, |actor, ctx| {
            actor.guarded(ctx, |actor, ctx| {
                if actor.a.is_none() && actor.b.is_none() {
                    actor.kit.directory.leave(actor.id, actor.generation);
                    ctx.stop();
                }
            });
        });
        cancel(ctx, self.idle.replace(timer));
    }

    fn cancel_idle(&mut self, ctx: &mut Context<Self>) {
        cancel(ctx, self.idle.take());
    }

    /// Awaits the store and goes on with its answer, between other messages.
    fn ask<T: 'static>(
        &self,
        ctx: &mut Context<Self>,
        question: impl Future<Output = T> + 'static,
        then: impl FnOnce(&mut Self, &mut Context<Self>, T) + 'static,
    ) {
        ctx.spawn(question.into_actor(self).map(move |outcome, actor, ctx| {
            actor.guarded(ctx, |actor, ctx| then(actor, ctx, outcome));
        }));
    }

    /// Runs a handler's body and catches its panic, as `instance.rs` says why. A dead actor does nothing more.
    fn guarded(&mut self, ctx: &mut Context<Self>, body: impl FnOnce(&mut Self, &mut Context<Self>)) {
        if self.dead {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| body(self, ctx))).is_err() {
            self.dead = true;
            self.kit.directory.bury(self.id, self.generation);
            ctx.terminate();
        }
    }
}

impl Drop for SessionActor {
    fn drop(&mut self) {
        // Whatever ended it: its connections find a successor when they come again.
        for local in self.a.iter().chain(&self.b) {
            local.link.close(CloseCode::InternalError);
        }
    }
}

fn cancel(ctx: &mut Context<SessionActor>, timer: Option<SpawnHandle>) {
    if let Some(timer) = timer {
        ctx.cancel_future(timer);
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.guarded(ctx, Self::stop_when_idle);
    }
}

impl Handler<Dial> for SessionActor {
    type Result = ();

    fn handle(&mut self, dial: Dial, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| actor.dial(dial, ctx));
    }
}

impl Handler<Submit> for SessionActor {
    type Result = ();

    fn handle(&mut self, submit: Submit, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| actor.submit(submit, ctx));
    }
}

impl Handler<Depart> for SessionActor {
    type Result = ();

    fn handle(&mut self, depart: Depart, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            actor.depart(depart.slot, depart.epoch, Departure::Lost, None, ctx);
        });
    }
}

impl Handler<End> for SessionActor {
    type Result = ();

    fn handle(&mut self, end: End, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| actor.end(end, ctx));
    }
}

impl Handler<Leave> for SessionActor {
    type Result = ();

    fn handle(&mut self, leave: Leave, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, _| {
            for slot in Slot::BOTH {
                actor.say(slot, |words| words.goaway = Some(leave.within));
            }
        });
    }
}
