//! When each slot was last given credentials, so that one that comes back soon is given the same again.
//!
//! Called by [`super::Turn`]. Credentials follow from their slot and their moment alone: to remember the moment is enough.
//! Invariant: a slot takes from its instance's budget once in [`PERIOD`], however often it dials; if it took more, a
//! guest of one session could take all that its host has for the others.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::Duration,
};

use sovereign_relay_actors::now::Now;
use sovereign_relay_protocol::{
    signal::id::{SessionId, Slot},
    time::UnixMillis,
};

/// How long a slot is given the same: as long as a connection waits between two `ice`. It costs the credentials a
/// twentieth of their life.
pub(super) const PERIOD: Duration = Duration::from_secs(30);
/// Slots remembered, some 40 bytes each. Beyond, a slot that is not among them takes from the budget each time.
const ROOM: usize = 100_000;

type Key = (SessionId, Slot);

/// The moments of the last [`PERIOD`].
#[derive(Default)]
pub(super) struct Recent {
    moments: HashMap<Key, Now>,
}

impl Recent {
    /// The moment of a slot's credentials: the last one if it is recent, else now, if `take` grants that.
    pub(super) fn moment<E>(
        &mut self,
        session: SessionId,
        slot: Slot,
        now: Now,
        take: impl FnOnce() -> Result<(), E>,
    ) -> Result<UnixMillis, E> {
        let has_room = self.moments.len() < ROOM;
        match self.moments.entry((session, slot)) {
            Entry::Occupied(mut known) => {
                if !is_recent(*known.get(), now) {
                    take()?;
                    known.insert(now);
                }
                Ok(known.get().unix)
            }
            Entry::Vacant(place) => {
                take()?;
                if has_room {
                    place.insert(now);
                }
                Ok(now.unix)
            }
        }
    }

    /// Whether a slot was given credentials lately.
    pub(super) fn knows(&self, session: SessionId, slot: Slot, now: Now) -> bool {
        let known = self.moments.get(&(session, slot));
        known.is_some_and(|moment| is_recent(*moment, now))
    }

    /// Forgets what is no longer recent.
    pub(super) fn clean(&mut self, now: Now) {
        self.moments.retain(|_, moment| is_recent(*moment, now));
        self.moments.shrink_to_fit();
    }
}

fn is_recent(moment: Now, now: Now) -> bool {
    now.mono.saturating_sub(moment.mono) < PERIOD
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Now {
        Now {
            mono: Duration::from_secs(seconds),
            unix: UnixMillis(1_000_000_000_000 + seconds * 1000),
        }
    }

    fn session(number: u32) -> SessionId {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&number.to_be_bytes());
        SessionId::from_bytes(id)
    }

    const GRANT: Result<(), ()> = Ok(());

    #[test]
    fn a_refused_slot_is_not_remembered_and_one_that_has_something_keeps_it() {
        let mut recent = Recent::default();
        let mut moment =
            |seconds, grant: Result<(), ()>| recent.moment(session(1), Slot::A, at(seconds), || grant);
        assert_eq!(moment(0, Err(())), Err(()));
        assert_eq!(moment(1, GRANT), Ok(at(1).unix));
        assert_eq!(moment(30, Err(())), Ok(at(1).unix), "which is not asked");
        assert_eq!(moment(31, Err(())), Err(()));
        assert_eq!(moment(32, GRANT), Ok(at(32).unix));
    }

    #[test]
    fn with_no_room_a_newcomer_takes_each_time_until_the_upkeep_has_made_some() {
        let mut recent = Recent::default();
        let ask = |recent: &mut Recent, number, seconds| {
            let mut taken = false;
            let take = || {
                taken = true;
                GRANT
            };
            recent
                .moment(session(number), Slot::B, at(seconds), take)
                .unwrap();
            taken
        };
        let room = u32::try_from(ROOM).unwrap();
        assert!((0..room).all(|number| ask(&mut recent, number, 0)));
        assert!(ask(&mut recent, room, 1) && ask(&mut recent, room, 2));
        assert!(!ask(&mut recent, 0, 2));
        assert_eq!(recent.moments.len(), ROOM);
        recent.clean(at(29));
        assert_eq!(recent.moments.len(), ROOM);
        recent.clean(at(30));
        assert_eq!(recent.moments.len(), 0);
        assert!(ask(&mut recent, room, 30) && !ask(&mut recent, room, 31));
    }

    proptest! {
        #[test]
        fn a_slot_takes_at_most_once_in_a_period(dials in prop::collection::vec((0..3_u32, 0..20_u64), 1..200)) {
            let mut recent = Recent::default();
            let mut taken: HashMap<u32, u64> = HashMap::new();
            let mut seconds = 0;
            for (number, passed) in dials {
                seconds += passed;
                let mut takes = false;
                let take = || { takes = true; GRANT };
                let moment = recent.moment(session(number), Slot::A, at(seconds), take).unwrap();
                if takes {
                    let before = taken.insert(number, seconds);
                    prop_assert!(before.is_none_or(|before| seconds - before >= PERIOD.as_secs()));
                }
                prop_assert_eq!(moment, at(taken[&number]).unix);
                if passed % 3 == 0 {
                    recent.clean(at(seconds));
                }
            }
        }
    }
}
