//! What waits for one slot: entries numbered without a gap, kept until they are acknowledged.
//!
//! A client may know what any connection of its slot has read, whether or not it was written: `sent` remembers how far.
//!
//! Invariant: a full mailbox refuses what is new; nothing that was stored is given up before its acknowledgement.

use std::collections::VecDeque;

use sovereign_relay_protocol::signal::{frame::Opaque, session::SessionLimits};

use super::port::{Entry, Item, Page, counted_bytes};

/// One slot's mailbox.
#[derive(Default, Debug)]
pub(crate) struct Mailbox {
    entries: VecDeque<Entry>,
    /// Highest `seq` trimmed.
    base: u64,
    /// Highest `seq` read.
    sent: u64,
    messages: usize,
    bytes: usize,
}

/// No room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

impl Mailbox {
    /// Highest `seq` trimmed.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Highest `seq` that a connection has read: no client can know of more.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Highest `seq` given out.
    fn top(&self) -> u64 {
        self.entries.back().map_or(self.base, |last| last.seq)
    }

    /// Messages that wait.
    pub(crate) fn messages(&self) -> usize {
        self.messages
    }

    /// Bytes that they count.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a message, if there is room.
    pub(crate) fn push(
        &mut self,
        generation: u32,
        content: Opaque,
        limits: &SessionLimits,
    ) -> Result<(), Full> {
        let bytes = self.bytes.saturating_add(counted_bytes(&content));
        let has_room = self.messages < limits.mailbox_messages && bytes <= limits.mailbox_bytes;
        if !has_room {
            return Err(Full);
        }
        self.messages += 1;
        self.bytes = bytes;
        self.add(generation, Item::Message(content));
        Ok(())
    }

    /// Adds the news of a new page load, whether or not there is room: the limit on page loads bounds them.
    pub(crate) fn push_new_load(&mut self, generation: u32) {
        self.add(generation, Item::NewLoad);
    }

    fn add(&mut self, generation: u32, item: Item) {
        let seq = self.top() + 1;
        self.entries.push_back(Entry {
            seq,
            generation,
            item,
        });
    }

    /// Forgets everything up to `seq`; gives back how many bytes that freed.
    pub(crate) fn trim(&mut self, seq: u64) -> usize {
        let before = self.bytes;
        while let Some(first) = self.entries.front().filter(|first| first.seq <= seq) {
            if let Item::Message(content) = &first.item {
                self.messages -= 1;
                self.bytes -= counted_bytes(content);
            }
            self.base = first.seq;
            self.entries.pop_front();
        }
        if self.entries.is_empty() {
            // An idle session keeps nothing of a burst that is over.
            self.entries = VecDeque::new();
        }
        before - self.bytes
    }

