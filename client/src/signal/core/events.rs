//! What the application has not taken yet.
//!
//! Invariant: sequenced events keep their order and none is lost; of each other kind only the latest waits. So the
//! queue is bounded whatever the relay sends: when it has no room, the shell stops reading.

use std::{collections::VecDeque, mem::discriminant};

use crate::signal::event::ConnectionEvent;

/// An honest relay keeps 256 messages for a receiver, and changes of generation beside them.
const SEQUENCED: usize = 512;

#[derive(Default)]
pub(crate) struct Events {
    queue: VecDeque<Delivery>,
    sequenced: usize,
}

/// An event on its way to the application.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Its place in the relay's sequence: taking it is processing it.
    pub(crate) seq: Option<u64>,
    pub(crate) event: ConnectionEvent,
}

impl Events {
    pub(crate) fn has_room(&self) -> bool {
        self.sequenced < SEQUENCED
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn sequenced(&mut self, seq: u64, event: ConnectionEvent) {
        self.sequenced += 1;
        let seq = Some(seq);
        self.queue.push_back(Delivery { seq, event });
    }

    pub(crate) fn tell(&mut self, event: ConnectionEvent) {
        let kind = discriminant(&event);
        self.queue
            .retain(|waiting| waiting.seq.is_some() || discriminant(&waiting.event) != kind);
        self.queue.push_back(Delivery { seq: None, event });
    }

    pub(crate) fn take(&mut self) -> Option<Delivery> {
        let delivery = self.queue.pop_front()?;
        self.sequenced -= usize::from(delivery.seq.is_some());
        Some(delivery)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sovereign_relay_protocol::signal::frame::{Opaque, Refused};

    use super::*;

    fn delayed(seconds: u64) -> ConnectionEvent {
        ConnectionEvent::Delayed {
            code: Refused::Unavailable,
            retry_in: Duration::from_secs(seconds),
        }
    }

    fn message(text: &str) -> ConnectionEvent {
        ConnectionEvent::Message {
            generation: 1,
            content: Opaque::new(text),
        }
    }

    #[test]
    fn messages_are_kept_and_of_the_rest_only_the_latest() {
        let mut events = Events::default();
        events.tell(delayed(1));
        events.sequenced(1, message("1"));
        events.tell(delayed(2));
        events.sequenced(2, message("2"));
        let taken: Vec<_> = std::iter::from_fn(|| events.take())
            .map(|next| next.event)
            .collect();
        assert_eq!(taken, [message("1"), delayed(2), message("2")]);
        assert!(events.is_empty());
    }

    #[test]
    fn an_application_that_takes_nothing_leaves_no_room_until_it_does() {
        let mut events = Events::default();
        for seq in 0..SEQUENCED as u64 {
            assert!(events.has_room());
            events.sequenced(seq, message("x"));
        }
        assert!(!events.has_room());
        events.take();
        assert!(events.has_room());
    }
}
