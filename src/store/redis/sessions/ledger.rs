//! How many bytes instances let wait, over all replicas.
//!
//! A session's own slot can't hold sums over sessions, so each replica keeps the difference that it made to each
//! mailbox (stored less forgotten), tells the others once a second, and adds what they told. What a replica knows of a
//! mailbox it forgets when the session's time is over, as do all: so the sums are right whoever stored and whoever
//! forgot, and at most a second old.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sovereign_relay_protocol::{
    id::InstanceId,
    signal::id::{SessionId, Slot},
};

use crate::store::sessions::SessionBounds;

/// Changes that are known before their moment, at most 5 s ahead. More are made at once.
const LATER: usize = 65_536;

/// The books of this replica.
pub(super) struct Ledger {
    bounds: SessionBounds,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    mailboxes: HashMap<(SessionId, Slot), Difference>,
    own: HashMap<InstanceId, i64>,
    others: HashMap<InstanceId, i64>,
    later: Vec<Later>,
}

struct Later {
    at: Duration,
    mailbox: (SessionId, Slot),
    difference: Difference,
}

struct Difference {
    instance: InstanceId,
    bytes: i64,
    ends: Duration,
}

impl Ledger {
    pub(super) fn new(bounds: SessionBounds) -> Self {
        Self {
            bounds,
            books: Mutex::default(),
        }
    }

    /// So many bytes of an instance wait more, or less, in a mailbox, at most until `ends`.
    pub(super) fn note(&self, mailbox: (SessionId, Slot), instance: InstanceId, bytes: i64, ends: Duration) {
        let difference = Difference {
            instance,
            bytes,
            ends,
        };
        self.books().note(mailbox, difference);
    }

    /// The same, from a moment on: when two goodbyes end a session early, or would have.
    pub(super) fn note_at(
        &self,
        at: Duration,
        mailbox: (SessionId, Slot),
        instance: InstanceId,
        bytes: i64,
        ends: Duration,
    ) {
        let difference = Difference {
            instance,
            bytes,
            ends,
        };
        let mut books = self.books();
        if bytes != 0 && books.later.len() < LATER {
            books.later.push(Later {
                at,
                mailbox,
                difference,
            });
        } else {
            books.note(mailbox, difference);
        }
    }

    /// Notes what is due, and forgets what is over.
    pub(super) fn clean(&self, now: Duration) {
        let mut books = self.books();
        let due: Vec<_> = books.later.extract_if(.., |later| later.at <= now).collect();
        for later in due {
            books.note(later.mailbox, later.difference);
        }
        let Books { mailboxes, own, .. } = &mut *books;
        mailboxes.retain(|_, difference| {
            let lives = difference.ends > now;
            if !lives {
                change(own, difference.instance, -difference.bytes);
            }
            lives
        });
        if mailboxes.capacity() > mailboxes.len().saturating_mul(4) {
            mailboxes.shrink_to_fit();
        }
    }

    /// What the others are told.
    pub(super) fn report(&self) -> String {
        let mut text = String::new();
        for (instance, bytes) in &self.books().own {
            // Writing to a text can't fail.
            let _ = write!(text, "{instance}:{bytes},");
        }
        text
    }