    /// What comes after `after`: at least one entry if there is one, and more while they fit into `bytes`.
    pub(crate) fn after(&mut self, after: u64, bytes: usize) -> Page {
        let skip = usize::try_from(after.saturating_sub(self.base)).unwrap_or(usize::MAX);
        let mut room = bytes;
        let fits = |entry: &&Entry| {
            let Item::Message(content) = &entry.item else {
                return true;
            };
            let has_room = room == bytes || counted_bytes(content) <= room;
            room = room.saturating_sub(counted_bytes(content));
            has_room
        };
        let entries: Vec<Entry> = self.entries.iter().skip(skip).take_while(fits).cloned().collect();
        let last = entries.last().map_or(0, |entry| entry.seq);
        self.sent = self.sent.max(last);
        Page {
            is_last: entries.len() == self.entries.len().saturating_sub(skip),
            entries,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sovereign_relay_protocol::limits::{MAILBOX_BYTES, MAILBOX_MESSAGES};

    use super::*;
    use crate::session::port::ENTRY_BYTES;

    fn push(mailbox: &mut Mailbox, length: usize) -> Result<(), Full> {
        mailbox.push(1, message(length), &SessionLimits::default())
    }

    fn message(length: usize) -> Opaque {
        Opaque::new("x".repeat(length))
    }

    fn seqs(entries: &[Entry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn the_256_first_messages_wait_and_the_next_is_refused_until_one_is_acknowledged() {
        let mut mailbox = Mailbox::default();
        for _ in 0..MAILBOX_MESSAGES {
            push(&mut mailbox, 1).unwrap();
        }
        assert_eq!(push(&mut mailbox, 0), Err(Full));
        assert_eq!(mailbox.trim(1), 1 + ENTRY_BYTES);
        assert_eq!(push(&mut mailbox, 0), Ok(()));
        assert_eq!((mailbox.base(), mailbox.top()), (1, 257));
    }

    #[test]
    fn bytes_are_bounded_and_the_news_of_a_page_load_is_not() {
        let mut mailbox = Mailbox::default();
        assert_eq!(push(&mut mailbox, MAILBOX_BYTES - ENTRY_BYTES + 1), Err(Full));
        push(&mut mailbox, MAILBOX_BYTES - ENTRY_BYTES).unwrap();
        assert_eq!(push(&mut mailbox, 0), Err(Full));
        mailbox.push_new_load(2);
        assert_eq!(
            (mailbox.top(), mailbox.messages(), mailbox.bytes()),
            (2, 1, MAILBOX_BYTES)
        );
        assert_eq!(mailbox.trim(2), MAILBOX_BYTES);
        assert_eq!((mailbox.base(), mailbox.messages(), mailbox.bytes()), (2, 0, 0));
    }

    #[test]
    fn messages_without_content_are_counted_too() {
        let limits = SessionLimits {
            mailbox_bytes: 3 * ENTRY_BYTES,
            ..SessionLimits::default()
        };
        let mut mailbox = Mailbox::default();
        let outcomes = [(); 4].map(|()| mailbox.push(1, message(0), &limits));
        assert_eq!(outcomes, [Ok(()), Ok(()), Ok(()), Err(Full)]);
        assert_eq!(seqs(&mailbox.after(0, 2 * ENTRY_BYTES).entries), [1, 2]);
        assert_eq!(mailbox.trim(3), 3 * ENTRY_BYTES);
    }

    #[test]
    fn a_page_has_what_fits_and_at_least_one() {
        let mut mailbox = Mailbox::default();
        for length in [100, 10, 10, 100] {
            push(&mut mailbox, length).unwrap();
        }
        mailbox.push_new_load(2);
        let room = 50 + 2 * ENTRY_BYTES;
        let mut page = |after, bytes| {
            let page = mailbox.after(after, bytes);
            (seqs(&page.entries), page.is_last)
        };
        assert_eq!(page(0, room), (vec![1], false));
        assert_eq!(page(1, room), (vec![2, 3], false));
        assert_eq!(page(3, 1), (vec![4, 5], true));
        assert_eq!(page(5, room), (vec![], true));
        assert_eq!(page(9, room), (vec![], true));
    }

    proptest! {
        #[test]
        fn numbers_have_no_gap_and_counts_are_right(steps in prop::collection::vec((0usize..3, 0u64..12), 1..80)) {
            let mut mailbox = Mailbox::default();
            let mut acknowledged = 0;
            for (step, value) in steps {
                match step {
                    0 => { let _ = push(&mut mailbox, usize::try_from(value).unwrap()); }
                    1 => mailbox.push_new_load(2),
                    _ => {
                        acknowledged = (acknowledged + value).min(mailbox.top());
                        mailbox.trim(acknowledged);
                    }
                }
                let waiting = mailbox.after(mailbox.base(), usize::MAX).entries;
                prop_assert_eq!(mailbox.base(), acknowledged);
                prop_assert_eq!(seqs(&waiting), (acknowledged + 1..=mailbox.top()).collect::<Vec<_>>());
                let lengths: Vec<_> = waiting.iter().filter_map(|entry| match &entry.item {
                    Item::Message(content) => Some(content.len() + ENTRY_BYTES),
                    Item::NewLoad => None,
                }).collect();
                prop_assert_eq!((mailbox.messages(), mailbox.bytes()), (lengths.len(), lengths.iter().sum()));
            }
        }
    }
}
