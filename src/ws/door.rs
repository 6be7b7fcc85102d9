//! Who may stand before the door: sockets that have not said a valid `hello` yet.
//!
//! At most so many from one address and in all as [`DoorBounds`] says. When it is full, the one that has been silent longest is sent away
//! (4508) to make room, so that a crowd of idle sockets can't keep real peers out. An address that showed too many bad
//! tickets waits until its minute is over (1013, never a final code: neighbours share addresses).

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sovereign_relay_actors::{
    limiter::{Limiter, Rate, Room, WhenFull},
    now::Now,
};
use sovereign_relay_protocol::limits::{
    BAD_TICKETS_PER_MINUTE, SOCKETS_BEFORE_HELLO, SOCKETS_BEFORE_HELLO_PER_ADDRESS,
};
use tokio::sync::Notify;

/// Addresses whose bad tickets are remembered, about 50 bytes each. Beyond, an address is not held back: its sockets
/// are bounded all the same.
const ROOM: Room = Room {
    keys: 100_000,
    when_full: WhenFull::Pass,
};

/// How many may stand before the door, and how often one may show a bad ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoorBounds {
    /// Sockets of one address before their `welcome`.
    pub sockets_per_address: u32,
    /// Sockets of all addresses before their `welcome`.
    pub sockets: u32,
    /// Bad tickets of one address in a minute.
    pub bad_tickets_per_minute: u32,
}

impl Default for DoorBounds {
    fn default() -> Self {
        Self {
            sockets_per_address: SOCKETS_BEFORE_HELLO_PER_ADDRESS,
            sockets: SOCKETS_BEFORE_HELLO,
            bad_tickets_per_minute: BAD_TICKETS_PER_MINUTE,
        }
    }
}

/// Everybody before the door.
pub(crate) struct Door {
    bounds: DoorBounds,
    crowd: Arc<Mutex<Crowd>>,
    bad_tickets: Limiter<u64>,
}

#[derive(Default)]
struct Crowd {
    last: u64,
    /// By age.
    all: BTreeMap<u64, Knocking>,
    of_address: HashMap<u64, BTreeMap<u64, ()>>,
}

struct Knocking {
    address: u64,
    sent_away: Arc<Notify>,
}

/// A socket's place before the door, given back by dropping.
pub(crate) struct Knock {
    crowd: Arc<Mutex<Crowd>>,
    number: u64,
    sent_away: Arc<Notify>,
}

impl Door {
    /// Nobody yet.
    pub(crate) fn new(bounds: DoorBounds) -> Self {
        Self {
            bounds,
            crowd: Arc::default(),
            bad_tickets: Limiter::shared(Rate::per_minute(bounds.bad_tickets_per_minute), ROOM),
        }
    }

    /// A socket comes. Room is made for it if there is none.
    pub(crate) fn knock(&self, address: u64) -> Knock {
        let mut crowd = lock(&self.crowd);
        let own_oldest = crowd
            .of_address
            .get(&address)
            .filter(|own| reaches(own.len(), self.bounds.sockets_per_address))
            .and_then(|own| own.first_key_value())
            .map(|(number, ())| *number);
        let oldest = crowd.all.first_key_value().map(|(number, _)| *number);
        if let Some(number) = own_oldest.or(oldest.filter(|_| reaches(crowd.all.len(), self.bounds.sockets)))
        {
            crowd.send_away(number);
        }
        let (number, sent_away) = crowd.add(address);
        drop(crowd);
        Knock {
            crowd: self.crowd.clone(),
            number,
            sent_away,
        }
    }

    /// Whether an address has shown too many bad tickets.
    pub(crate) fn is_barred(&self, address: u64, now: Now) -> bool {
        self.bad_tickets.check(&address, now.mono).is_err()
    }

    /// An address showed a bad ticket.
    pub(crate) fn on_bad_ticket(&self, address: u64, now: Now) {
        // One that is barred already had its socket open before; it is closed all the same.
        let _ = self.bad_tickets.take(&address, now.mono);
    }

