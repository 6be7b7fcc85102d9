//! Each rule by itself; `model.rs` throws all of them at once at a reference model.

use sovereign_relay_protocol::{
    limits::{
        MAILBOX_MESSAGES, NEW_CONNECTIONS_PER_MINUTE, RESUMES_PER_MINUTE, RETIRED_CONNECTIONS,
        SESSION_MESSAGES,
    },
    signal::{
        frame::{PeerPresence, PeerState},
        session::EndToEnd,
    },
};

use super::*;
use crate::session::port::{ConnectionHash, ENTRY_BYTES, Entry, Item};

mod arrivals;
mod messages;
mod model;
mod rules;

const BEGAN: Now = Now {
    mono: Duration::from_secs(1000),
    unix: UnixMillis(1_800_000_000_000),
};
const LIFE: Duration = Duration::from_secs(600);

/// A session and its time.
struct Bench {
    record: SessionRecord,
    now: Now,
}

impl Bench {
    fn new() -> Self {
        Self::of(&asked(1))
    }

    fn of(new: &NewSession) -> Self {
        Self::within(new, SessionRules::default())
    }

    fn within(new: &NewSession, rules: SessionRules) -> Self {
        Self {
            record: SessionRecord::new(new, rules, BEGAN),
            now: BEGAN,
        }
    }

    fn wait(&mut self, duration: Duration) {
        self.now = self.now.plus(duration);
    }

    fn try_bind(&mut self, bind: Bind) -> Result<Bound, BindRefusal> {
        self.record.bind(&bind, self.now)
    }

    fn bind(&mut self, bind: Bind) -> Bound {
        self.try_bind(bind).unwrap()
    }

    /// Both are there, each for the first time: their epochs.
    fn both(&mut self) -> (u64, u64) {
        (
            self.bind(hello(Slot::A, 1)).epoch,
            self.bind(hello(Slot::B, 2)).epoch,
        )
    }

    fn append(&mut self, from: Slot, epoch: u64, n: u64) -> Result<Appended, Gone> {
        self.record.append(from, epoch, n, text(&format!("{from:?}{n}")))
    }

    fn unbind(&mut self, slot: Slot, epoch: u64, departure: Departure) -> Result<(), Gone> {
        self.record.unbind(slot, epoch, departure, self.now)
    }

    /// Everything that waits for a slot.
    fn waiting(&mut self, slot: Slot, epoch: u64) -> Vec<Entry> {
        self.record.read(slot, epoch, 0, usize::MAX).unwrap().entries
    }

    /// Reads all that waits, and acknowledges it up to `seq`.
    fn process(&mut self, slot: Slot, epoch: u64, seq: u64) {
        self.waiting(slot, epoch);
        assert_eq!(self.record.trim(slot, epoch, seq).unwrap(), Trimmed::Trimmed);
    }

    /// What the peer of `slot` is told.
    fn seen(&self, slot: Slot) -> (PeerState, u32) {
        let PeerPresence { state, generation } = self.record.peer(slot.other(), self.now).told;
        (state, generation)
    }

    /// All that there is to know of the record.
    fn everything(&self) -> String {
        format!("{:?}", self.record)
    }
}

fn asked(instance: u8) -> NewSession {
    NewSession {
        id: SessionId::from_bytes([9; 16]),
        incarnation: Incarnation(77),
        instance: InstanceId::from_bytes([instance; 16]),
        is_rendezvous: false,
        settings: Settings {
            e2e: EndToEnd::Optional,
            turn: false,
        },
        life: LIFE,
    }
}

fn meeting(instance: u8) -> NewSession {
    NewSession {
        is_rendezvous: true,
        ..asked(instance)
    }
}

/// The first dial of a connection secret.
fn hello(slot: Slot, connection: u128) -> Bind {
    Bind {
        slot,
        incarnation: Incarnation(77),
        connection: ConnectionHash(connection),
        attempt: 1,
        last: 0,
    }
}

/// A later one.
fn again(slot: Slot, connection: u128, attempt: u64, last: u64) -> Bind {
    Bind {
        attempt,
        last,
        ..hello(slot, connection)
    }
}

fn text(content: &str) -> Opaque {
    Opaque::new(content)
}

/// `seq`, generation and content; a new page load has none.
fn plain(entries: &[Entry]) -> Vec<(u64, u32, Option<&str>)> {
    let plain = |entry: &'_ Entry| (entry.seq, entry.generation);
    entries
        .iter()
        .map(|entry| {
            let (seq, generation) = plain(entry);
            match &entry.item {
                Item::Message(content) => (seq, generation, Some(content.expose())),
                Item::NewLoad => (seq, generation, None),
            }
        })
        .collect()
}
