//! The core against a small relay that obeys the contract, over a network that doesn't: whatever is cut, delayed,
//! repeated or refused, both directions arrive exactly once and in order.

use proptest::prelude::*;
use sovereign_relay_protocol::signal::frame::{ClientFrame, Hello, Refused, ServerFrame};

use super::{super::*, kit::*};

/// One slot of a session, as the contract has it.
#[derive(Default)]
struct Relay {
    stored: Vec<String>,
    mailbox: Vec<String>,
    trimmed: usize,
    /// Up to where the present connection was told.
    told: usize,
    attempt: u64,
    refuse_next: bool,
    refusing: Option<u64>,
}

impl Relay {
    fn heed(&mut self, frame: ClientFrame) -> Vec<ServerFrame> {
        match frame {
            ClientFrame::Hello(hello) => self.bind(&hello),
            ClientFrame::Message { n, content } => self.append(n, content.expose()),
            ClientFrame::Ack { seq } => {
                self.trim(seq);
                vec![]
            }
            ClientFrame::Ping => vec![ServerFrame::Pong],
            ClientFrame::Pong | ClientFrame::Ice | ClientFrame::Bye { .. } | ClientFrame::Unknown => vec![],
        }
    }

    fn bind(&mut self, hello: &Hello) -> Vec<ServerFrame> {
        assert!(hello.attempt > self.attempt, "each dial has a greater number");
        self.attempt = hello.attempt;
        self.refusing = None;
        self.trim(hello.last);
        self.told = self.trimmed;
        let welcome = welcome(self.stored.len() as u64 + 1, self.trimmed as u64);
        vec![ServerFrame::Welcome(welcome)]
    }

    fn append(&mut self, n: u64, content: &str) -> Vec<ServerFrame> {
        let next = self.stored.len() as u64 + 1;
        if self.refusing.is_some_and(|refused| n > refused) {
            return vec![];
        }
        assert!(n <= next, "a predecessor is missing");
        if n == next && std::mem::take(&mut self.refuse_next) {
            self.refusing = Some(n);
            let (code, retry_ms) = (Refused::MailboxFull, 300);
            return vec![ServerFrame::Err { code, n, retry_ms }];
        }
        if n == next {
            self.refusing = None;
            self.stored.push(content.to_owned());
        }
        vec![ServerFrame::Ack {
            n: self.stored.len() as u64,
        }]
    }

    fn trim(&mut self, seq: u64) {
        let seq = usize::try_from(seq).unwrap();
        assert!(seq <= self.mailbox.len(), "acknowledged before it was sent");
        self.trimmed = self.trimmed.max(seq);
    }

    fn next(&mut self) -> Option<ServerFrame> {
        let content = self.mailbox.get(self.told)?;
        self.told += 1;
        Some(Self::message(self.told, content))
    }

    fn message(seq: usize, content: &str) -> ServerFrame {
        let (seq, generation, content) = (seq as u64, 1, Opaque::new(content));
        ServerFrame::Message {
            seq,
            generation,
            content,
        }
    }
}

/// A client, a relay, and the bytes in between.
struct World {
    bench: Bench,
    relay: Relay,
    up: VecDeque<ClientFrame>,
    down: VecDeque<ServerFrame>,
    dialing: bool,
    linked: bool,
    sent: Vec<String>,
    heard: Vec<String>,
}

#[derive(Clone, Debug)]
enum Step {
    Send(u8),
    PeerSends(u8),
    ClientWrites(u8),
    RelayReads(u8),
    RelayWrites(u8),
    ClientReads(u8),
    ClientTakes(u8),
    RelayRepeats(u8),
    RelayRefuses,
    RelayLeaves,
    DialFails,
    Cut(u8),
    Pass(u16),
}

impl World {
    fn new() -> Self {
        Self {
            bench: Bench::new(),
            relay: Relay::default(),
            up: VecDeque::new(),
            down: VecDeque::new(),
            dialing: false,
            linked: false,
            sent: Vec::new(),
            heard: Vec::new(),
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Send(count) => (0..count).for_each(|_| self.send()),
            Step::PeerSends(count) => {
                for _ in 0..count {
                    self.relay.mailbox.push(format!("b{}", self.relay.mailbox.len()));
                }
            }
            Step::ClientWrites(count) => (0..count).for_each(|_| self.client_writes()),
            Step::RelayReads(count) => (0..count).for_each(|_| self.relay_reads()),
            Step::RelayWrites(count) => (0..count).for_each(|_| self.relay_writes()),
            Step::ClientReads(count) => (0..count).for_each(|_| self.client_reads()),
            Step::ClientTakes(count) => (0..count).for_each(|_| self.client_takes()),
            Step::RelayRepeats(back) => self.relay_repeats(usize::from(back)),
            Step::RelayRefuses => self.relay.refuse_next = true,
            Step::RelayLeaves if self.greeted() => self.down.push_back(ServerFrame::Goaway { in_ms: 2000 }),
            Step::RelayLeaves => {}
            Step::DialFails if self.dialing => {
                self.dialing = false;
                self.bench.core.dial_failed(None, self.bench.now);
            }
            Step::DialFails => {}
            Step::Cut(which) => self.cut(which),
            Step::Pass(millis) => self.bench.pass(Duration::from_millis(millis.into())),
        }
        self.obey();
    }

