//! Finds the actor of a session, starts it, replaces it when it died.
//!
//! Called by the WebSocket endpoint and the sessions API. The actors live on arbiters of their own, started with the
//! registry and stopped last, so that none depends on an HTTP worker.
//!
//! Invariant: a connection that got its slot gives it back, whatever becomes of it ([`Held`]), and whatever becomes of
//! its actor: a successor does it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use actix::{Actor, Arbiter, ArbiterHandle, Handler, Message, dev::ToEnvelope};
use futures_util::{StreamExt as _, stream};
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        close::CloseCode,
        id::{SessionId, Slot},
        session::SessionLimits,
    },
};
use tokio::{sync::oneshot, time::timeout};
use tracing::{error, warn};

use super::{
    SessionActor,
    debt::Debt,
    directory::Directory,
    link::Link,
    messages::{Dial, End, Hear, Leave, Miss, Said, Submit},
    port::{Bind, BindRefusal, Bound, Departure, Gone, News, Page, SessionStore},
    rules::SessionRules,
    state::{STORE_RETRY, code_of},
};
use crate::{arbiters::Arbiters, ports::Clock, registry::tracker::Tracker};

/// How often a message looks for a living actor. A miss means that one was just dying.
const TRIES: usize = 4;
/// How long a stop waits for slots to be given back: a few times what a healthy store needs for all of them.
const LAST_DEBTS: Duration = Duration::from_millis(500);
/// Sessions that are ended at the same time. Each may wait for a client that reads slowly, and no instance has so many
/// that others would wait for its own.
const ENDS: usize = 1024;

/// The sessions that this replica holds connections of. Clones are the same registry.
#[derive(Clone)]
pub struct Sessions {
    kit: Arc<Kit>,
    arbiters: Arc<Arbiters>,
}

/// What actors share.
pub(crate) struct Kit {
    pub(crate) store: Arc<dyn SessionStore>,
    pub(crate) rules: SessionRules,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) directory: Directory,
    /// See [`Sessions::write_until`], in milliseconds of the monotonic clock.
    pub(crate) writes_until: AtomicU64,
    /// Slots that are being given back.
    pub(crate) debts: Tracker,
    /// Its arbiters are being stopped.
    pub(crate) is_closed: AtomicBool,
}

/// A slot that a connection holds. Dropped, the slot is given back as lost, unless it was left before.
pub struct Held {
    sessions: Sessions,
    id: SessionId,
    slot: Slot,
    epoch: u64,
}

/// A slot that was asked for. Dropped, an answer that nobody took is given back.
struct Dialing {
    sessions: Sessions,
    id: SessionId,
    slot: Slot,
    answer: oneshot::Receiver<Result<Bound, BindRefusal>>,
}

impl Sessions {
    /// Starts the arbiters.
    ///
    /// # Panics
    /// Where no actix `System` runs.
    pub fn start(
        arbiters: usize,
        store: Arc<dyn SessionStore>,
        rules: SessionRules,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let arbiters: Vec<Arbiter> = (0..arbiters.max(1)).map(|_| Arbiter::new()).collect();
        let handles = arbiters.iter().map(Arbiter::handle).collect();
        Self::on(arbiters, handles, store, rules, clock)
    }

    /// Actors on the thread of the test, whose clock may be paused.
    #[cfg(test)]
    pub(crate) fn start_here(store: Arc<dyn SessionStore>, clock: Arc<dyn Clock>) -> Self {
        let here = vec![Arbiter::current()];
        Self::on(Vec::new(), here, store, SessionRules::default(), clock)
    }

