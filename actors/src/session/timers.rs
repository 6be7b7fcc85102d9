//! What a session's actor does when time passes: it looks at a peer again, ends a session that is over, and goes when
//! nobody is connected.

use std::{rc::Rc, time::Duration};

use actix::{ActorContext as _, AsyncContext as _, Context, SpawnHandle};
use sovereign_relay_protocol::signal::{close::CloseCode, id::Slot};

use super::{
    SessionActor,
    port::{Gone, Presence},
    state::STORE_RETRY,
};

/// An actor without connections stops after this. Its budgets are whole again sooner, so that nothing is gained by
/// coming back.
const IDLE: Duration = Duration::from_secs(5);

impl SessionActor {
    /// Reads the presence of a connection's peer, if the connection is here.
    pub(super) fn look(&mut self, slot: Slot, ctx: &mut Context<Self>) {
        self.looks += 1;
        let Some(epoch) = self.local(slot).map(|local| local.epoch) else {
            return;
        };
        let peer = self.kit.store.peer(self.id, slot);
        let look = self.ask(ctx, peer, move |actor, ctx, outcome| {
            if actor.state.is_live(slot, epoch) {
                actor.on_look(slot, outcome, ctx);
            }
        });
        self.replace_look(slot, Some(look), ctx);
    }

    fn on_look(&mut self, slot: Slot, outcome: Result<Presence, Gone>, ctx: &mut Context<Self>) {
        match outcome {
            Ok(presence) => {
                self.say(slot, |words| words.peer = Some(presence.told));
                self.look_in(slot, presence.changes_in, ctx);
            }
            Err(Gone::Unavailable(_)) => self.look_in(slot, Some(STORE_RETRY), ctx),
            Err(Gone::NoSession) => self.miss(None, ctx),
            // A look fences nobody.
            Err(Gone::Fenced | Gone::Behind) => {}
        }
    }

    pub(super) fn look_in(&mut self, slot: Slot, time: Option<Duration>, ctx: &mut Context<Self>) {
        let later = time.map(|time| {
            ctx.run_later(time, move |actor, ctx| {
                actor.guarded(ctx, |actor, ctx| actor.look(slot, ctx));
            })
        });
        self.replace_look(slot, later, ctx);
    }

    fn replace_look(&mut self, slot: Slot, look: Option<SpawnHandle>, ctx: &mut Context<Self>) {
        if let Some(local) = self.local_mut(slot) {
            let earlier = std::mem::replace(&mut local.look, look);
            cancel(ctx, earlier);
        }
    }

    pub(super) fn expire_in(&mut self, life: Duration, ctx: &mut Context<Self>) {
        let timer = ctx.run_later(life, |actor, ctx| {
            actor.guarded(ctx, |actor, ctx| actor.close_all(CloseCode::SessionOver, ctx));
        });
        self.expires = self.kit.clock.now().mono.saturating_add(life);
        cancel(ctx, self.expiry.replace(timer));
    }

    pub(super) fn stop_when_idle(&mut self, ctx: &mut Context<Self>) {
        if self.has_connections() {
            return;
        }
        let timer = ctx.run_later(IDLE, |actor, ctx| actor.guarded(ctx, Self::stop_if_idle));
        cancel(ctx, self.idle.replace(timer));
    }

    fn stop_if_idle(&mut self, ctx: &mut Context<Self>) {
        if self.has_connections() {
            return;
        }
        // What the store was asked for must not be forgotten: it may be a slot.
        if Rc::strong_count(&self.asking) > 1 {
            return self.stop_when_idle(ctx);
        }
        self.kit.directory.leave(self.id, self.generation);
        ctx.stop();
    }

    fn has_connections(&self) -> bool {
        self.a.is_some() || self.b.is_some()
    }

    pub(super) fn cancel_idle(&mut self, ctx: &mut Context<Self>) {
        cancel(ctx, self.idle.take());
    }
}

pub(super) fn cancel(ctx: &mut Context<SessionActor>, timer: Option<SpawnHandle>) {
    if let Some(timer) = timer {
        ctx.cancel_future(timer);
    }
}
