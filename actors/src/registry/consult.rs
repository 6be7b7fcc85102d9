//! Questions to an instance's actor that it answers at once: what the instance may do in signaling.
//!
//! Called by the sessions API. Nothing of a question outlives its answer, so one that an
//! actor took with it when it left or died is asked again.

use std::sync::atomic::Ordering;

use actix::dev::SendError;
use sovereign_relay_protocol::id::InstanceId;
use tokio::sync::oneshot;

use super::{Registry, TRIES};
use crate::{
    instance::{
        Consult,
        signal::{Admitted, SessionRefusal, TurnFor},
        state::InstanceState,
    },
    now::Now,
};

impl Registry {
    /// Takes one session of an instance's budget, unless the instance is suspended. `turn`: to whom the relay gives
    /// TURN credentials, where the session is to have them.
    pub async fn admit_session(
        &self,
        instance: InstanceId,
        turn: TurnFor,
    ) -> Result<Admitted, SessionRefusal> {
        if self.inner.closing.load(Ordering::SeqCst) {
            return Err(SessionRefusal::Draining);
        }
        let question = move |state: &mut InstanceState, now: Now| state.admit_session(turn, now);
        let answer = self.consult(instance, question).await;
        answer.unwrap_or(Err(SessionRefusal::Unavailable))
    }

    /// `None`: the actor is drowned, or its successors die too.
    async fn consult<T: Send + 'static>(
        &self,
        instance: InstanceId,
        question: impl Fn(&mut InstanceState, Now) -> T + Copy + Send + 'static,
    ) -> Option<T> {
        let kit = &self.inner.kit;
        for _ in 0..TRIES {
            let seat = kit.directory.seat(instance, kit);
            let (reply, answer) = oneshot::channel();
            let ask = move |state: &mut InstanceState, now: Now| {
                // Whoever asked and went away needs no answer.
                let _ = reply.send(question(state, now));
            };
            match seat.address.try_send(Consult(Box::new(ask))) {
                Ok(()) => {}
                Err(SendError::Full(_)) => return None,
                Err(SendError::Closed(_)) => {
                    kit.directory.bury(seat.instance, seat.generation);
                    continue;
                }
            }
            if let Ok(answer) = answer.await {
                return Some(answer);
            }
            if !seat.address.connected() {
                kit.directory.bury(seat.instance, seat.generation);
            }
        }
        None
    }
}