    fn obey(&mut self) {
        while let Some(effect) = self.bench.core.effect() {
            // The network may still bring the relay what was under way; nothing of it comes back.
            self.linked = false;
            self.down.clear();
            self.dialing = effect == Effect::Dial;
        }
    }

    fn send(&mut self) {
        if self.bench.core.has_room() {
            let content = format!("a{}", self.sent.len());
            self.bench.core.send(Opaque::new(content.clone())).unwrap();
            self.sent.push(content);
        }
    }

    fn client_writes(&mut self) {
        if std::mem::take(&mut self.dialing) {
            // What an earlier connection still had under way is fenced off by the new one.
            self.up.clear();
            self.linked = true;
            self.bench.core.dialled(self.bench.now);
        }
        if self.linked {
            self.up.extend(self.bench.core.transmit(self.bench.now));
        }
    }

    fn relay_reads(&mut self) {
        if let Some(frame) = self.up.pop_front() {
            let answers = self.relay.heed(frame);
            if self.linked {
                self.down.extend(answers);
            }
        }
    }

    /// Whether the present connection's hello was answered.
    fn greeted(&self) -> bool {
        self.linked && self.relay.attempt == self.bench.core.attempt
    }

    fn relay_writes(&mut self) {
        if self.greeted() {
            self.down.extend(self.relay.next());
        }
    }

    fn relay_repeats(&mut self, back: usize) {
        let seq = self.relay.told.saturating_sub(back);
        if self.greeted() && seq > self.relay.trimmed {
            let content = &self.relay.mailbox[seq - 1];
            self.down.push_back(Relay::message(seq, content));
        }
    }

    fn client_reads(&mut self) {
        if !self.bench.core.is_reading() {
            return;
        }
        if let Some(frame) = self.down.pop_front() {
            self.bench.say(&frame);
        }
        self.obey();
    }

    fn client_takes(&mut self) {
        let Some(Delivery { seq, event }) = self.bench.core.take_event() else {
            return;
        };
        if let Some(seq) = seq {
            self.bench.core.processed(seq, self.bench.now);
        }
        match event {
            ConnectionEvent::Message { content, .. } => self.heard.push(content.expose().to_owned()),
            ConnectionEvent::Ended(ended) => panic!("ended: {ended}"),
            ConnectionEvent::Interrupted { cause, .. } => assert_ne!(cause, Interruption::Fault),
            _ => {}
        }
    }

    fn cut(&mut self, which: u8) {
        if self.linked {
            self.linked = false;
            self.down.clear();
            let codes = [1006, 1001, 1011, 1012, 1013, 4500, 4503, 4508, 4512];
            let code = codes[usize::from(which) % codes.len()];
            self.bench.core.closed(code, self.bench.now);
        }
    }

    /// The network is good from here on, until nothing is left to do.
    fn settle(&mut self) {
        self.relay.refuse_next = false;
        for _ in 0..20_000 {
            for step in [
                Step::ClientWrites(1),
                Step::RelayReads(1),
                Step::RelayWrites(1),
                Step::ClientReads(2),
                Step::ClientTakes(2),
            ] {
                self.step(&step);
            }
            let stored = self.relay.stored.len() == self.sent.len();
            let heard = self.relay.trimmed == self.relay.mailbox.len();
            if stored && heard && self.bench.core.stored() == self.sent.len() as u64 {
                return;
            }
            self.step(&Step::Pass(20));
        }
        panic!("it never settles");
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..40u8).prop_map(Step::Send),
        3 => (1..40u8).prop_map(Step::PeerSends),
        6 => (1..50u8).prop_map(Step::ClientWrites),
        6 => (1..50u8).prop_map(Step::RelayReads),
        6 => (1..50u8).prop_map(Step::RelayWrites),
        6 => (1..50u8).prop_map(Step::ClientReads),
        6 => (1..50u8).prop_map(Step::ClientTakes),
        2 => (0..10u8).prop_map(Step::RelayRepeats),
        1 => Just(Step::RelayRefuses),
        1 => Just(Step::RelayLeaves),
        1 => Just(Step::DialFails),
        3 => any::<u8>().prop_map(Step::Cut),
        4 => (1..800u16).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn both_directions_arrive_exactly_once_and_in_order(steps in prop::collection::vec(step(), 1..150)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
        world.settle();
        prop_assert_eq!(&world.relay.stored, &world.sent);
        prop_assert_eq!(&world.heard, &world.relay.mailbox);
    }
}
