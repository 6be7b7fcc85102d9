pub(super) use std::{sync::Arc, time::Duration};

use std::sync::atomic::Ordering;

use sovereign_relay_protocol::{
    id::InstanceId,
    signal::{
        close::CloseCode,
        frame::{Opaque, PeerState},
        id::{SessionId, Slot},
        session::EndToEnd,
    },
};
use tokio::time::Instant;

use super::shelf::{PausedClock, Shelf};
use crate::{
    ports::Clock,
    session::{
        Said,
        link::{Link, Words},
        port::*,
        record::SessionRecord,
        registry::{Held, Sessions},
        rules::SessionRules,
    },
};

/// The session of most tests.
pub(super) const MAIN: u8 = 1;
/// It lives so long.
pub(super) const LIFE: Duration = Duration::from_secs(600);

pub(super) struct Bench {
    pub(super) sessions: Sessions,
    pub(super) shelf: Arc<Shelf>,
    began: Instant,
}

/// A client's connection.
pub(super) struct Peer {
    pub(super) bound: Bound,
    pub(super) held: Held,
    pub(super) link: Arc<Link>,
}

impl Bench {
    #[allow(clippy::disallowed_methods, reason = "the paused clock")]
    pub(super) fn new() -> Self {
        let began = Instant::now();
        let clock = Arc::new(PausedClock(began));
        let shelf = Arc::new(Shelf::new(clock.clone()));
        let bench = Self {
            sessions: Sessions::start_here(shelf.clone(), clock),
            shelf,
            began,
        };
        bench.keep(MAIN);
        bench
    }

    /// Makes a session where instances 1 and 2 meet.
    pub(super) fn keep(&self, session: u8) {
        let mut record =
            SessionRecord::new(&new(session, 1), SessionRules::default(), self.shelf.clock.now());
        assert!(matches!(record.join(&new(session, 2)), Creation::Joined(_)));
        self.shelf.records.lock().unwrap().insert(id(session), record);
    }

    pub(super) async fn try_dial(&self, bind: Bind) -> Result<Peer, BindRefusal> {
        let link = Arc::new(Link::default());
        let (bound, held) = self.sessions.dial(id(MAIN), bind, &link).await?;
        Ok(Peer { bound, held, link })
    }

    pub(super) async fn dial(&self, bind: Bind) -> Peer {
        self.try_dial(bind).await.unwrap()
    }

    pub(super) async fn dial_to(&self, session: u8, bind: Bind) -> Peer {
        let link = Arc::new(Link::default());
        let (bound, held) = self.sessions.dial(id(session), bind, &link).await.unwrap();
        Peer { bound, held, link }
    }

    /// Both peers, each of whom knows that the other is there.
    pub(super) async fn both(&self) -> (Peer, Peer) {
        let a = self.dial(hello(Slot::A, 1)).await;
        let b = self.dial(hello(Slot::B, 2)).await;
        a.sees_next(PeerState::Online).await;
        assert_eq!(b.bound.peer.told.state, PeerState::Online);
        (a, b)
    }

    /// Somebody gets a slot by way of another replica.
    pub(super) fn bind_elsewhere(&self, bind: Bind) {
        let mut records = self.shelf.records.lock().unwrap();
        let record = records.get_mut(&id(MAIN)).unwrap();
        record.bind(&bind, self.shelf.clock.now()).unwrap();
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        self.shelf.clock.clone()
    }

    pub(super) fn away(&self, away: bool) {
        self.shelf.away.store(away, Ordering::SeqCst);
    }

    /// The store takes so long for each answer.
    pub(super) fn slow(&self, time: Duration) {
        self.shelf.delay.store(time.as_millis() as u64, Ordering::SeqCst);
    }

    /// Whole seconds of the test so far.
    pub(super) fn seconds(&self) -> u64 {
        self.began.elapsed().as_secs()
    }

    /// Waits until no actor is alive.
    pub(super) async fn deserted(&self) {
        while self.sessions.alive() > 0 {
            pass(Duration::from_millis(100)).await;
        }
    }
}

impl Peer {
    /// What it hears until something is as a test waits for it.
    pub(super) async fn hears(&self, is_it: impl Fn(&Words) -> bool) -> Words {
        loop {
            let words = self.link.take();
            if is_it(&words) {
                return words;
            }
            self.link.news().await;
        }
    }

    /// Waits until it is told that its peer is so, now.
    pub(super) async fn sees_next(&self, state: PeerState) {
        self.hears(|words| words.peer.is_some_and(|peer| peer.state == state))
            .await;
    }

    /// Every state of its peer that it hears of in some time.
    pub(super) async fn watches(&self, time: Duration) -> Vec<PeerState> {
        let mut states = Vec::new();
        let watching = async {
            loop {
                states.extend(self.link.take().peer.map(|peer| peer.state));
                self.link.news().await;
            }
        };
        let _: Result<(), _> = tokio::time::timeout(time, watching).await;
        states.dedup();
        states
    }

    pub(super) async fn closed(&self) -> CloseCode {
        self.hears(|words| words.close.is_some()).await.close.unwrap()
    }

    /// Hands a message over and hears what became of it.
    pub(super) async fn says(&self, n: u64) -> Words {
        self.held.submit(message(n)).await.unwrap();
        self.hears(|words| words.ack.is_some() || words.refusal.is_some())
            .await
    }

    /// `seq` and content of what waits; a new page load has none.
    pub(super) async fn mail(&self) -> Vec<(u64, Option<String>)> {
        let entries = self.held.read(0, usize::MAX).await.unwrap().entries;
        let content = |item| match item {
            Item::Message(content) => Some(Opaque::expose(&content).to_owned()),
            Item::NewLoad => None,
        };
        entries
            .into_iter()
            .map(|entry| (entry.seq, content(entry.item)))
            .collect()
    }
}

/// Runs a test inside an actix system whose clock goes on when everybody waits.
pub(super) fn run<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap()
    };
    actix::System::with_tokio_rt(runtime).block_on(async {
        tokio::time::timeout(Duration::from_secs(24 * 3600), test())
            .await
            .expect("the test hangs")
    });
}

/// Lets time pass, and everybody act in it.
pub(super) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

pub(super) fn id(session: u8) -> SessionId {
    SessionId::from_bytes([session; 16])
}

pub(super) fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn new(session: u8, by: u8) -> NewSession {
    NewSession {
        id: id(session),
        incarnation: Incarnation(1),
        instance: instance(by),
        is_rendezvous: true,
        settings: Settings {
            e2e: EndToEnd::Optional,
            turn: false,
        },
        life: LIFE,
    }
}

pub(super) fn hello(slot: Slot, connection: u128) -> Bind {
    again(slot, connection, 1)
}

pub(super) fn again(slot: Slot, connection: u128, attempt: u64) -> Bind {
    Bind {
        slot,
        incarnation: Incarnation(1),
        connection: ConnectionHash(connection),
        attempt,
        last: 0,
    }
}

pub(super) fn message(n: u64) -> Said {
    Said::Message {
        n,
        content: Opaque::new(format!("message {n}")),
    }
}
