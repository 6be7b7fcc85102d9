//! What a connection says, and in which order. Pure.
//!
//! ```text
//! welcome | ack, err, goaway: at once | mailbox page by page | peer, once the mailbox is through
//! ```
//!
//! A change of the peer's generation is an entry of the mailbox, so that it orders against messages. Its other news is
//! a state: told after what waits in the mailbox, never before the entry that announces its generation, and only if
//! it differs from what was told last.

use sovereign_relay_actors::session::{
    link::Words,
    port::{Entry, Item, Page},
};
use sovereign_relay_protocol::signal::frame::{PeerPresence, PeerState, ServerFrame};

/// What one connection has said so far.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Highest `seq` written.
    sent: u64,
    told: PeerPresence,
    current: PeerPresence,
    has_mail: bool,
}

impl Outbox {
    /// After a welcome that said so much of the peer. `after` is the highest `seq` that the client has.
    pub(super) fn new(after: u64, peer: PeerPresence) -> Self {
        Self {
            sent: after,
            told: peer,
            current: peer,
            has_mail: true,
        }
    }

    /// Frames for what the session's actor wants said, in order.
    pub(super) fn on_words(&mut self, words: &Words) -> Vec<ServerFrame> {
        self.has_mail |= words.mail;
        // Generations only grow: an older one was overtaken by an entry.
        let newer = |peer: &PeerPresence| peer.generation >= self.current.generation;
        self.current = words.peer.filter(newer).unwrap_or(self.current);
        let ack = words.ack.map(|n| ServerFrame::Ack { n });
        let refusal = words.refusal.map(|refusal| ServerFrame::Err {
            code: refusal.code,
            n: refusal.n,
            retry_ms: millis(refusal.retry),
        });
        let goaway = words.goaway.map(|within| ServerFrame::Goaway {
            in_ms: millis(within),
        });
        let peer = self.peer_news();
        [ack, refusal, goaway, peer].into_iter().flatten().collect()
    }

    /// The `seq` after which the mailbox is to be read, if there may be something.
    pub(super) fn wants_page(&self) -> Option<u64> {
        self.has_mail.then_some(self.sent)
    }

    /// The mailbox is being read: what comes from now on is news again.
    pub(super) fn on_reading(&mut self) {
        self.has_mail = false;
    }

    /// Frames for a page of the mailbox.
    pub(super) fn on_page(&mut self, page: Page) -> Vec<ServerFrame> {
        self.has_mail |= !page.is_last;
        let mut frames: Vec<ServerFrame> = page.entries.into_iter().map(|entry| self.entry(entry)).collect();
        frames.extend(self.peer_news());
        frames
    }

    fn entry(
        &mut self,
        Entry {
            seq,
            generation,
            item,
        }: Entry,
    ) -> ServerFrame {
        self.sent = seq;
        match item {
            Item::Message(content) => ServerFrame::Message {
                seq,
                generation,
                content,
            },
            Item::NewLoad => {
                let state = PeerState::Online;
                self.told = PeerPresence { state, generation };
                if generation > self.current.generation {
                    // The entry is here before the actor's word of it.
                    self.current = self.told;
                }
                ServerFrame::Peer {
                    state,
                    generation,
                    seq: Some(seq),
                }
            }
        }
    }

