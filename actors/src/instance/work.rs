//! One push on its way through its instance's actor, and the tasks that do the waiting for it.
//!
//! A task is none of the actor's own futures: it ends whether the caller hangs up or the actor dies, and everything
//! the push holds (slot, claim, place in the registry's count, the caller's reply) is in [`Pending`], which
//! gives all of it back when it is dropped. The registry waits for that count when it closes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use actix::{Addr, Message};
use futures_util::future::BoxFuture;
use sovereign_relay_protocol::push::{PushAnswer, PushResult};
use tokio::sync::oneshot;
use tracing::Span;

use super::{InstanceActor, kit::Kit};
use crate::{
    idempotency::{
        Claim,
        names::{self, Recall},
    },
    lane::Verdict,
    now::Now,
    ports::Paid,
    push::{Answered, Idempotency, LaneJob, Push, Refusal},
    registry::{door::Door, slots::Slot, tracker::Tracked},
};

/// Result of a push.
pub(crate) type Outcome = Result<Answered, Refusal>;

/// What the registry hears.
pub(crate) enum Reply {
    /// It is over.
    Done(Outcome),
    /// It repeats a push under way, whose result will come here. The slot stays with whoever waits.
    Wait(oneshot::Receiver<Outcome>, Slot),
}

/// One push and everything it holds.
pub(crate) struct Pending {
    pub(crate) push: Arc<Push>,
    pub(crate) began: Now,
    pub(crate) slot: Slot,
    pub(crate) claim: Option<Claim>,
    /// Set once anything may have come of it: from then on a lost reply is 500, before that a new try.
    pub(crate) started: Arc<AtomicBool>,
    pub(crate) reply: oneshot::Sender<Reply>,
    pub(crate) tracked: Arc<Tracked>,
    /// The request that brought it, for the log. Ends with the push.
    pub(crate) span: Span,
}

impl Pending {
    pub(crate) fn start(&self) {
        self.started.store(true, Ordering::SeqCst);
    }

    /// Answers the caller and whoever waits for the same key. A caller that hung up hears nothing.
    pub(crate) fn finish(mut self, outcome: Outcome) {
        if let Some(claim) = self.claim.take() {
            claim.finish(&outcome);
        }
        // What the push held is free before its caller hears of it.
        let Self {
            reply, slot, tracked, ..
        } = self;
        drop(slot);
        // A caller that hung up is no fault.
        let _ = reply.send(Reply::Done(outcome));
        drop(tracked);
    }

    /// Leaves the caller to wait for another push.
    pub(crate) fn wait_for(self, first: oneshot::Receiver<Outcome>) {
        // A caller that hung up is no fault.
        let _ = self.reply.send(Reply::Wait(first, self.slot));
    }
}

/// A push begins.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Ask(pub(crate) Pending);

/// The outcome memory was asked. Where a dead actor lets it fall, nothing has come of the push yet, so it is tried
/// again.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Recalled(Option<(Pending, Recall)>);

impl Recalled {
    /// Takes it out.
    pub(crate) fn open(mut self) -> Option<(Pending, Recall)> {
        self.0.take()
    }
}

impl Drop for Recalled {
    fn drop(&mut self) {
        if let Some((pending, _)) = &self.0 {
            pending.started.store(false, Ordering::SeqCst);
        }
    }
}

/// The bill is paid, or not. Where a dead actor lets it fall, nothing has come of the push yet, so it is tried again,
/// and what was paid goes back.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Funded(Option<(Pending, Paid)>);

impl Funded {
    /// Takes it out.
    pub(crate) fn open(mut self) -> Option<(Pending, Paid)> {
        self.0.take()
    }
}

impl Drop for Funded {
    fn drop(&mut self) {
        if let Some((pending, _)) = &self.0 {
            pending.started.store(false, Ordering::SeqCst);
        }
    }
}

/// The lane has answered. Dropping it, read or not, answers the caller: an outcome that is known is told even if the
/// actor died.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Settled(Option<(Pending, Result<PushAnswer, Refusal>)>);

impl Settled {
    /// What the actor has to note, if it is an answer: the push, when it began, and the result.
    pub(crate) fn answer(&self) -> Option<(&Push, Now, PushResult)> {
        let (pending, result) = self.0.as_ref()?;
        let answer = result.as_ref().ok()?;
        Some((&pending.push, pending.began, answer.result))
    }
}

impl Drop for Settled {
    fn drop(&mut self) {
        if let Some((pending, result)) = self.0.take() {
            pending.finish(result.map(fresh));
        }
    }
}

/// Asks the outcome memory.
pub(crate) async fn recall(
    kit: Arc<Kit>,
    actor: Addr<InstanceActor>,
    pending: Pending,
    identity: Idempotency,
) {
    let recall = names::recall(&*kit.outcomes, &identity, &*kit.clock).await;
    // Never full: the message carries a slot, and the mailbox has a place for each. If the actor is gone, the
    // message falls.
    let _ = actor.try_send(Recalled(Some((pending, recall))));
}

/// Waits until the bill is paid.
pub(crate) async fn pay(actor: Addr<InstanceActor>, pending: Pending, paid: BoxFuture<'static, Paid>) {
    let paid = paid.await;
    // Never full: the message carries a slot. If the actor is gone, the message falls.
    let _ = actor.try_send(Funded(Some((pending, paid))));
}

/// Hands the push to the lane and settles what comes back.
pub(crate) async fn deliver(
    kit: Arc<Kit>,
    actor: Addr<InstanceActor>,
    pending: Pending,
    door: Arc<dyn Door>,
    job: LaneJob,
) {
    let result = match door.deliver(job).await {
        Verdict::Answer(answer) => Ok(answer),
        Verdict::Unreachable { retry_after } => Err(Refusal::SendFailed { retry_after }),
        Verdict::Overloaded { retry_after } => Err(Refusal::Overloaded { retry_after }),
    };
    settle(kit, actor, pending, result).await;
}

/// Answers a push that never reached a lane; its key is free before its caller hears of it.
pub(crate) async fn conclude(kit: Arc<Kit>, pending: Pending, outcome: Outcome) {
    if let Some(claim) = &pending.claim {
        names::release(&*kit.outcomes, claim.identity()).await;
    }
    pending.finish(outcome);
}

/// Remembers a final outcome, then lets the actor note it before the caller hears of it.
pub(crate) async fn settle(
    kit: Arc<Kit>,
    actor: Addr<InstanceActor>,
    pending: Pending,
    result: Result<PushAnswer, Refusal>,
) {
    if let Some(claim) = &pending.claim {
        match &result {
            Ok(answer) if answer.is_final() => {
                names::remember(&*kit.outcomes, claim.identity(), answer, &*kit.clock).await;
            }
            Ok(_) | Err(_) => names::release(&*kit.outcomes, claim.identity()).await,
        }
    }
    // If the actor is gone, the message falls, which answers the caller.
    let _ = actor.try_send(Settled(Some((pending, result))));
}

/// An answer that is no replay.
pub(crate) fn fresh(answer: PushAnswer) -> Answered {
    Answered {
        answer,
        replayed: false,
    }
}
