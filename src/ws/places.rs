//! The places of connections past their `welcome`, in all and for each address.
//!
//! Nobody is sent away for a newcomer here: whoever has a place has a slot in a session. Taken by [`super::door`] before
//! a connection gets its slot, so that one that finds no place replaces nobody. [`crate::http`] has places of its own for
//! all public connections of an address.
//!
//! A slot that has a place here may take a second one beyond the bounds: whoever comes back takes over from a connection
//! that ends within moments, and one whose network changed must not wait for the old one's silence to be noticed. An
//! address is exceeded by its own slots alone.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sovereign_relay_protocol::signal::id::{SessionId, Slot};

/// How many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlaceBounds {
    /// Of one address.
    pub(crate) per_address: u32,
    /// Of all addresses.
    pub(crate) all: u32,
}

/// All places.
pub(crate) struct Places {
    bounds: PlaceBounds,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Default, Debug)]
struct Taken {
    all: u32,
    of_address: HashMap<u64, u32>,
    /// The addresses of a slot's places. There are two while one connection takes over from another.
    of_slot: HashMap<Holder, Vec<u64>>,
}

/// Whose place it is.
type Holder = (SessionId, Slot);

/// A place, given back by dropping.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<Mutex<Taken>>,
    address: u64,
    holder: Option<Holder>,
}

/// Why there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Full {
    /// The address has all of its places.
    Address,
    /// All are taken.
    All,
}

impl Full {
    /// As a label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::All => "all",
        }
    }
}

impl Places {
    /// All free.
    pub(crate) fn new(bounds: PlaceBounds) -> Self {
        Self {
            bounds,
            taken: Arc::default(),
        }
    }

    /// Takes one, if there is one, for a connection of a slot.
    pub(super) fn take(&self, address: u64, holder: Holder) -> Result<Place, Full> {
        self.take_for(address, Some(holder))
    }

    /// Takes one, if there is one, for any other connection.
    pub(crate) fn take_any(&self, address: u64) -> Result<Place, Full> {
        self.take_for(address, None)
    }

    fn take_for(&self, address: u64, holder: Option<Holder>) -> Result<Place, Full> {
        let mut taken = lock(&self.taken);
        taken.judge(address, holder, self.bounds)?;
        taken.add(address, holder);
        drop(taken);
        Ok(Place {
            taken: self.taken.clone(),
            address,
            holder,
        })
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> u32 {
        lock(&self.taken).all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.taken).remove(self.address, self.holder);
    }
}

impl Taken {
    fn judge(&self, address: u64, holder: Option<Holder>, bounds: PlaceBounds) -> Result<(), Full> {
        let own = self.of_address.get(&address).copied().unwrap_or(0);
        let held = holder
            .and_then(|holder| self.of_slot.get(&holder))
            .map(Vec::as_slice);
        let (takes_over, from_here) = match held {
            Some(&[held]) => (true, held == address),
            Some(_) | None => (false, false),
        };
        if own >= bounds.per_address && !from_here {
            return Err(Full::Address);
        }
        if self.all >= bounds.all && !takes_over {
            return Err(Full::All);
        }
        Ok(())
    }

    fn add(&mut self, address: u64, holder: Option<Holder>) {
        self.all += 1;
        *self.of_address.entry(address).or_default() += 1;
        if let Some(holder) = holder {
            self.of_slot.entry(holder).or_default().push(address);
        }
    }

    fn remove(&mut self, address: u64, holder: Option<Holder>) {
        self.all = self.all.saturating_sub(1);
        if let Some(own) = self.of_address.get_mut(&address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.of_address.remove(&address);
            }
        }
        let Some(holder) = holder else { return };
        if let Some(held) = self.of_slot.get_mut(&holder) {
            if let Some(place) = held.iter().position(|&held| held == address) {
                held.swap_remove(place);
            }
            if held.is_empty() {
                self.of_slot.remove(&holder);
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: PlaceBounds = PlaceBounds {
        per_address: 2,
        all: 3,
    };

    fn slot(number: u8) -> Holder {
        (SessionId::from_bytes([number; 16]), Slot::A)
    }

    fn assert_all_free(places: &Places) {
        assert_eq!(places.count(), 0);
        let taken = lock(&places.taken);
        assert!(taken.of_address.is_empty() && taken.of_slot.is_empty());
    }

    #[test]
    fn an_address_has_its_places_and_all_addresses_have_theirs_and_each_comes_back() {
        let places = Places::new(BOUNDS);
        let own = [places.take(1, slot(1)).unwrap(), places.take(1, slot(2)).unwrap()];
        assert_eq!(places.take(1, slot(3)).unwrap_err(), Full::Address);
        let neighbour = places.take(2, slot(4)).unwrap();
        assert_eq!(places.take(2, slot(5)).unwrap_err(), Full::All);
        assert_eq!(places.count(), 3);
        drop(neighbour);
        assert_eq!(places.take(1, slot(3)).unwrap_err(), Full::Address);
        assert!(places.take(3, slot(6)).is_ok());
        drop(own);
        assert_all_free(&places);
    }

    #[test]
    fn a_slot_comes_back_where_all_is_taken_and_not_a_third_time_while_both_are_there() {
        let places = Places::new(BOUNDS);
        let old = places.take(1, slot(1)).unwrap();
        let other = places.take(1, slot(2)).unwrap();
        let neighbour = places.take(2, slot(3)).unwrap();
        let new = places.take(1, slot(1)).unwrap();
        assert_eq!(places.take(1, slot(1)).unwrap_err(), Full::Address);
        assert_eq!(places.take(3, slot(1)).unwrap_err(), Full::All);
        drop(old);
        let newer = places.take(1, slot(1)).unwrap();
        drop((new, newer, other, neighbour));
        assert_all_free(&places);
    }

    #[test]
    fn a_slot_that_moves_finds_a_place_where_all_are_taken_but_none_at_an_address_that_has_its_own() {
        let places = Places::new(BOUNDS);
        let moving = places.take(2, slot(1)).unwrap();
        let full = [places.take(1, slot(2)).unwrap(), places.take(1, slot(3)).unwrap()];
        assert_eq!(places.take(1, slot(1)).unwrap_err(), Full::Address);
        let moved = places.take(3, slot(1)).unwrap();
        drop((moving, moved, full));
        assert_all_free(&places);
    }
}
