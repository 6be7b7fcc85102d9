use std::{
    sync::{
        Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use sovereign_relay_actors::session::port::{ConnectionHash, ENTRY_BYTES, Incarnation, Settings};
use sovereign_relay_protocol::{signal::session::EndToEnd, time::UnixMillis};

use super::*;
use crate::store::sessions::contract::{Opened, Passing, session_store_contract};

mod books;
mod bounds;

session_store_contract!(fresh);

async fn fresh() -> Opened {
    let clock = Arc::new(Hand::default());
    Opened {
        store: Arc::new(MemorySessions::new(
            SessionBounds::default(),
            SessionRules::default(),
            clock.clone(),
        )),
        time: clock,
    }
}

/// A clock that a test moves.
struct Hand(AtomicU64);

impl Default for Hand {
    fn default() -> Self {
        Self(AtomicU64::new(5_000))
    }
}

impl Hand {
    fn advance(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Now {
        let millis = self.0.load(Ordering::SeqCst);
        Now {
            mono: Duration::from_millis(millis),
            unix: UnixMillis(1_800_000_000_000 + millis),
        }
    }
}

impl Passing for Hand {
    fn pass(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.advance(time);
        ready(()).boxed()
    }
}

/// A store, its clock, and answers without waiting.
struct Bench {
    store: MemorySessions,
    clock: Arc<Hand>,
}

impl Bench {
    fn new(sessions_per_instance: u32, instance_bytes: usize, total_bytes: usize) -> Self {
        let clock = Arc::new(Hand::default());
        let bounds = SessionBounds {
            sessions_per_instance,
            instance_bytes,
            total_bytes,
        };
        Self {
            store: MemorySessions::new(bounds, SessionRules::default(), clock.clone()),
            clock,
        }
    }

    fn create(&self, new: NewSession) -> Creation {
        now(self.store.create(new)).unwrap()
    }

    /// A session of an instance, with a peer in slot a: its epoch.
    fn open(&self, session: u8, by: u8) -> u64 {
        assert!(matches!(self.create(asked(session, by)), Creation::Made(_)));
        self.bind(session, Slot::A, 1).unwrap().epoch
    }

    fn bind(&self, session: u8, slot: Slot, connection: u128) -> Result<Bound, BindRefusal> {
        let bind = Bind {
            slot,
            incarnation: Incarnation(1),
            connection: ConnectionHash(connection),
            attempt: 1,
            last: 0,
        };
        now(self.store.bind(id(session), bind))
    }

    /// What becomes of a message that counts so many bytes.
    fn append(&self, session: u8, epoch: u64, n: u64, bytes: usize) -> Appended {
        let content = Opaque::new("x".repeat(bytes - ENTRY_BYTES));
        now(self.store.append(id(session), Slot::A, epoch, n, content)).unwrap()
    }

    /// The peer in slot b reads all that waits, and acknowledges it up to `seq`.
    fn process(&self, session: u8, epoch: u64, seq: u64) {
        let (id, slot) = (id(session), Slot::B);
        now(self.store.read(id, slot, epoch, 0, usize::MAX)).unwrap();
        let trimmed = now(self.store.trim(id, slot, epoch, seq));
        assert_eq!(trimmed.unwrap(), Trimmed::Trimmed);
    }

    /// Sessions, bytes, and instances that the books know.
    fn kept(&self) -> (usize, usize, usize) {
        let snapshot = self.store.snapshot();
        (
            snapshot.sessions,
            snapshot.mailbox_bytes,
            self.store.usage.instances(),
        )
    }
}

/// What is in memory answers at once.
fn now<T>(answer: BoxFuture<'static, T>) -> T {
    answer.now_or_never().unwrap()
}

fn id(session: u8) -> SessionId {
    SessionId::from_bytes([session; 16])
}

fn instance(number: u8) -> InstanceId {
    InstanceId::from_bytes([number; 16])
}

fn asked(session: u8, by: u8) -> NewSession {
    NewSession {
        id: id(session),
        incarnation: Incarnation(1),
        instance: instance(by),
        is_rendezvous: false,
        settings: Settings {
            e2e: EndToEnd::Optional,
            turn: false,
        },
        life: Duration::from_secs(120),
    }
}

/// A clock that looks whether a session of the store is locked whenever it is read.
struct Watching {
    hand: Hand,
    store: Mutex<Weak<MemorySessions>>,
    looks: Mutex<Vec<bool>>,
}

impl Clock for Watching {
    fn now(&self) -> Now {
        if let Some(store) = self.store.lock().unwrap().upgrade() {
            let is_locked = store.sessions.try_get_mut(&id(1)).is_locked();
            self.looks.lock().unwrap().push(is_locked);
        }
        self.hand.now()
    }
}

#[test]
fn the_clock_is_read_when_nobody_else_can_change_the_session() {
    let clock = Arc::new(Watching {
        hand: Hand::default(),
        store: Mutex::default(),
        looks: Mutex::default(),
    });
    let (bounds, rules) = (SessionBounds::default(), SessionRules::default());
    let store = Arc::new(MemorySessions::new(bounds, rules, clock.clone()));
    *clock.store.lock().unwrap() = Arc::downgrade(&store);
    let bind = Bind {
        slot: Slot::A,
        incarnation: Incarnation(1),
        connection: ConnectionHash(1),
        attempt: 1,
        last: 0,
    };
    now(store.create(asked(1, 1))).unwrap();
    now(store.create(asked(1, 1))).unwrap();
    let epoch = now(store.bind(id(1), bind)).unwrap().epoch;
    now(store.append(id(1), Slot::A, epoch, 1, Opaque::new("hello"))).unwrap();
    now(store.peer(id(1), Slot::B)).unwrap();
    now(store.view(id(1), instance(1))).unwrap();
    now(store.unbind(id(1), Slot::A, epoch, Departure::Bye)).unwrap();
    assert_eq!(*clock.looks.lock().unwrap(), [true; 7]);
}
