//! Whether the peer is there, told so that it orders against its messages.
//!
//! The relay puts a change of the peer's generation into the sequence; everything else it says of the peer (in
//! `welcome`, in unsequenced frames) may overtake that.
//!
//! Invariant: a later generation is told only at its place in the sequence, before any message of it; except for the
//! first one that is heard of, which has no place.

use sovereign_relay_protocol::signal::frame::{PeerPresence, PeerState};

pub(crate) struct Presence {
    told: PeerPresence,
    /// The newest that is known, perhaps of a generation whose turn hasn't come.
    newest: PeerPresence,
}

impl Default for Presence {
    fn default() -> Self {
        let absent = PeerPresence {
            state: PeerState::Absent,
            generation: 0,
        };
        Self {
            told: absent,
            newest: absent,
        }
    }
}

impl Presence {
    /// Said outside the sequence. What to tell the application, if anything.
    pub(crate) fn noticed(&mut self, presence: PeerPresence) -> Option<PeerPresence> {
        if presence.generation < self.newest.generation {
            // Of a page load that another has replaced.
            return None;
        }
        self.newest = presence;
        let first = self.told.generation == 0;
        let current = presence.generation == self.told.generation;
        let tell = (first || current) && presence != self.told;
        tell.then(|| self.tell(presence))
    }

    /// A generation took its place in the sequence. What to tell the application.
    pub(crate) fn announced(&mut self, presence: PeerPresence) -> PeerPresence {
        if presence.generation > self.newest.generation {
            self.newest = presence;
        }
        let newest = self.newest;
        self.tell(if newest.generation == presence.generation {
            newest
        } else {
            presence
        })
    }

    fn tell(&mut self, presence: PeerPresence) -> PeerPresence {
        self.told = presence;
        presence
    }
}

#[cfg(test)]
mod tests {
    use PeerState::{Absent, Away, Online};

    use super::*;

    const fn peer(state: PeerState, generation: u32) -> PeerPresence {
        PeerPresence { state, generation }
    }

    #[test]
    fn the_first_arrival_is_told_at_once_and_nothing_twice() {
        let mut presence = Presence::default();
        assert_eq!(presence.noticed(peer(Absent, 0)), None);
        assert_eq!(presence.noticed(peer(Online, 1)), Some(peer(Online, 1)));
        assert_eq!(presence.noticed(peer(Online, 1)), None);
        assert_eq!(presence.noticed(peer(Away, 1)), Some(peer(Away, 1)));
    }

    #[test]
    fn a_later_generation_waits_for_its_place_and_comes_with_its_newest_state() {
        let mut presence = Presence::default();
        presence.noticed(peer(Online, 1));
        assert_eq!(presence.noticed(peer(Online, 2)), None);
        assert_eq!(presence.noticed(peer(Away, 2)), None);
        assert_eq!(presence.announced(peer(Online, 2)), peer(Away, 2));
        assert_eq!(presence.noticed(peer(Online, 2)), Some(peer(Online, 2)));
    }

    #[test]
    fn what_is_said_of_a_replaced_generation_outside_the_sequence_is_not_told() {
        let mut presence = Presence::default();
        presence.noticed(peer(Online, 1));
        assert_eq!(presence.noticed(peer(Away, 2)), None);
        assert_eq!(presence.noticed(peer(PeerState::Left, 1)), None);
        assert_eq!(presence.announced(peer(Online, 2)), peer(Away, 2));
        assert_eq!(presence.announced(peer(Online, 3)), peer(Online, 3));
        assert_eq!(presence.noticed(peer(Online, 2)), None);
        assert_eq!(presence.noticed(peer(Away, 3)), Some(peer(Away, 3)));
    }

    #[test]
    fn a_page_load_of_ours_hears_the_peers_generations_one_after_the_other() {
        let mut presence = Presence::default();
        presence.noticed(peer(Online, 3));
        assert_eq!(presence.announced(peer(Online, 2)), peer(Online, 2));
        assert_eq!(presence.noticed(peer(Away, 3)), None);
        assert_eq!(presence.announced(peer(Online, 3)), peer(Away, 3));
    }
}
