//! How many sockets there may be, by what they have shown: no ticket yet, a ticket, or the will to leave.
//!
//! ```text
//! handshake -> before `welcome` (knock) -> past it (enter) -> closing handshake (leave)
//!              the oldest makes room       a newcomer: 1013   the oldest makes room
//! ```
//!
//! Each part is bounded, for one address and in all. Together they take at most eight tenths of the public listener's
//! connections ([`DoorBounds`]), so that however many sockets come, there is a connection for a push. An instance needs
//! no bound of its own: it has at most 500 sessions of two slots, and a slot has one connection past its `welcome`.
//!
//! An address that showed too many bad tickets waits until its minute is over (1013, never a final code: neighbours
//! share addresses).

use metrics::counter;
use sovereign_relay_actors::{
    limiter::{Limiter, Rate, Room, WhenFull},
    now::Now,
};
use sovereign_relay_protocol::limits::{
    BAD_TICKETS_PER_MINUTE, SOCKETS_BEFORE_HELLO, SOCKETS_BEFORE_HELLO_PER_ADDRESS,
};

use super::{
    Guest,
    crowd::{Crowd, CrowdBounds, Stay},
    places::{Place, PlaceBounds, Places},
};

/// Addresses whose bad tickets are remembered, about 50 bytes each. Beyond, an address is not held back: its sockets
/// are bounded all the same.
const ROOM: Room = Room {
    keys: 100_000,
    when_full: WhenFull::Pass,
};

/// Of ten connections of the listener, how many sockets past their `welcome` may take.
const WELCOMED_TENTHS: usize = 6;
/// How many those before it may take, and those in their closing handshake as many again. What is left is HTTP's.
const CROWD_TENTHS: usize = 1;
/// An address has this part of the places past `welcome`, unless the operator says otherwise: enough for the thousands
/// behind a carrier's or a campus's address translation, and it takes four addresses to fill all. Behind a proxy
/// that is trusted, an address is the client's.
const ADDRESS_PART: u32 = 4;

/// How many sockets there may be, and how often one may show a bad ticket. As far as the listener's connections reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DoorBounds {
    /// Sockets of one address before their `welcome`, and as many in their closing handshake.
    pub sockets_per_address: u32,
    /// The same of all addresses.
    pub sockets: u32,
    /// Sockets of one address past their `welcome`; `None` = a quarter of all.
    pub welcomed_per_address: Option<u32>,
    /// The same of all addresses; `None` = as many as the connections allow.
    pub welcomed: Option<u32>,
    /// Bad tickets of one address in a minute.
    pub bad_tickets_per_minute: u32,
}

impl Default for DoorBounds {
    fn default() -> Self {
        Self {
            sockets_per_address: SOCKETS_BEFORE_HELLO_PER_ADDRESS,
            sockets: SOCKETS_BEFORE_HELLO,
            welcomed_per_address: None,
            welcomed: None,
            bad_tickets_per_minute: BAD_TICKETS_PER_MINUTE,
        }
    }
}

impl DoorBounds {
    /// How many sockets before their `welcome` that many connections allow.
    pub(crate) fn most_before_hello(connections: usize) -> u32 {
        tenths(connections, CROWD_TENTHS)
    }

    /// How many past it.
    pub(crate) fn most_welcomed(connections: usize) -> u32 {
        tenths(connections, WELCOMED_TENTHS)
    }

    /// As far as that many connections reach.
    pub(crate) fn within(self, connections: usize) -> Self {
        let places = self.places(connections);
        Self {
            sockets: self.crowd(connections).all,
            welcomed: Some(places.all),
            welcomed_per_address: Some(places.per_address),
            ..self
        }
    }

    fn crowd(&self, connections: usize) -> CrowdBounds {
        CrowdBounds {
            per_address: self.sockets_per_address,
            all: self.sockets.min(Self::most_before_hello(connections)),
        }
    }

    fn places(&self, connections: usize) -> PlaceBounds {
        let most = Self::most_welcomed(connections);
        let all = self.welcomed.map_or(most, |welcomed| welcomed.min(most));
        let quarter = all.div_ceil(ADDRESS_PART);
        PlaceBounds {
            per_address: self.welcomed_per_address.unwrap_or(quarter),
            all,
        }
    }
}

fn tenths(connections: usize, tenths: usize) -> u32 {
    let share = connections.saturating_mul(tenths) / 10;
    u32::try_from(share).unwrap_or(u32::MAX).max(1)
}

/// All sockets.
pub(crate) struct Door {
    knocking: Crowd,
    welcomed: Places,
    leaving: Crowd,
    bad_tickets: Limiter<u64>,
}

impl Door {
    /// Nobody yet. `connections`: how many the listener takes, those of HTTP included.
    pub(crate) fn new(bounds: DoorBounds, connections: usize) -> Self {
        Self {
            knocking: Crowd::new(bounds.crowd(connections)),
            welcomed: Places::new(bounds.places(connections)),
            leaving: Crowd::new(bounds.crowd(connections)),
            bad_tickets: Limiter::shared(Rate::per_minute(bounds.bad_tickets_per_minute), ROOM),
        }
    }

    /// A socket comes. Room is made for it if there is none.
    pub(crate) fn knock(&self, address: u64) -> Stay {
        self.knocking.join(address)
    }

    /// A socket has shown a ticket and is about to get a slot, if there is a place for it.
    pub(super) fn enter(&self, address: u64, guest: &Guest) -> Option<Place> {
        let place = self.welcomed.take(address, (guest.session, guest.slot));
        if let Err(full) = place {
            counter!("relay_signal_refused_sockets_total", "full" => full.as_str()).increment(1);
        }
        place.ok()
    }

    /// A socket begins its closing handshake. Room is made for it if there is none.
    pub(super) fn leave(&self, address: u64) -> Stay {
        self.leaving.join(address)
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

    /// Sockets before their `welcome`, for metrics.
    pub(crate) fn knocking(&self) -> usize {
        self.knocking.count()
    }

    /// Sockets past it, for metrics.
    pub(crate) fn welcomed(&self) -> u32 {
        self.welcomed.count()
    }

    /// Sockets in their closing handshake, for metrics.
    pub(crate) fn leaving(&self) -> usize {
        self.leaving.count()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use sovereign_relay_protocol::time::UnixMillis;

    use super::*;

    #[test]
    fn an_address_with_too_many_bad_tickets_waits_and_its_neighbour_does_not() {
        let bounds = DoorBounds {
            bad_tickets_per_minute: 2,
            ..DoorBounds::default()
        };
        let door = Door::new(bounds, 100);
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

    #[test]
    fn the_usual_bounds_fit_into_the_usual_connections_to_the_last_one() {
        let bounds = DoorBounds::default();
        let crowd = CrowdBounds {
            per_address: 100,
            all: 2000,
        };
        let places = PlaceBounds {
            per_address: 3000,
            all: 12_000,
        };
        assert_eq!((bounds.crowd(20_000), bounds.places(20_000)), (crowd, places));
    }

    proptest! {
        #[test]
        fn a_fifth_of_the_connections_is_left_for_http(
            connections in 100_usize..2_000_000,
            sockets in 1..u32::MAX,
            welcomed in proptest::option::of(1..u32::MAX),
        ) {
            let bounds = DoorBounds { sockets, welcomed, ..DoorBounds::default() };
            let crowds = 2 * u64::from(bounds.crowd(connections).all);
            let most = crowds + u64::from(bounds.places(connections).all);
            prop_assert!(most <= connections as u64 * 8 / 10, "{most} of {connections}");
        }
    }
}
