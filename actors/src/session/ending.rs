//! How the connections of a session are ended: because somebody says so ([`End`]), or because the store has it no more.
//! Why that is, shows:
//!
//! ```text
//! its time is over, by the store's clock a little sooner than by ours -> 4410
//! removed: whoever did it says so in a moment                         -> 4410
//! neither: the store lost it                                          -> 4404
//! ```

use std::time::Duration;

use actix::{AsyncContext as _, Context};
use sovereign_relay_protocol::signal::{close::CloseCode, id::Slot};
use tokio::sync::oneshot;

use super::{
    SessionActor,
    debt::Debt,
    messages::{End, Reply},
    port::Departure,
    timers::cancel,
};

/// So much earlier than by our clock a session may end by the store's: we start counting with its answer, and clocks run
/// differently.
const EARLY: Duration = Duration::from_secs(2);
/// The news of a removal take no longer.
const REMOVAL_HEARD: Duration = Duration::from_secs(1);

impl SessionActor {
    pub(super) fn end(&mut self, end: End, ctx: &mut Context<Self>) {
        self.ends += 1;
        for slot in Slot::BOTH {
            let named = end.only.map(|instance| self.state.epoch_of(slot, instance));
            if named == Some(None) {
                continue;
            }
            let Some(local) = self.local(slot) else {
                continue;
            };
            local.link.close(end.code);
            let epoch = local.epoch;
            // Without its goodbye: the peer sees it away first.
            let debt = Debt::new(&self.kit, self.id, slot, epoch, Departure::Lost);
            self.depart(debt, None, ctx);
        }
        if end.only.is_none() {
            self.on_all_ended(end.code, ctx);
        }
        // Nobody waits when closing itself was given up.
        let _ = end.done.send(self.leaving.clone());
        self.stop_when_idle(ctx);
    }

    /// The store has no such session; the connection that asked for it is answered when it is known why.
    pub(super) fn missed(&mut self, slot: Slot, epoch: u64, reply: Reply, ctx: &mut Context<Self>) {
        if self.state.is_live(slot, epoch) {
            self.miss(Some(reply), ctx);
        } else {
            // It was told a better reason before, over its link.
            let _ = reply.send(Err(CloseCode::Replaced));
        }
    }

    /// The store has no such session.
    pub(super) fn miss(&mut self, reply: Option<Reply>, ctx: &mut Context<Self>) {
        self.missing.extend(reply);
        if self.kit.clock.now().mono.saturating_add(EARLY) >= self.expires {
            self.close_all(CloseCode::SessionOver, ctx);
        } else if self.loss.is_none() {
            let loss = ctx.run_later(REMOVAL_HEARD, |actor, ctx| {
                actor.guarded(ctx, |actor, ctx| actor.close_all(CloseCode::NoSuchSession, ctx));
            });
            self.loss = Some(loss);
        }
    }

    /// A connection got its slot: what was missed is another session that had the same id.
    pub(super) fn forget_missed(&mut self, ctx: &mut Context<Self>) {
        if self.loss.is_some() {
            self.close_all(CloseCode::NoSuchSession, ctx);
        }
    }

    /// Everybody is told the end, those first who asked for what was missing.
    pub(super) fn on_all_ended(&mut self, code: CloseCode, ctx: &mut Context<Self>) {
        cancel(ctx, self.loss.take());
        for reply in self.missing.drain(..) {
            // It may have gone without an answer.
            let _ = reply.send(Err(code));
        }
    }

    pub(super) fn close_all(&mut self, code: CloseCode, ctx: &mut Context<Self>) {
        let (done, _) = oneshot::channel();
        let only = None;
        self.end(End { code, only, done }, ctx);
    }
}
