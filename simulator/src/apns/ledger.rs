//! The book of one connection: which streams are open, which limit binds the peer, what GOAWAY cut off.
//!
//! Pure; [`crate::apns::wire`] shows it every frame in both directions. A peer is bound by the highest of the limit it
//! last acknowledged and those on their way to it, so a raised limit counts from the moment it is sent and a lowered
//! one from its acknowledgement (RFC 9113, 5.1.2 and 6.5.3). Before the first SETTINGS the initial limit holds: APNs
//! lets a connection have one stream until it has seen a valid JWT.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::apns::frames::{DATA, GOAWAY, HEADERS, Head, PING, RST_STREAM, SETTINGS};

/// One connection's streams and limits.
#[derive(Debug)]
pub(crate) struct Ledger {
    acknowledged_limit: u32,
    settings_in_flight: VecDeque<SettingsInFlight>,
    open: HashMap<u32, Halves>,
    beyond_limit: HashSet<u32>,
    highest_stream: u32,
    goaway_last: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SettingsInFlight {
    limit: Option<u32>,
    injected: bool,
}

/// Which sides have ended.
#[derive(Debug, Clone, Copy, Default)]
struct Halves {
    remote: bool,
    local: bool,
}

/// What an inbound frame was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inbound {
    /// A new stream, with how many are open now and the limit that binds.
    Opened { open: usize, limit: u32 },
    /// RST_STREAM.
    Reset,
    /// PING, no acknowledgement.
    Ping,
    /// GOAWAY.
    GoAway,
    /// The acknowledgement of SETTINGS that `h2` doesn't know of: to be kept from it.
    AcknowledgedInjected,
    /// Anything else.
    Other,
}

/// What is to become of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Serve it.
    Serve,
    /// It was opened beyond the limit.
    BeyondLimit,
    /// It lies above the last stream that GOAWAY promised to process.
    AfterGoaway,
}

impl Ledger {
    pub(crate) fn new(initial_limit: u32) -> Self {
        Self {
            acknowledged_limit: initial_limit,
            settings_in_flight: VecDeque::new(),
            open: HashMap::new(),
            beyond_limit: HashSet::new(),
            highest_stream: 0,
            goaway_last: None,
        }
    }

    pub(crate) fn inbound(&mut self, head: Head) -> Inbound {
        match head.kind {
            HEADERS if head.stream > self.highest_stream => self.opened(head),
            HEADERS | DATA => {
                self.end(head, |halves| halves.remote = true);
                Inbound::Other
            }
            RST_STREAM => {
                self.close(head.stream);
                Inbound::Reset
            }
            SETTINGS if head.is_ack() => self.acknowledged(),
            PING if !head.is_ack() => Inbound::Ping,
            GOAWAY => Inbound::GoAway,
            _ => Inbound::Other,
        }
    }

    pub(crate) fn outbound(&mut self, head: Head) {
        match head.kind {
            HEADERS | DATA => self.end(head, |halves| halves.local = true),
            RST_STREAM => self.close(head.stream),
            _ => {}
        }
    }

    /// SETTINGS go out: from `h2` or injected.
    pub(crate) fn settings_sent(&mut self, limit: Option<u32>, injected: bool) {
        self.settings_in_flight
            .push_back(SettingsInFlight { limit, injected });
    }

    /// GOAWAY goes out; the last stream id it must name. It never rises.
    pub(crate) fn goaway_sent(&mut self, wanted: Option<u32>) -> u32 {
        let last = wanted
            .unwrap_or(self.highest_stream)
            .min(self.goaway_last.unwrap_or(u32::MAX));
        self.goaway_last = Some(last);
        self.open.retain(|stream, _| *stream <= last);
        last
    }

    /// Whether GOAWAY was sent and every stream it left is finished.
    pub(crate) fn is_finished(&self) -> bool {
        self.goaway_last.is_some() && self.open.is_empty()
    }

    pub(crate) fn admission(&mut self, stream: u32) -> Admission {
        if self.is_after_goaway(stream) {
            Admission::AfterGoaway
        } else if self.beyond_limit.remove(&stream) {
            Admission::BeyondLimit
        } else {
            Admission::Serve
        }
    }

    pub(crate) fn is_after_goaway(&self, stream: u32) -> bool {
        self.goaway_last.is_some_and(|last| stream > last)
    }

