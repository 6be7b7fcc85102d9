//! The places of connections past their `welcome`, in all and for each address.
//!
//! Nobody is sent away for a newcomer here: whoever has a place has a slot in a session. Taken by [`super::door`] before
//! a connection gets its slot, so that one that finds no place replaces nobody. [`crate::http`] has places of its own for
//! all public connections of an address.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

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
}

/// A place, given back by dropping.
#[derive(Debug)]
pub(crate) struct Place {
    taken: Arc<Mutex<Taken>>,
    address: u64,
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

    /// Takes one, if there is one.
    pub(crate) fn take(&self, address: u64) -> Result<Place, Full> {
        let mut taken = lock(&self.taken);
        let own = taken.of_address.get(&address).copied().unwrap_or(0);
        if own >= self.bounds.per_address {
            return Err(Full::Address);
        }
        if taken.all >= self.bounds.all {
            return Err(Full::All);
        }
        taken.all += 1;
        taken.of_address.insert(address, own + 1);
        drop(taken);
        Ok(Place {
            taken: self.taken.clone(),
            address,
        })
    }

    /// How many are taken.
    pub(crate) fn count(&self) -> u32 {
        lock(&self.taken).all
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.all = taken.all.saturating_sub(1);
        if let Some(own) = taken.of_address.get_mut(&self.address) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                taken.of_address.remove(&self.address);
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

    #[test]
    fn an_address_has_its_places_and_all_addresses_have_theirs_and_each_comes_back() {
        let places = Places::new(PlaceBounds {
            per_address: 2,
            all: 3,
        });
        let own = [places.take(1).unwrap(), places.take(1).unwrap()];
        assert_eq!(places.take(1).unwrap_err(), Full::Address);
        let neighbour = places.take(2).unwrap();
        assert_eq!(places.take(2).unwrap_err(), Full::All);
        assert_eq!(places.count(), 3);
        drop(neighbour);
        assert_eq!(places.take(1).unwrap_err(), Full::Address);
        assert!(places.take(3).is_ok());
        drop(own);
        assert_eq!(places.count(), 0);
        assert!(lock(&places.taken).of_address.is_empty());
    }
}
