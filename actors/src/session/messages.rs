//! What a session's actor is told, and by whom: connections, their sockets' ends, the sessions API, a stop.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use actix::{Context, Handler, Message};
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        close::CloseCode,
        frame::{Mood, Opaque},
        id::Slot,
    },
};
use tokio::sync::oneshot;

use super::{
    SessionActor,
    debt::Debt,
    link::Link,
    port::{Bind, BindRefusal, Bound, News},
};

/// A connection wants a slot.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Dial {
    pub(crate) bind: Bind,
    pub(crate) link: Arc<Link>,
    /// Set once anything may have come of it: until then it may be told to another actor.
    pub(crate) begun: Arc<AtomicBool>,
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

pub(super) type Reply = oneshot::Sender<Result<(), CloseCode>>;

/// A connection read a mailbox that is gone, with its session. Answered is how the connection ends.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Miss {
    pub(crate) slot: Slot,
    pub(crate) epoch: u64,
    pub(crate) reply: Reply,
}

/// A connection's socket is gone.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Depart(pub(crate) Debt);

/// Ends connections: of one instance, or all.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct End {
    pub(crate) code: CloseCode,
    pub(crate) only: Option<InstanceId>,
    /// The links that were closed, now or before, so that the caller can wait until they fell silent.
    pub(crate) done: oneshot::Sender<Vec<Arc<Link>>>,
}

/// Tells the connections that the relay goes away.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Leave {
    pub(crate) within: Duration,
}

/// Something happened to the session on another replica.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Hear(pub(crate) News);

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

impl Handler<Miss> for SessionActor {
    type Result = ();

    fn handle(&mut self, miss: Miss, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            actor.missed(miss.slot, miss.epoch, miss.reply, ctx)
        });
    }
}

impl Handler<Depart> for SessionActor {
    type Result = ();

    fn handle(&mut self, Depart(debt): Depart, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            actor.depart(debt, None, ctx);
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

impl Handler<Hear> for SessionActor {
    type Result = ();

    fn handle(&mut self, Hear(news): Hear, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| actor.hear(news, ctx));
    }
}
