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
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use actix::{
    Actor, ActorContext as _, AsyncContext as _, Context, SpawnHandle, WrapFuture as _,
    fut::ActorFutureExt as _,
};
use futures_util::FutureExt as _;
use metrics::counter;
use sovereign_relay_protocol::{
    limits::SESSION_SECONDS_MAX,
    signal::{
        close::CloseCode,
        frame::{Mood, Opaque},
        id::{SessionId, Slot},
    },
};

mod bucket;
mod directory;
mod ending;
pub mod link;
mod mailbox;
mod messages;
pub mod port;
pub mod record;
pub mod registry;
pub mod rules;
mod slot;
mod state;
mod timers;

#[cfg(test)]
mod tests;

use crate::ports::StoreError;
use link::Link;
pub use messages::Said;
use messages::{Dial, Reply, Submit};
use port::{Appended, BindRefusal, Bound, Departure, Gone, News, Trimmed};
use registry::Kit;
use state::{Answer, STORE_RETRY, SessionState, Verdict, after_trim};
use timers::cancel;

/// One session's actor.
pub(crate) struct SessionActor {
    id: SessionId,
    generation: u64,
    kit: Arc<Kit>,
    state: SessionState,
    a: Option<Local>,
    b: Option<Local>,
    /// Links of connections that have lost their slot and may still write what they had begun: for a second or so, and
    /// no more of them than may dial in it.
    leaving: Vec<Arc<Link>>,
    idle: Option<SpawnHandle>,
    expiry: Option<SpawnHandle>,
    /// When the session is over, on our clock.
    expires: Duration,
    /// Those who asked the store for what it has no more, until it is known why; one at a time for each connection.
    missing: Vec<Reply>,
    /// Goes off when nobody said why.
    loss: Option<SpawnHandle>,
    /// Shared with every question that the store has not answered yet.
    asking: Rc<()>,
    /// How often connections were ended from outside.
    ends: u64,
    /// It panicked; its state means nothing any more.
    dead: bool,
}

/// A connection on this replica.
struct Local {
    epoch: u64,
    link: Arc<Link>,
    /// Looks at the peer, now or when its presence changes by itself. One look at a time, so that none tells what
    /// was true before.
    look: Option<SpawnHandle>,
}

impl SessionActor {
    pub(crate) fn new(id: SessionId, generation: u64, kit: Arc<Kit>) -> Self {
        Self {
            id,
            generation,
            state: SessionState::new(&kit.rules.limits),
            kit,
            a: None,
            b: None,
            leaving: Vec::new(),
            idle: None,
            expiry: None,
            expires: Duration::ZERO,
            missing: Vec::new(),
            loss: None,
            asking: Rc::new(()),
            ends: 0,
            dead: false,
        }
    }

    fn dial(&mut self, dial: Dial, ctx: &mut Context<Self>) {
        let Dial { bind, link, reply } = dial;
        let ends = self.ends;
        let bound = self.kit.store.bind(self.id, bind);
        self.ask(ctx, bound, move |actor, ctx, outcome| {
            let outcome = outcome.and_then(|bound| match actor.ends == ends {
                true => actor.seat(bind.slot, link, bound, ctx),
                false => Err(actor.turn_away(bind.slot, &bound, ctx)),
            });
            // A connection that went away meanwhile departs like any other.
            let lost = outcome.as_ref().ok().map(|bound| bound.epoch);
            if reply.send(outcome).is_err()
                && let Some(epoch) = lost
            {
                actor.depart(bind.slot, epoch, Departure::Lost, None, ctx);
            }
        });
    }