    fn on(
        arbiters: Vec<Arbiter>,
        handles: Vec<ArbiterHandle>,
        store: Arc<dyn SessionStore>,
        rules: SessionRules,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            kit: Arc::new(Kit {
                store,
                rules,
                clock,
                directory: Directory::new(handles),
                writes_until: AtomicU64::new(u64::MAX),
                debts: Tracker::default(),
                is_closed: AtomicBool::new(false),
            }),
            arbiters: Arc::new(Arbiters::new(arbiters)),
        }
    }

    /// Gives a slot to a connection, whose link the session's actor speaks through from now on.
    pub async fn dial(
        &self,
        id: SessionId,
        bind: Bind,
        link: &Arc<Link>,
    ) -> Result<(Bound, Held), BindRefusal> {
        let dials = self.kit.directory.seat(id, &self.kit).dials;
        let _dial = dials.try_acquire().map_err(|_| busy())?;
        for _ in 0..TRIES {
            let begun = Arc::<AtomicBool>::default();
            let ask = |reply| Dial {
                bind,
                link: link.clone(),
                begun: begun.clone(),
                reply,
            };
            let mut dialing = Dialing {
                sessions: self.clone(),
                id,
                slot: bind.slot,
                answer: self.send(id, ask).ok_or_else(busy)?,
            };
            match (&mut dialing.answer).await {
                Ok(bound) => {
                    let bound = bound?;
                    return Ok((bound, dialing.held(&bound)));
                }
                // It was on its way to an actor that left or died before.
                Err(_lost) if !begun.load(Ordering::SeqCst) => {}
                Err(_lost) => break,
            }
        }
        Err(busy().into())
    }

    /// Ends the connections of a session on this replica: all, or those of one instance. Returns when none of them
    /// begins to write a message any more.
    pub async fn end(&self, id: SessionId, code: CloseCode, only: Option<InstanceId>) {
        for link in self.close_all(id, code, only).await {
            link.silent().await;
        }
    }

    /// The links that the session's actor closed. It is told whether or not its mailbox is full.
    async fn close_all(&self, id: SessionId, code: CloseCode, only: Option<InstanceId>) -> Vec<Arc<Link>> {
        // Without an actor there are no connections; one that died has closed its own.
        while let Some(seat) = self.kit.directory.find(id) {
            let (done, closed) = oneshot::channel();
            seat.address.do_send(End { code, only, done });
            match closed.await {
                Ok(links) => return links,
                Err(_gone) => self.kit.directory.leave(id, seat.generation),
            }
        }
        Vec::new()
    }

    /// Ends every connection whose ticket names an instance.
    pub async fn end_instance(&self, instance: InstanceId) {
        let ids = stream::iter(self.kit.directory.all());
        let end = |id| self.end(id, CloseCode::Revoked, Some(instance));
        ids.for_each_concurrent(ENDS, end).await;
    }

    /// Tells every connection that the relay goes away, each with another moment within `over`.
    pub fn leave(&self, over: Duration) {
        let ids = self.kit.directory.all();
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX).max(1);
        for (index, id) in (1..=count).zip(ids) {
            let within = over.saturating_mul(index) / count;
            if let Some(seat) = self.kit.directory.find(id) {
                // One that is gone has no connections.
                let _ = seat.address.try_send(Leave { within });
            }
        }
    }

    /// Takes in what other replicas did. A session without connections here has nobody to tell.
    pub fn hear(&self, news: News) {
        let ids = match news {
            News::Mail(id, _) | News::Peer(id, _) | News::Replaced(id, ..) => vec![id],
            News::Missed => self.kit.directory.all(),
        };
        for seat in ids.into_iter().filter_map(|id| self.kit.directory.find(id)) {
            // An actor that is drowned looks at the store when it is told again, one that is gone has no connections.
            let _ = seat.address.try_send(Hear(news));
        }
    }

    /// From that moment on, until it is told anew, this replica may be thought dead by others: a session that one of them
    /// ends would be unheard of here, so no message that was read before is written any more. A moment rather than a
    /// word, so that a process that was stopped knows it with its first step.
    pub fn write_until(&self, moment: Duration) {
        let moment = u64::try_from(moment.as_millis()).unwrap_or(u64::MAX);
        self.kit.writes_until.store(moment, Ordering::Release);
    }

    /// Actors alive.
    pub fn alive(&self) -> usize {
        self.kit.directory.count()
    }

    /// What clients are told that a session may carry.
    pub fn limits(&self) -> SessionLimits {
        self.kit.rules.limits
    }

    /// Stops the arbiters. Connections are gone by then, or are closed 1011; their slots are given back before, unless the
    /// store takes long.
    pub async fn close(&self) {
        let debts = &self.kit.debts;
        if timeout(LAST_DEBTS, debts.none_left()).await.is_err() {
            warn!(
                slots = debts.count(),
                "the store did not take all slots back in time"
            );
        }
        self.kit.is_closed.store(true, Ordering::SeqCst);
        let arbiters = self.arbiters.take();
        // The threads end at once, but joining them blocks.
        let join = || arbiters.into_iter().for_each(|arbiter| drop(arbiter.join()));
        if let Err(error) = tokio::task::spawn_blocking(join).await {
            error!(%error, "an arbiter's thread panicked");
        }
    }

    /// Asks the session's actor; `None` when it died over it, or is drowned.
    async fn ask<M, T>(&self, id: SessionId, question: impl Fn(oneshot::Sender<T>) -> M) -> Option<T>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        self.send(id, question)?.await.ok()
    }

    fn send<M, T>(
        &self,
        id: SessionId,
        question: impl Fn(oneshot::Sender<T>) -> M,
    ) -> Option<oneshot::Receiver<T>>
    where
        M: Message + Send + 'static,
        M::Result: Send,
        SessionActor: Handler<M>,
        <SessionActor as Actor>::Context: ToEnvelope<SessionActor, M>,
    {
        for _ in 0..TRIES {
            let seat = self.kit.directory.seat(id, &self.kit);
            let (reply, answer) = oneshot::channel();
            match seat.address.try_send(question(reply)) {
                Ok(()) => return Some(answer),
                Err(actix::dev::SendError::Full(_)) => return None,
                Err(actix::dev::SendError::Closed(_)) => self.kit.directory.leave(id, seat.generation),
            }
        }
        None
    }
}

