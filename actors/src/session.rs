//! One actor per session that this replica holds connections of: it routes what one peer says to the other.
//!
//! Started and found by [`registry::Sessions`]. The decisions are pure: `record.rs` (what is kept, called by a store)
//! and `state.rs` (what this replica does with a frame). This file and those beside it that extend the actor
//! (`seating.rs`, `timers.rs`, `ending.rs`) are the shell that owns mailbox and timers:
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
use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{Mood, Opaque},
    id::{SessionId, Slot},
};

mod bucket;
mod debt;
mod directory;
mod ending;
pub mod link;
mod mailbox;
mod messages;
pub mod port;
pub mod record;
pub mod registry;
pub mod rules;
mod seating;
mod slot;
mod state;
mod timers;

#[cfg(test)]
mod tests;

use debt::Debt;
use link::Link;
pub use messages::Said;
use messages::{Reply, Submit};
use port::{Appended, Departure, Gone, News, Trimmed};
use registry::Kit;
use state::{Answer, SessionState, Verdict, after_trim};

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
    /// How often a peer was to be looked at.
    looks: u64,
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
            looks: 0,
            dead: false,
        }
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
                let debt = Debt::new(&self.kit, self.id, slot, epoch, Departure::Bye);
                self.depart(debt, Some(reply), ctx);
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
