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
use sovereign_relay_protocol::push::PushAnswer;
use tokio::sync::oneshot;

use super::{InstanceActor, Kit};
use crate::{
    idempotency::{Claim, Remembered},
    lane::Verdict,
    now::Now,
    push::{Answered, LaneJob, Push, Refusal},
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
    pub(crate) tracked: Tracked,
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

/// The outcome memory was asked.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Recalled {
    pub(crate) pending: Pending,
    pub(crate) remembered: Option<Remembered>,
}

/// The lane has answered.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Settled {
    pub(crate) pending: Pending,
    pub(crate) result: Result<PushAnswer, Refusal>,
}

/// Asks the outcome memory. Where the actor dies meanwhile, the push is dropped and its caller hears of it.
pub(crate) async fn recall(kit: Arc<Kit>, actor: Addr<InstanceActor>, pending: Pending, key: u128) {
    let remembered = kit.outcomes.get(key, kit.clock.now()).await;
    // Never full: the message carries a slot, and the mailbox has a place for each.
    let _ = actor.try_send(Recalled { pending, remembered });
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

/// Remembers a final outcome, tells the actor and through it the caller; a dead actor's caller hears it from here.
pub(crate) async fn settle(
    kit: Arc<Kit>,
    actor: Addr<InstanceActor>,
    pending: Pending,
    result: Result<PushAnswer, Refusal>,
) {
    if let (Ok(answer), Some(claim)) = (&result, &pending.claim)
        && answer.is_final()
    {
        let identity = claim.identity();
        let outcome = Remembered {
            message: identity.message,
            answer: answer.clone(),
        };
        kit.outcomes.put(identity.key, outcome, kit.clock.now()).await;
    }
    if let Err(unsent) = actor.try_send(Settled { pending, result }) {
        let Settled { pending, result } = unsent.into_inner();
        pending.finish(result.map(fresh));
    }
}

/// An answer that is no replay.
pub(crate) fn fresh(answer: PushAnswer) -> Answered {
    Answered {
        answer,
        replayed: false,
    }
}