fn busy() -> Gone {
    Gone::Unavailable(crate::ports::StoreError(
        "the session's actor did not answer".to_owned(),
    ))
}

impl Dialing {
    fn held(&self, bound: &Bound) -> Held {
        Held {
            sessions: self.sessions.clone(),
            id: self.id,
            slot: self.slot,
            epoch: bound.epoch,
        }
    }
}

impl Drop for Dialing {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(bound)) = self.answer.try_recv() {
            drop(self.held(&bound));
        }
    }
}

impl Held {
    /// Hands a frame to the session. `Err` is how the connection ends.
    pub async fn submit(&self, said: Said) -> Result<(), CloseCode> {
        let Self {
            sessions,
            id,
            slot,
            epoch,
            ..
        } = self;
        let outcome = sessions
            .ask(*id, |reply| Submit {
                slot: *slot,
                epoch: *epoch,
                said: said.clone(),
                reply,
            })
            .await;
        outcome.unwrap_or(Err(CloseCode::InternalError))
    }

    /// Whether no message may be written for now.
    pub fn is_muted(&self) -> bool {
        let until = self.sessions.kit.writes_until.load(Ordering::Acquire);
        self.sessions.kit.clock.now().mono >= Duration::from_millis(until)
    }

    /// What waits in the slot's mailbox after `after`: about `bytes` of it. Waits for a store that can't be reached.
    pub async fn read(&self, after: u64, bytes: usize) -> Result<Page, CloseCode> {
        let store = &self.sessions.kit.store;
        loop {
            if self.is_muted() {
                // What is read now could not be written.
                tokio::time::sleep(STORE_RETRY).await;
                continue;
            }
            let read = store.read(self.id, self.slot, self.epoch, after, bytes);
            match read.await {
                Ok(page) => return Ok(page),
                Err(Gone::Unavailable(_)) => tokio::time::sleep(STORE_RETRY).await,
                Err(Gone::NoSession) => return Err(self.miss().await),
                Err(gone @ (Gone::Fenced | Gone::Behind)) => return Err(code_of(&gone)),
            }
        }
    }

    /// The session is gone: how that ends the connection.
    async fn miss(&self) -> CloseCode {
        let (slot, epoch) = (self.slot, self.epoch);
        let miss = |reply| Miss { slot, epoch, reply };
        match self.sessions.ask(self.id, miss).await {
            Some(Err(code)) => code,
            Some(Ok(())) | None => CloseCode::InternalError,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let kit = &self.sessions.kit;
        Debt::new(kit, self.id, self.slot, self.epoch, Departure::Lost).hand_over();
    }
}

#[cfg(test)]
impl Sessions {
    pub(crate) fn debt(&self, id: SessionId, slot: Slot, epoch: u64, departure: Departure) -> Debt {
        Debt::new(&self.kit, id, slot, epoch, departure)
    }

    pub(crate) fn debts(&self) -> usize {
        self.kit.debts.count()
    }
}
