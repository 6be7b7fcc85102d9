//! What the actor reads of its instance's record and writes to it.
//!
//! Reads are the actor's own futures and die with it. Writes are tasks that the registry waits for when it closes:
//! what was counted is written even if the actor stops right after. Every call has a time limit, so that a store
//! that hangs holds up neither pushes nor the relay's stop.

use std::time::Duration;

use actix::{AsyncContext as _, Context, Handler, Message, WrapFuture as _, fut::ActorFutureExt as _};
use metrics::counter;
use tokio::sync::oneshot;
use tracing::{error, warn};

use super::{InstanceActor, StandingPhase, state::Use};
use crate::ports::{Standing, StoreError, Suspension};

/// Longest a store call may take: many times what a healthy store needs, and a fifth of a push's deadline.
const PATIENCE: Duration = Duration::from_secs(2);

/// The operator changed the standing. Answered when the new one holds.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Refresh(pub(crate) oneshot::Sender<()>);

/// The store could not be told of some use.
#[derive(Message)]
#[rtype(result = "()")]
struct NotWritten(Use);

/// The store was told of a suspension, or could not be.
#[derive(Message)]
#[rtype(result = "()")]
struct SuspensionWritten(bool);

impl InstanceActor {
    /// Reads the standing. Only the last read counts: what an earlier one saw may be older than a refresh.
    pub(super) fn read_standing(&mut self, ctx: &mut Context<Self>) {
        self.reads += 1;
        let number = self.reads;
        let read = patiently(self.kit.store.standing(self.instance));
        ctx.spawn(read.into_actor(self).map(move |standing, actor, ctx| {
            actor.guarded(ctx, |actor, ctx| actor.on_standing(number, standing, ctx));
        }));
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
        for refresher in self.refreshers.drain(..) {
            // Whoever asked and went away needs no answer.
            let _ = refresher.send(());
        }
        if let StandingPhase::Unread { waiting, questions } = before {
            let now = self.kit.clock.now();
            questions
                .into_iter()
                .for_each(|question| question(&mut self.state, now));
            waiting.into_iter().for_each(|pending| self.ask(pending, ctx));
        }
    }

    /// Tells the store of the use since the last time.
    pub(super) fn write_use(&mut self, ctx: &mut Context<Self>) {
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

    /// The instance was suspended just now.
    pub(super) fn on_suspended(&mut self, suspension: Suspension, ctx: &mut Context<Self>) {
        counter!("relay_abuse_suspensions_total").increment(1);
        warn!(instance = %self.instance, reason = suspension.reason, "instance suspended");
        self.write_suspension(suspension, ctx);
    }

    /// Writes a suspension, which holds here already. One that could not be written is written at a later tick.
    pub(super) fn write_suspension(&mut self, suspension: Suspension, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.is_telling, true) {
            return;
        }
        let written = patiently(self.kit.store.suspend(self.instance, suspension));
        let (actor, tracked, instance) = (ctx.address(), self.kit.writes.enter(), self.instance);
        actix_rt::spawn(async move {
            let written = written.await;
            if let Err(error) = &written {
                error!(%instance, %error, "cannot write the suspension, which holds here and is written again");
            }
            // An actor that is gone can't write it again either.
            let _ = actor.try_send(SuspensionWritten(written.is_ok()));
            drop(tracked);
        });
    }
}

impl Handler<Refresh> for InstanceActor {
    type Result = ();

    fn handle(&mut self, Refresh(done): Refresh, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            actor.refreshers.push(done);
            actor.read_standing(ctx);
        });
    }
}

impl Handler<NotWritten> for InstanceActor {
    type Result = ();

    fn handle(&mut self, NotWritten(noted): NotWritten, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, _| actor.state.put_back_use(noted));
    }
}

impl Handler<SuspensionWritten> for InstanceActor {
    type Result = ();

    fn handle(&mut self, SuspensionWritten(is_written): SuspensionWritten, ctx: &mut Context<Self>) {
        self.guarded(ctx, |actor, ctx| {
            actor.is_telling = false;
            if is_written {
                actor.state.on_suspension_told();
                // What was read meanwhile may be older than the suspension, or an operator's answer to it.
                actor.read_standing(ctx);
            }
        });
    }
}

async fn patiently<T>(call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(result) => result,
        Err(_) => Err(StoreError("no answer in time".to_owned())),
    }
}