    /// What the others told. A part that is not understood is not counted.
    pub(super) fn hear<'a>(&self, reports: impl IntoIterator<Item = &'a str>) {
        let mut others = HashMap::new();
        let parts = reports.into_iter().flat_map(|report| report.split(','));
        for (instance, bytes) in parts.filter_map(|part| part.split_once(':')) {
            if let (Some(instance), Ok(bytes)) = (InstanceId::parse(instance), bytes.parse()) {
                change(&mut others, instance, bytes);
            }
        }
        self.books().others = others;
    }

    /// Whether an instance may let so many bytes more wait. When all is full, those under an equal share still may,
    /// until a quarter more is full too.
    pub(super) fn has_room(&self, instance: InstanceId, bytes: usize) -> bool {
        let books = self.books();
        let own = books.of(instance).saturating_add(bytes);
        if own > self.bounds.instance_bytes {
            return false;
        }
        let total = books.total().saturating_add(bytes);
        let most = self.bounds.total_bytes;
        let equal_share = most / books.instances().max(1);
        total <= most || (total <= most.saturating_add(most / 4) && own <= equal_share)
    }

    /// Whether all mailboxes together hold as much as they may.
    pub(super) fn is_full(&self) -> bool {
        self.total() >= self.bounds.total_bytes
    }

    /// Bytes in all mailboxes.
    pub(super) fn total(&self) -> usize {
        self.books().total()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn note(&mut self, mailbox: (SessionId, Slot), new: Difference) {
        let Difference {
            instance,
            bytes,
            ends,
        } = new;
        if bytes == 0 {
            return;
        }
        let difference = self.mailboxes.entry(mailbox).or_insert(Difference {
            instance,
            bytes: 0,
            ends,
        });
        difference.bytes += bytes;
        difference.ends = difference.ends.max(ends);
        change(&mut self.own, instance, bytes);
    }

    fn of(&self, instance: InstanceId) -> usize {
        let of = |sums: &HashMap<_, i64>| sums.get(&instance).copied().unwrap_or(0);
        usize::try_from(of(&self.own).saturating_add(of(&self.others))).unwrap_or(0)
    }

    fn total(&self) -> usize {
        let total: i64 = self.own.values().chain(self.others.values()).sum();
        usize::try_from(total).unwrap_or(0)
    }

    fn instances(&self) -> usize {
        let elsewhere = self
            .others
            .keys()
            .filter(|instance| !self.own.contains_key(instance));
        self.own.len() + elsewhere.count()
    }
}

/// A sum of zero takes no place.
fn change(sums: &mut HashMap<InstanceId, i64>, instance: InstanceId, bytes: i64) {
    let sum = sums.entry(instance).or_default();
    *sum = sum.saturating_add(bytes);
    if *sum == 0 {
        sums.remove(&instance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Duration = Duration::from_secs(10);

    fn ledger() -> Ledger {
        Ledger::new(SessionBounds {
            sessions_per_instance: 1,
            instance_bytes: 500,
            total_bytes: 1000,
        })
    }

    fn instance(number: u8) -> InstanceId {
        InstanceId::from_bytes([number; 16])
    }

    fn mailbox(number: u8) -> (SessionId, Slot) {
        (SessionId::from_bytes([number; 16]), Slot::A)
    }

    fn exchange(one: &Ledger, other: &Ledger) {
        one.hear([other.report().as_str()]);
        other.hear([one.report().as_str()]);
    }

    #[test]
    fn what_one_replica_stores_and_another_forgets_is_nothing_on_both() {
        let (one, other) = (ledger(), ledger());
        one.note(mailbox(1), instance(1), 400, END);
        exchange(&one, &other);
        assert_eq!((one.total(), other.total()), (400, 400));
        assert!(!other.has_room(instance(1), 101) && other.has_room(instance(1), 100));
        other.note(mailbox(1), instance(1), -400, END);
        exchange(&one, &other);
        assert_eq!((one.total(), other.total()), (0, 0));
        assert!(one.has_room(instance(1), 500));
    }

    #[test]
    fn what_is_over_counts_no_longer() {
        let ledger = ledger();
        ledger.note(mailbox(1), instance(1), 400, END);
        ledger.note(mailbox(2), instance(1), 100, END * 2);
        ledger.clean(END - Duration::from_millis(1));
        assert_eq!(ledger.total(), 500);
        ledger.clean(END);
        assert_eq!(ledger.total(), 100);
        ledger.clean(END * 2);
        assert_eq!((ledger.total(), ledger.report()), (0, String::new()));
    }

    #[test]
    fn when_all_is_full_the_heaviest_are_refused_first() {
        let ledger = ledger();
        ledger.note(mailbox(1), instance(1), 500, END);
        ledger.hear([
            format!("{}:450,{}:50", instance(2), instance(3)).as_str(),
            "nonsense:,x:1,",
        ]);
        assert!(ledger.is_full());
        assert!(!ledger.has_room(instance(2), 1) && ledger.has_room(instance(3), 250));
        assert!(!ledger.has_room(instance(3), 251), "the hard bound");
    }
}