    fn peer_news(&mut self) -> Option<ServerFrame> {
        let is_first_arrival = self.told.generation == 0 && self.current.generation == 1;
        let is_announced = self.current.generation == self.told.generation || is_first_arrival;
        if self.has_mail || !is_announced || self.current == self.told {
            return None;
        }
        self.told = self.current;
        Some(ServerFrame::Peer {
            state: self.told.state,
            generation: self.told.generation,
            seq: None,
        })
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    // Rounded up: a client that comes back after it is not too early.
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sovereign_relay_actors::session::link::Refusal;
    use sovereign_relay_protocol::signal::frame::{Opaque, Refused};

    use super::*;

    fn peer(state: PeerState, generation: u32) -> PeerPresence {
        PeerPresence { state, generation }
    }

    fn last(entries: Vec<Entry>) -> Page {
        Page {
            entries,
            is_last: true,
        }
    }

    fn message(seq: u64) -> Entry {
        let item = Item::Message(Opaque::new("e1."));
        Entry {
            seq,
            generation: 1,
            item,
        }
    }

    fn new_load(seq: u64, generation: u32) -> Entry {
        Entry {
            seq,
            generation,
            item: Item::NewLoad,
        }
    }

    fn news(presence: PeerPresence) -> Words {
        Words {
            peer: Some(presence),
            ..Words::default()
        }
    }

    fn told(presence: PeerPresence, seq: Option<u64>) -> ServerFrame {
        ServerFrame::Peer {
            state: presence.state,
            generation: presence.generation,
            seq,
        }
    }

    fn drained(after: u64, presence: PeerPresence) -> Outbox {
        let mut outbox = Outbox::new(after, presence);
        assert_eq!(outbox.wants_page(), Some(after));
        outbox.on_reading();
        assert_eq!(outbox.on_page(last(Vec::new())), []);
        outbox
    }

    #[test]
    fn pages_are_read_until_the_last_and_news_in_between_is_not_missed() {
        let mut outbox = Outbox::new(3, peer(PeerState::Absent, 0));
        outbox.on_reading();
        assert_eq!(outbox.wants_page(), None);
        let more = Page {
            entries: vec![message(4)],
            is_last: false,
        };
        assert_eq!(outbox.on_page(more).len(), 1);
        assert_eq!(outbox.wants_page(), Some(4));
        outbox.on_reading();
        assert_eq!(outbox.on_page(last(vec![message(5)])).len(), 1);
        assert_eq!(outbox.wants_page(), None);
        let mail = Words {
            mail: true,
            ..Words::default()
        };
        assert_eq!(outbox.on_words(&mail), []);
        outbox.on_reading();
        assert_eq!(outbox.on_words(&mail), []);
        assert_eq!(outbox.on_page(last(vec![message(6)])).len(), 1);
        assert_eq!(outbox.wants_page(), Some(6));
    }

    #[test]
    fn what_the_actor_says_goes_first_and_in_order() {
        let mut outbox = drained(0, peer(PeerState::Online, 1));
        let words = Words {
            ack: Some(4),
            refusal: Some(Refusal {
                code: Refused::RateLimited,
                n: 5,
                retry: Duration::from_nanos(1),
            }),
            peer: Some(peer(PeerState::Away, 1)),
            goaway: Some(Duration::from_secs(10)),
            ..Words::default()
        };
        let frames = outbox.on_words(&words);
        let expected = [
            ServerFrame::Ack { n: 4 },
            ServerFrame::Err {
                code: Refused::RateLimited,
                n: 5,
                retry_ms: 1,
            },
            ServerFrame::Goaway { in_ms: 10_000 },
            told(peer(PeerState::Away, 1), None),
        ];
        assert_eq!(frames, expected);
    }

    #[test]
    fn the_first_arrival_is_told_without_a_number_and_nothing_is_told_twice() {
        let mut outbox = drained(0, peer(PeerState::Absent, 0));
        let online = peer(PeerState::Online, 1);
        assert_eq!(outbox.on_words(&news(online)), [told(online, None)]);
        assert_eq!(outbox.on_words(&news(online)), []);
    }

    #[test]
    fn a_new_generation_is_announced_by_its_entry_before_anything_else_of_it() {
        let mut outbox = drained(7, peer(PeerState::Online, 1));
        let gone = peer(PeerState::Away, 2);
        assert_eq!(outbox.on_words(&news(gone)), []);
        outbox.on_reading();
        let page = outbox.on_page(last(vec![message(8), new_load(9, 2)]));
        let announced = told(peer(PeerState::Online, 2), Some(9));
        assert_eq!(page.get(1..), Some(&[announced, told(gone, None)][..]));
    }

    #[test]
    fn an_announcement_that_overtakes_the_actors_word_is_not_followed_by_what_was_true_before() {
        let (before, reloaded) = (peer(PeerState::Online, 1), peer(PeerState::Online, 2));
        let mut outbox = drained(0, before);
        let mail = Words {
            mail: true,
            ..Words::default()
        };
        outbox.on_words(&mail);
        outbox.on_reading();
        let page = outbox.on_page(last(vec![new_load(1, 2)]));
        assert_eq!(page, [told(reloaded, Some(1))]);
        for late in [before, peer(PeerState::Away, 1), reloaded] {
            assert_eq!(outbox.on_words(&news(late)), []);
        }
        let gone = peer(PeerState::Away, 2);
        assert_eq!(outbox.on_words(&news(gone)), [told(gone, None)]);
    }

    #[test]
    fn an_old_announcement_is_followed_by_the_state_of_now() {
        let gone = peer(PeerState::Left, 3);
        let mut outbox = Outbox::new(0, gone);
        outbox.on_reading();
        let page = outbox.on_page(last(vec![new_load(1, 2), new_load(2, 3)]));
        assert_eq!(page.last(), Some(&told(gone, None)));
    }
}