    /// Forgets addresses whose budgets are whole again. Called once a minute.
    pub(crate) fn clean(&self, now: Now) {
        self.bad_tickets.clean(now.mono);
    }

    /// Sockets before the door, for metrics.
    pub(crate) fn count(&self) -> usize {
        lock(&self.crowd).all.len()
    }
}

impl Knock {
    /// Waits until somebody newer needs the room. Cancel-safe.
    pub(crate) async fn sent_away(&self) {
        self.sent_away.notified().await;
    }
}

impl Drop for Knock {
    fn drop(&mut self) {
        lock(&self.crowd).remove(self.number);
    }
}

impl Crowd {
    fn add(&mut self, address: u64) -> (u64, Arc<Notify>) {
        self.last += 1;
        let sent_away = Arc::new(Notify::new());
        let knocking = Knocking {
            address,
            sent_away: sent_away.clone(),
        };
        self.all.insert(self.last, knocking);
        self.of_address.entry(address).or_default().insert(self.last, ());
        (self.last, sent_away)
    }

    fn send_away(&mut self, number: u64) {
        if let Some(knocking) = self.remove(number) {
            // Kept for it if it isn't waiting at this moment.
            knocking.sent_away.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Knocking> {
        let knocking = self.all.remove(&number)?;
        let own = self.of_address.get_mut(&knocking.address)?;
        own.remove(&number);
        if own.is_empty() {
            self.of_address.remove(&knocking.address);
        }
        Some(knocking)
    }
}

fn reaches(count: usize, most: u32) -> bool {
    u32::try_from(count).map_or(true, |count| count >= most)
}

fn lock(crowd: &Mutex<Crowd>) -> MutexGuard<'_, Crowd> {
    crowd.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use sovereign_relay_protocol::time::UnixMillis;

    use super::*;

    const BOUNDS: DoorBounds = DoorBounds {
        sockets_per_address: 3,
        sockets: 5,
        bad_tickets_per_minute: 2,
    };

    fn is_sent_away(knock: &Knock) -> bool {
        knock.sent_away().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_of_a_crowded_address_makes_room_and_its_neighbours_stay() {
        let door = Door::new(BOUNDS);
        let other = door.knock(2);
        let own: Vec<_> = (0..3).map(|_| door.knock(1)).collect();
        assert!(!own.iter().any(is_sent_away));
        let newest = door.knock(1);
        assert!(is_sent_away(&own[0]) && !is_sent_away(&own[1]));
        assert!(!is_sent_away(&other) && !is_sent_away(&newest));
        assert_eq!(door.count(), 4);
        drop((own, newest, other));
        assert_eq!(door.count(), 0);
        assert!(lock(&door.crowd).of_address.is_empty());
    }

    #[test]
    fn when_all_room_is_taken_the_oldest_of_all_makes_room() {
        let door = Door::new(BOUNDS);
        let crowd: Vec<_> = (0..5).map(|address| door.knock(address)).collect();
        assert!(!crowd.iter().any(is_sent_away));
        let _newest = door.knock(9_999_999);
        assert!(is_sent_away(&crowd[0]) && !is_sent_away(&crowd[1]));
        assert_eq!(door.count(), 5);
    }

    #[test]
    fn an_address_with_too_many_bad_tickets_waits_and_its_neighbour_does_not() {
        let door = Door::new(BOUNDS);
        let now = Now {
            mono: Duration::from_secs(100),
            unix: UnixMillis(0),
        };
        for _ in 0..2 {
            assert!(!door.is_barred(1, now));
            door.on_bad_ticket(1, now);
        }
        assert!(door.is_barred(1, now) && !door.is_barred(2, now));
        let later = now.plus(Duration::from_secs(60));
        assert!(!door.is_barred(1, later));
        door.clean(later);
        assert_eq!(door.bad_tickets.keys(), 0);
    }
}