    /// It came while connections were ended, perhaps its own: the client dials again and hears why.
    fn turn_away(&mut self, slot: Slot, bound: &Bound, ctx: &mut Context<Self>) -> BindRefusal {
        self.depart(slot, bound.epoch, Departure::Lost, None, ctx);
        Gone::Unavailable(StoreError("ended while the slot was asked for".to_owned())).into()
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
        self.forget_missed(ctx);
        let local = Local {
            epoch: bound.epoch,
            link,
            look: None,
        };
        if let Some(old) = self.local_mut(slot).replace(local) {
            old.link.close(CloseCode::Replaced);
            self.let_go(old, ctx);
        }
        self.cancel_idle(ctx);
        self.expire_in(bound.expires_in, ctx);
        self.look_in(slot, bound.peer.changes_in, ctx);
        self.look_around(slot.other(), ctx);
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
                self.ask(
                    ctx,
                    appended,
                    move |actor, ctx, outcome: Result<Appended, Gone>| {
                        if matches!(outcome, Err(Gone::NoSession)) {
                            return actor.missed(slot, epoch, reply, ctx);
                        }
                        let answer = actor.state.on_appended(slot, epoch, n, &outcome);
                        // A connection that is gone hears nothing; it resumes and asks again.
                        let _ = reply.send(actor.answer(slot, answer));
                    },
                );
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
        self.ask(ctx, trimmed, move |actor, ctx, outcome: Result<Trimmed, Gone>| {
            if matches!(outcome, Err(Gone::NoSession)) {
                return actor.missed(slot, epoch, reply, ctx);
            }
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
            local.into_iter().for_each(|local| self.let_go(local, ctx));
        }
        let (kit, id) = (self.kit.clone(), self.id);
        let first = kit.store.unbind(id, slot, epoch, departure);
        let unbound = async move {
            let mut outcome = first.await;
            if let Some(reply) = reply {
                // Whoever left doesn't always wait to hear it.
                let _ = reply.send(Err(CloseCode::Normal));
            }
            // After the longest life of a session there is nothing to give back.
            for _ in 0..SESSION_SECONDS_MAX {
                if !matches!(outcome, Err(Gone::Unavailable(_))) {
                    break;
                }
                tokio::time::sleep(STORE_RETRY).await;
                outcome = kit.store.unbind(id, slot, epoch, departure).await;
            }
        };
        self.ask(ctx, unbound, move |actor, ctx, ()| {
            // One that was replaced meanwhile changed nothing, and the peer sees the newer one.
            actor.look(slot.other(), ctx);
            actor.stop_when_idle(ctx);
        });
    }

    fn let_go(&mut self, local: Local, ctx: &mut Context<Self>) {
        cancel(ctx, local.look);
        self.leaving.push(local.link);
        self.leaving.retain(|link| !link.is_silent());
    }

    fn hear(&mut self, news: News, ctx: &mut Context<Self>) {
        match news {
            News::Mail(_, slot) => self.mail(slot),
            News::Peer(_, slot) => self.look_around(slot, ctx),
            News::Replaced(_, slot, epoch) => {
                if let Some(local) = self.local(slot).filter(|local| local.epoch < epoch) {
                    // It departs when its socket is closed, like any other.
                    local.link.close(CloseCode::Replaced);
                }
            }
            News::Missed => Slot::BOTH
                .into_iter()
                .for_each(|slot| self.look_around(slot, ctx)),
        }
    }

    fn look_around(&mut self, slot: Slot, ctx: &mut Context<Self>) {
        self.mail(slot);
        self.look(slot, ctx);
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

    /// Awaits the store and goes on with its answer, between other messages.
    fn ask<T: 'static>(
        &self,
        ctx: &mut Context<Self>,
        question: impl Future<Output = T> + 'static,
        then: impl FnOnce(&mut Self, &mut Context<Self>, T) + 'static,
    ) -> SpawnHandle {
        let asking = self.asking.clone();
        let question = AssertUnwindSafe(question).catch_unwind().into_actor(self);
        ctx.spawn(question.map(move |outcome, actor, ctx| {
            drop(asking);
            match outcome {
                Ok(outcome) => actor.guarded(ctx, |actor, ctx| then(actor, ctx, outcome)),
                Err(_panic) => actor.die(ctx),
            }
        }))
    }

    /// Runs a handler's body and catches its panic, as `instance.rs` says why. A dead actor does nothing more.
    fn guarded(&mut self, ctx: &mut Context<Self>, body: impl FnOnce(&mut Self, &mut Context<Self>)) {
        if !self.dead && catch_unwind(AssertUnwindSafe(|| body(self, ctx))).is_err() {
            self.die(ctx);
        }
    }

    fn die(&mut self, ctx: &mut Context<Self>) {
        self.dead = true;
        self.kit.directory.bury(self.id, self.generation);
        ctx.terminate();
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

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.guarded(ctx, Self::stop_when_idle);
    }
}
