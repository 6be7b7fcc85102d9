//! A bounded crowd of sockets in which the newest always finds room: the one that has been in it longest is sent away.
//!
//! [`super::door`] has two: sockets before their `welcome`, and sockets in their closing handshake. In both, whoever
//! stays longest has the weakest claim. Invariant: no more than the bounds allow, of one address and in all.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// How many may be in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CrowdBounds {
    /// Of one address.
    pub(super) per_address: u32,
    /// Of all addresses.
    pub(super) all: u32,
}

/// Everybody in it.
pub(super) struct Crowd {
    bounds: CrowdBounds,
    members: Arc<Mutex<Members>>,
}

#[derive(Default)]
struct Members {
    last: u64,
    /// By age.
    all: BTreeMap<u64, Member>,
    of_address: HashMap<u64, BTreeSet<u64>>,
}

struct Member {
    address: u64,
    sent_away: Arc<Notify>,
}

/// A socket's place in a crowd, given back by dropping.
pub(crate) struct Stay {
    members: Arc<Mutex<Members>>,
    number: u64,
    sent_away: Arc<Notify>,
}

impl Crowd {
    /// Nobody yet.
    pub(super) fn new(bounds: CrowdBounds) -> Self {
        Self {
            bounds,
            members: Arc::default(),
        }
    }

    /// A socket comes. Room is made for it if there is none.
    pub(super) fn join(&self, address: u64) -> Stay {
        let mut members = lock(&self.members);
        if let Some(number) = members.too_many(address, self.bounds) {
            members.send_away(number);
        }
        let (number, sent_away) = members.add(address);
        drop(members);
        Stay {
            members: self.members.clone(),
            number,
            sent_away,
        }
    }

    /// How many are in it.
    pub(super) fn count(&self) -> usize {
        lock(&self.members).all.len()
    }
}

impl Stay {
    /// Waits until somebody newer needs the room. Cancel-safe.
    pub(crate) async fn sent_away(&self) {
        self.sent_away.notified().await;
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        lock(&self.members).remove(self.number);
    }
}

impl Members {
    /// Who has to leave before one more of this address comes.
    fn too_many(&self, address: u64, bounds: CrowdBounds) -> Option<u64> {
        let own = self
            .of_address
            .get(&address)
            .filter(|own| reaches(own.len(), bounds.per_address));
        if let Some(oldest) = own.and_then(BTreeSet::first) {
            return Some(*oldest);
        }
        let oldest = self.all.first_key_value();
        oldest
            .filter(|_| reaches(self.all.len(), bounds.all))
            .map(|(number, _)| *number)
    }

    fn add(&mut self, address: u64) -> (u64, Arc<Notify>) {
        self.last += 1;
        let sent_away = Arc::new(Notify::new());
        let member = Member {
            address,
            sent_away: sent_away.clone(),
        };
        self.all.insert(self.last, member);
        self.of_address.entry(address).or_default().insert(self.last);
        (self.last, sent_away)
    }

    fn send_away(&mut self, number: u64) {
        if let Some(member) = self.remove(number) {
            // Kept for it if it isn't waiting at this moment.
            member.sent_away.notify_one();
        }
    }

    fn remove(&mut self, number: u64) -> Option<Member> {
        let member = self.all.remove(&number)?;
        let own = self.of_address.get_mut(&member.address)?;
        own.remove(&number);
        if own.is_empty() {
            self.of_address.remove(&member.address);
        }
        Some(member)
    }
}

fn reaches(count: usize, most: u32) -> bool {
    u32::try_from(count).map_or(true, |count| count >= most)
}

fn lock(members: &Mutex<Members>) -> MutexGuard<'_, Members> {
    members.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const BOUNDS: CrowdBounds = CrowdBounds {
        per_address: 3,
        all: 5,
    };

    fn is_sent_away(stay: &Stay) -> bool {
        stay.sent_away().now_or_never().is_some()
    }

    #[test]
    fn the_oldest_of_a_crowded_address_makes_room_and_its_neighbours_stay() {
        let crowd = Crowd::new(BOUNDS);
        let other = crowd.join(2);
        let own: Vec<_> = (0..3).map(|_| crowd.join(1)).collect();
        assert!(!own.iter().any(is_sent_away));
        let newest = crowd.join(1);
        assert!(is_sent_away(&own[0]) && !is_sent_away(&own[1]));
        assert!(!is_sent_away(&other) && !is_sent_away(&newest));
        assert_eq!(crowd.count(), 4);
        drop((own, newest, other));
        assert_eq!(crowd.count(), 0);
        assert!(lock(&crowd.members).of_address.is_empty());
    }

    #[test]
    fn when_all_room_is_taken_the_oldest_of_all_makes_room() {
        let crowd = Crowd::new(BOUNDS);
        let members: Vec<_> = (0..5).map(|address| crowd.join(address)).collect();
        assert!(!members.iter().any(is_sent_away));
        let _newest = crowd.join(9_999_999);
        assert!(is_sent_away(&members[0]) && !is_sent_away(&members[1]));
        assert_eq!(crowd.count(), 5);
    }
}
