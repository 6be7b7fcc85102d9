use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        frame::{Opaque, PeerState},
        id::{SessionId, Slot},
        session::SessionView,
    },
    time::UnixMillis,
};
use tokio::time::Instant;

use super::support::{MAIN, id};
use crate::{
    now::Now,
    ports::{Clock, StoreError},
    session::{port::*, record::SessionRecord},
};

/// Tokio's clock.
pub(super) struct PausedClock(pub(super) Instant);

impl Clock for PausedClock {
    fn now(&self) -> Now {
        let mono = self.0.elapsed() + Duration::from_secs(1);
        Now {
            mono,
            unix: UnixMillis(1_800_000_000_000).plus_millis(mono.as_millis() as u64),
        }
    }
}

/// Records, each operation after a while, or not at all.
pub(super) struct Shelf {
    pub(super) clock: Arc<PausedClock>,
    pub(super) records: Arc<Mutex<HashMap<SessionId, SessionRecord>>>,
    /// How long each operation takes, in milliseconds.
    pub(super) delay: AtomicU64,
    /// How long an answer takes to the next question for a peer alone.
    pub(super) next_look: AtomicU64,
    /// How long an answer takes to the next one that asks for a slot, which it has by then.
    pub(super) next_bind: AtomicU64,
    /// The next one that asks for a slot is too much for it.
    pub(super) bind_panics: AtomicBool,
    /// Whoever gives a slot back is too much for it.
    pub(super) unbind_panics: AtomicBool,
    /// It can't be reached.
    pub(super) away: Arc<AtomicBool>,
    /// The next message is too much for it: at once, or later.
    pub(super) panics: AtomicBool,
    pub(super) panics_later: AtomicBool,
    /// The next message is stored, and nobody is told.
    pub(super) loses_answer: AtomicBool,
}

impl Shelf {
    pub(super) fn new(clock: Arc<PausedClock>) -> Self {
        Self {
            clock,
            records: Arc::default(),
            delay: AtomicU64::new(0),
            next_look: AtomicU64::new(0),
            next_bind: AtomicU64::new(0),
            bind_panics: AtomicBool::new(false),
            unbind_panics: AtomicBool::new(false),
            away: Arc::default(),
            panics: AtomicBool::new(false),
            panics_later: AtomicBool::new(false),
            loses_answer: AtomicBool::new(false),
        }
    }

    fn work<T: Send + 'static, E: From<Gone> + From<StoreError> + Send + 'static>(
        &self,
        id: SessionId,
        work: impl FnOnce(&mut SessionRecord, Now) -> Result<T, E> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, E>> {
        let delay = Duration::from_millis(self.delay.load(Ordering::SeqCst));
        let (clock, records, away) = (self.clock.clone(), self.records.clone(), self.away.clone());
        async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            if away.load(Ordering::SeqCst) {
                return Err(StoreError("away, as a test asked".to_owned()).into());
            }
            let mut records = records.lock().unwrap();
            let record = records.get_mut(&id).filter(|record| !record.is_over(clock.now()));
            work(record.ok_or(Gone::NoSession)?, clock.now())
        }
        .boxed()
    }

    pub(super) fn remove(&self, session: u8) {
        self.records.lock().unwrap().remove(&id(session));
    }

    /// A slot as it is kept.
    pub(super) fn presence_of(&self, slot: Slot) -> Presence {
        let records = self.records.lock().unwrap();
        let record = records.get(&id(MAIN)).unwrap();
        record.peer(slot.other(), self.clock.now())
    }

    /// What a peer is told of it.
    pub(super) fn state_of(&self, slot: Slot) -> PeerState {
        self.presence_of(slot).told.state
    }
}

impl SessionStore for Shelf {
    fn create(&self, _: NewSession) -> BoxFuture<'static, Result<Creation, StoreError>> {
        unreachable!("an actor makes no session")
    }

    fn lives(&self, _: SessionId) -> BoxFuture<'static, Result<bool, StoreError>> {
        unreachable!("an actor looks for no session")
    }

    fn view(
        &self,
        _: SessionId,
        _: InstanceId,
    ) -> BoxFuture<'static, Result<Option<SessionView>, StoreError>> {
        unreachable!("an actor views no session")
    }

    fn remove(&self, _: SessionId, _: InstanceId) -> BoxFuture<'static, Result<bool, StoreError>> {
        unreachable!("an actor removes no session")
    }

    fn bind(&self, id: SessionId, bind: Bind) -> BoxFuture<'static, Result<Bound, BindRefusal>> {
        assert!(
            !self.bind_panics.swap(false, Ordering::SeqCst),
            "a panic that a test asked for"
        );
        let way_back = Duration::from_millis(self.next_bind.swap(0, Ordering::SeqCst));
        let bound = self.work(id, move |record, now| Ok(record.bind(&bind, now)));
        async move {
            let bound: Result<_, Gone> = bound.await;
            if !way_back.is_zero() {
                tokio::time::sleep(way_back).await;
            }
            bound?
        }
        .boxed()
    }

    fn append(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        n: u64,
        content: Opaque,
    ) -> BoxFuture<'static, Result<Appended, Gone>> {
        assert!(
            !self.panics.swap(false, Ordering::SeqCst),
            "a panic that a test asked for"
        );
        let panics = self.panics_later.swap(false, Ordering::SeqCst);
        let loses_answer = self.loses_answer.swap(false, Ordering::SeqCst);
        let appended = self.work(id, move |record, _| record.append(slot, epoch, n, content));
        async move {
            assert!(!panics, "a panic that a test asked for");
            match (appended.await, loses_answer) {
                (_, true) => Err(StoreError("the answer was lost, as a test asked".to_owned()).into()),
                (appended, false) => appended,
            }
        }
        .boxed()
    }

    fn trim(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        seq: u64,
    ) -> BoxFuture<'static, Result<Trimmed, Gone>> {
        self.work(id, move |record, _| record.trim(slot, epoch, seq))
    }

    fn read(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        after: u64,
        bytes: usize,
    ) -> BoxFuture<'static, Result<Page, Gone>> {
        self.work(id, move |record, _| record.read(slot, epoch, after, bytes))
    }

    fn peer(&self, id: SessionId, slot: Slot) -> BoxFuture<'static, Result<Presence, Gone>> {
        let way_back = Duration::from_millis(self.next_look.swap(0, Ordering::SeqCst));
        let peer = self.work(id, move |record, now| Ok(record.peer(slot, now)));
        async move {
            let peer = peer.await;
            if !way_back.is_zero() {
                tokio::time::sleep(way_back).await;
            }
            peer
        }
        .boxed()
    }

    fn unbind(
        &self,
        id: SessionId,
        slot: Slot,
        epoch: u64,
        departure: Departure,
    ) -> BoxFuture<'static, Result<(), Gone>> {
        assert!(
            !self.unbind_panics.load(Ordering::SeqCst),
            "a panic that a test asked for"
        );
        self.work(id, move |record, now| record.unbind(slot, epoch, departure, now))
    }
}
