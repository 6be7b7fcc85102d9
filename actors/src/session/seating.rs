//! How a connection gets its slot from the session's actor, and how it is given back.
//!
//! Invariant: a slot that the store has given is a [`Debt`] until its connection has it, and from the moment that the
//! connection is gone until the store has it back.

use std::sync::{Arc, atomic::Ordering};

use actix::Context;
use sovereign_relay_protocol::{
    limits::SESSION_SECONDS_MAX,
    signal::{close::CloseCode, id::Slot},
};

use super::{
    Local, SessionActor,
    debt::Debt,
    link::Link,
    messages::{Dial, Reply},
    port::{Bind, BindRefusal, Bound, Departure, Gone},
    state::STORE_RETRY,
    timers::cancel,
};
use crate::ports::StoreError;

impl SessionActor {
    pub(super) fn dial(&mut self, dial: Dial, ctx: &mut Context<Self>) {
        let Dial {
            bind,
            link,
            begun,
            reply,
        } = dial;
        begun.store(true, Ordering::SeqCst);
        let (ends, looks) = (self.ends, self.looks);
        let bound = self.bind(bind);
        self.ask(ctx, bound, move |actor, ctx, outcome| {
            let (bound, debt) = match outcome {
                Ok(bound) => bound,
                Err(refusal) => return drop(reply.send(Err(refusal))),
            };
            if actor.ends != ends {
                actor.depart(debt, None, ctx);
                return drop(reply.send(Err(ended())));
            }
            let seated = actor.seat(bind.slot, link, bound, looks, ctx);
            let is_seated = seated.is_ok();
            match reply.send(seated) {
                // A connection that went away meanwhile departs like any other.
                Err(_gone) if is_seated => actor.depart(debt, None, ctx),
                // It is the connection's now, or a newer one's.
                Ok(()) | Err(_) => debt.paid(),
            }
        });
    }

    fn bind(&self, bind: Bind) -> impl Future<Output = Result<(Bound, Debt), BindRefusal>> + use<> {
        let (kit, id) = (self.kit.clone(), self.id);
        let bound = kit.store.bind(id, bind);
        async move {
            let bound = bound.await?;
            let debt = Debt::new(&kit, id, bind.slot, bound.epoch, Departure::Lost);
            Ok((bound, debt))
        }
    }

    /// `looks`: how many there had been when the store was asked. What was heard of the peer since may be newer than
    /// what the store said of it then.
    fn seat(
        &mut self,
        slot: Slot,
        link: Arc<Link>,
        bound: Bound,
        looks: u64,
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
        if self.looks == looks {
            self.look_in(slot, bound.peer.changes_in, ctx);
        } else {
            self.look(slot, ctx);
        }
        self.look_around(slot.other(), ctx);
        Ok(bound)
    }

    /// A connection is gone: the store gets its slot back.
    pub(super) fn depart(&mut self, debt: Debt, reply: Option<Reply>, ctx: &mut Context<Self>) {
        let (slot, epoch, departure) = (debt.slot(), debt.epoch(), debt.departure());
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
            debt.paid();
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
}

/// It came while connections were ended, perhaps its own: the client dials again and hears why.
fn ended() -> BindRefusal {
    Gone::Unavailable(StoreError("ended while the slot was asked for".to_owned())).into()
}