    fn opened(&mut self, head: Head) -> Inbound {
        self.highest_stream = head.stream;
        if self.is_after_goaway(head.stream) {
            return Inbound::Other;
        }
        self.open.insert(head.stream, Halves::default());
        let limit = self.binding_limit();
        let open = self.open.len();
        if u64::try_from(open).unwrap_or(u64::MAX) > u64::from(limit) {
            self.beyond_limit.insert(head.stream);
        }
        self.end(head, |halves| halves.remote = true);
        Inbound::Opened { open, limit }
    }

    fn binding_limit(&self) -> u32 {
        let in_flight = self
            .settings_in_flight
            .iter()
            .filter_map(|settings| settings.limit);
        in_flight.fold(self.acknowledged_limit, u32::max)
    }

    fn acknowledged(&mut self) -> Inbound {
        let Some(settings) = self.settings_in_flight.pop_front() else {
            return Inbound::Other;
        };
        self.acknowledged_limit = settings.limit.unwrap_or(self.acknowledged_limit);
        if settings.injected {
            Inbound::AcknowledgedInjected
        } else {
            Inbound::Other
        }
    }

    fn end(&mut self, head: Head, mark: impl FnOnce(&mut Halves)) {
        if !head.ends_stream() {
            return;
        }
        let Some(halves) = self.open.get_mut(&head.stream) else {
            return;
        };
        mark(halves);
        if halves.remote && halves.local {
            self.close(head.stream);
        }
    }

    fn close(&mut self, stream: u32) {
        self.open.remove(&stream);
        self.beyond_limit.remove(&stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: u8, flags: u8, stream: u32) -> Head {
        let [s3, s2, s1, s0] = stream.to_be_bytes();
        Head::parse(&[0, 0, 0, kind, flags, s3, s2, s1, s0]).unwrap()
    }

    fn open(ledger: &mut Ledger, stream: u32) -> Inbound {
        ledger.inbound(head(HEADERS, 5, stream))
    }

    fn acknowledge(ledger: &mut Ledger) -> Inbound {
        ledger.inbound(head(SETTINGS, 1, 0))
    }

    #[test]
    fn a_raised_limit_counts_when_sent_and_a_lowered_one_when_acknowledged() {
        let mut ledger = Ledger::new(1);
        ledger.settings_sent(Some(1), false);
        assert_eq!(open(&mut ledger, 1), Inbound::Opened { open: 1, limit: 1 });
        ledger.settings_sent(Some(10), true);
        assert_eq!(open(&mut ledger, 3), Inbound::Opened { open: 2, limit: 10 });
        assert_eq!(
            acknowledge(&mut ledger),
            Inbound::Other,
            "the answer to what h2 sent"
        );
        assert_eq!(acknowledge(&mut ledger), Inbound::AcknowledgedInjected);
        ledger.settings_sent(Some(1), true);
        assert_eq!(open(&mut ledger, 5), Inbound::Opened { open: 3, limit: 10 });
        assert_eq!(acknowledge(&mut ledger), Inbound::AcknowledgedInjected);
        assert_eq!(open(&mut ledger, 7), Inbound::Opened { open: 4, limit: 1 });
        assert_eq!(ledger.admission(5), Admission::Serve);
        assert_eq!(ledger.admission(7), Admission::BeyondLimit);
    }

    #[test]
    fn a_stream_is_over_when_both_sides_ended_or_one_reset_it() {
        let mut ledger = Ledger::new(1);
        ledger.inbound(head(HEADERS, 4, 1));
        ledger.outbound(head(HEADERS, 5, 1));
        assert_eq!(
            open(&mut ledger, 3),
            Inbound::Opened { open: 2, limit: 1 },
            "1 still sends"
        );
        ledger.inbound(head(DATA, 1, 1));
        ledger.outbound(head(RST_STREAM, 0, 3));
        assert_eq!(open(&mut ledger, 5), Inbound::Opened { open: 1, limit: 1 });
        assert_eq!(ledger.inbound(head(RST_STREAM, 0, 5)), Inbound::Reset);
        assert_eq!(open(&mut ledger, 7), Inbound::Opened { open: 1, limit: 1 });
    }

    #[test]
    fn goaway_cuts_off_later_streams_and_is_finished_with_the_last_earlier_one() {
        let mut ledger = Ledger::new(10);
        open(&mut ledger, 1);
        open(&mut ledger, 3);
        assert_eq!(ledger.goaway_sent(Some(1)), 1);
        assert_eq!(ledger.goaway_sent(None), 1, "it never rises");
        open(&mut ledger, 5);
        assert_eq!(
            [1, 3, 5].map(|stream| ledger.is_after_goaway(stream)),
            [false, true, true]
        );
        assert!(!ledger.is_finished());
        ledger.outbound(head(HEADERS, 5, 1));
        assert!(ledger.is_finished());
    }
}
