//! Two clients do anything in any order, lose sockets and answers, and send again what was not acknowledged. A plain
//! list of what was stored says what each page must get.

use proptest::prelude::*;
use sovereign_relay_protocol::limits::MAILBOX_BYTES;

use super::*;

mod client;
use client::Client;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Connects; or the relay hears it and the client never hears the relay.
    Dial {
        is_heard: bool,
    },
    /// The socket dies, which the relay learns later or never.
    Drop,
    /// The relay hears of a socket that is not the client's any more, or that one says something.
    Ghost {
        pick: usize,
        act: usize,
    },
    /// A new page, which doesn't know what the old one knew.
    Reload,
    /// New messages, so many of such a length.
    Write {
        count: usize,
        length: usize,
    },
    /// Sends all that was not acknowledged; the answers arrive, or don't.
    Flush {
        is_heard: bool,
    },
    /// Reads one page of the mailbox.
    Receive {
        bytes: usize,
    },
    /// Acknowledges what it received.
    Ack,
    Bye,
    Wait {
        millis: u64,
    },
}

struct World {
    record: SessionRecord,
    now: Now,
    a: Client,
    b: Client,
    pages: u128,
    closes: Option<Duration>,
}

impl World {
    fn new() -> Self {
        let new = NewSession {
            life: Duration::from_secs(1_000_000),
            ..asked(1)
        };
        Self {
            record: SessionRecord::new(&new, SessionRules::default(), BEGAN),
            now: BEGAN,
            a: Client {
                connection: 1,
                ..Client::default()
            },
            b: Client {
                connection: 2,
                ..Client::default()
            },
            pages: 2,
            closes: None,
        }
    }

    fn client(&mut self, slot: Slot) -> &mut Client {
        match slot {
            Slot::A => &mut self.a,
            Slot::B => &mut self.b,
        }
    }

    fn step(&mut self, slot: Slot, step: Step) {
        match step {
            Step::Dial { is_heard } => self.dial(slot, is_heard),
            Step::Drop => self.hang_up(slot),
            Step::Ghost { pick, act } => self.haunt(slot, pick, act),
            Step::Reload => self.reload(slot),
            Step::Write { count, length } => self.write(slot, count, length),
            Step::Flush { is_heard } => self.flush(slot, is_heard),
            Step::Receive { bytes } => self.receive(slot, bytes),
            Step::Ack => self.acknowledge(slot),
            Step::Bye => self.bye(slot),
            Step::Wait { millis } => self.now = self.now.plus(Duration::from_millis(millis)),
        }
    }

    fn hang_up(&mut self, slot: Slot) {
        let client = self.client(slot);
        let gone = client.socket.take();
        client.ghosts.extend(gone);
    }

    fn reload(&mut self, slot: Slot) {
        self.hang_up(slot);
        self.pages += 1;
        let connection = self.pages;
        let client = self.client(slot);
        client.connection = connection;
        (client.attempt, client.written, client.seen, client.peer) = (0, 0, 0, None);
        client.outbox.clear();
    }

    fn dial(&mut self, slot: Slot, is_heard: bool) {
        self.hang_up(slot);
        let now = self.now;
        let client = self.client(slot);
        client.attempt += 1;
        let is_load = client.bound != Some(client.connection);
        let bind = again(slot, client.connection, client.attempt, client.seen);
        let recent = client.binds_of_last_minute(is_load, now);
        let most = if is_load {
            NEW_CONNECTIONS_PER_MINUTE
        } else {
            RESUMES_PER_MINUTE
        } as usize;
        match self.record.bind(&bind, now) {
            Ok(bound) => {
                assert!(recent < 2 * most);
                self.on_bound(slot, &bind, &bound, is_load, is_heard);
            }
            Err(BindRefusal::TooManyLoads) => assert!(is_load && recent >= most),
            Err(BindRefusal::TooManyResumes) => assert!(!is_load && recent >= most),
            Err(refusal) => panic!("{refusal}"),
        }
    }

    fn on_bound(&mut self, slot: Slot, bind: &Bind, bound: &Bound, is_load: bool, is_heard: bool) {
        let now = self.now;
        self.closes = None;
        let client = self.client(slot);
        client.binds.push((now.mono, is_load));
        client.bound = Some(bind.connection.0);
        assert!(client.ghosts.iter().all(|ghost| *ghost < bound.epoch));
        (client.holder, client.lost, client.has_left) = (Some(bound.epoch), None, false);
        client.acknowledged = client.acknowledged.max(bind.last as usize);
        if is_load {
            client.generation += 1;
            client.stored = 0;
        }
        let told = (
            bound.generation,
            bound.is_new_load,
            bound.next,
            bound.base as usize,
        );
        assert_eq!(
            told,
            (client.generation, is_load, client.stored + 1, client.acknowledged)
        );
        if is_heard {
            client.socket = Some(bound.epoch);
            client.outbox.retain(|(n, _)| *n >= bound.next);
            client.seen = client.seen.max(bound.base);
        } else {
            client.ghosts.push(bound.epoch);
        }
        let generation = client.generation;
        if is_load && generation > 1 {
            self.client(slot.other()).log.push((generation, None));
        }
    }

    /// A connection that is not the client's any more acts: in vain, unless the relay has seen no newer one.
    fn haunt(&mut self, slot: Slot, pick: usize, act: usize) {
        let client = self.client(slot);
        let Some(ghost) = client.ghosts.get(pick % client.ghosts.len().max(1)).copied() else {
            return;
        };
        if client.holder == Some(ghost) {
            self.record
                .unbind(slot, ghost, Departure::Lost, self.now)
                .unwrap();
            let now = self.now;
            let client = self.client(slot);
            (client.holder, client.lost) = (None, Some(now));
            return;
        }
        let (n, top) = (client.stored + 1, client.log.len() as u64);
        let before = format!("{:?}", self.record);
        let gone = match act % 5 {
            0 => self.record.append(slot, ghost, n, text("ghost")).unwrap_err(),
            1 => self.record.trim(slot, ghost, top).unwrap_err(),
            2 => self.record.read(slot, ghost, 0, 99).unwrap_err(),
            3 => self
                .record
                .unbind(slot, ghost, Departure::Lost, self.now)
                .unwrap_err(),
            _ => self
                .record
                .unbind(slot, ghost, Departure::Bye, self.now)
                .unwrap_err(),
        };
        assert!(matches!(gone, Gone::Fenced));
        assert_eq!(format!("{:?}", self.record), before);
    }

    fn write(&mut self, slot: Slot, count: usize, length: usize) {
        let client = self.client(slot);
        for _ in 0..count {
            client.written += 1;
            let content = format!("{slot:?}.{}.{}", client.connection, client.written);
            client
                .outbox
                .push_back((client.written, format!("{content:.<length$}")));
        }
    }

    fn flush(&mut self, slot: Slot, is_heard: bool) {
        let Some(epoch) = self.client(slot).socket else {
            return;
        };
        for (n, content) in self.client(slot).outbox.clone() {
            let (messages, bytes) = self.client(slot.other()).waiting();
            let has_room =
                messages < MAILBOX_MESSAGES && bytes + content.len() + ENTRY_BYTES <= MAILBOX_BYTES;
            let client = self.client(slot);
            let (generation, is_new) = (client.generation, n == client.stored + 1);
            assert!(n <= client.stored + 1);
            let expected = match (is_new, has_room) {
                (false, _) => Appended::Duplicate,
                (true, true) => Appended::Stored,
                (true, false) => Appended::MailboxFull,
            };
            let appended = self.record.append(slot, epoch, n, text(&content)).unwrap();
            assert_eq!(appended, expected);
            if appended == Appended::MailboxFull {
                break;
            }
            let client = self.client(slot);
            client.stored = client.stored.max(n);
            if is_heard {
                client.outbox.pop_front();
            }
            if is_new {
                self.client(slot.other()).log.push((generation, Some(content)));
            }
        }
    }

    fn receive(&mut self, slot: Slot, bytes: usize) {
        let client = self.client(slot);
        let (Some(epoch), seen) = (client.socket, client.seen) else {
            return;
        };
        let page = self.record.read(slot, epoch, seen, bytes).unwrap();
        let client = self.client(slot);
        let waits = client.log.len() - seen as usize;
        assert_eq!(waits > 0, !page.entries.is_empty());
        assert_eq!(page.is_last, waits == page.entries.len());
        for (index, (seq, generation, content)) in plain(&page.entries).into_iter().enumerate() {
            assert_eq!(seq, seen + 1 + index as u64);
            let (by, stored) = &client.log[seq as usize - 1];
            assert_eq!((generation, content), (*by, stored.as_deref()));
            if content.is_none() {
                assert!(client.peer.is_none_or(|before| before < generation));
                client.peer = Some(generation);
            }
            assert_eq!(*client.peer.get_or_insert(generation), generation);
            client.seen = seq;
            client.sent = client.sent.max(seq);
        }
    }

    fn acknowledge(&mut self, slot: Slot) {
        let client = self.client(slot);
        let (Some(epoch), seen) = (client.socket, client.seen) else {
            return;
        };
        client.acknowledged = client.acknowledged.max(seen as usize);
        let sent = client.sent;
        assert_eq!(
            self.record.trim(slot, epoch, sent + 1).unwrap(),
            Trimmed::BeyondSent
        );
        assert_eq!(self.record.trim(slot, epoch, seen).unwrap(), Trimmed::Trimmed);
    }

    fn bye(&mut self, slot: Slot) {
        let Some(epoch) = self.client(slot).socket else {
            return;
        };
        self.hang_up(slot);
        self.record.unbind(slot, epoch, Departure::Bye, self.now).unwrap();
        let client = self.client(slot);
        (client.holder, client.has_left) = (None, true);
        if self.a.has_left && self.b.has_left {
            self.closes = Some(self.now.mono + Duration::from_secs(5));
        }
    }

    /// The record is as the lists say.
    fn check(&self) -> bool {
        let is_over = self.closes.is_some_and(|closes| closes <= self.now.mono);
        assert_eq!(self.record.is_over(self.now), is_over);
        let view = self.record.view(asked(1).id, self.now).slots;
        for (slot, client, view) in [(Slot::A, &self.a, view.a), (Slot::B, &self.b, view.b)] {
            let (messages, bytes) = client.waiting();
            assert!(messages <= MAILBOX_MESSAGES && bytes <= MAILBOX_BYTES);
            assert_eq!((view.queued, self.record.bytes_for(slot)), (messages, bytes));
            assert_eq!((view.state, view.generation), client.presence(self.now));
        }
        !is_over
    }

    /// Everything calms down: what was written reaches the pages that are there.
    fn settle(&mut self) {
        self.now = self.now.plus(Duration::from_secs(60));
        for slot in Slot::BOTH {
            self.dial(slot, true);
        }
        for _ in 0..10_000 {
            for slot in Slot::BOTH {
                self.flush(slot, true);
                self.receive(slot, usize::MAX);
                self.acknowledge(slot);
            }
            if self.a.outbox.is_empty() && self.b.outbox.is_empty() {
                break;
            }
        }
        for slot in Slot::BOTH {
            self.receive(slot, usize::MAX);
            let client = self.client(slot);
            assert!(client.outbox.is_empty() && client.stored == client.written);
            assert_eq!(client.seen as usize, client.log.len());
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<(Slot, Step)>> {
    let lengths = prop_oneof![Just(0usize), Just(1000), Just(32_000)];
    let step = prop_oneof![
        6 => any::<bool>().prop_map(|is_heard| Step::Dial { is_heard }),
        2 => Just(Step::Drop),
        4 => (any::<usize>(), any::<usize>()).prop_map(|(pick, act)| Step::Ghost { pick, act }),
        2 => Just(Step::Reload),
        6 => (1usize..60, lengths).prop_map(|(count, length)| Step::Write { count, length }),
        6 => prop::bool::weighted(0.7).prop_map(|is_heard| Step::Flush { is_heard }),
        6 => (1usize..100_000).prop_map(|bytes| Step::Receive { bytes }),
        3 => Just(Step::Ack),
        2 => Just(Step::Bye),
        4 => (0u64..20_000).prop_map(|millis| Step::Wait { millis }),
    ];
    let slot = prop_oneof![Just(Slot::A), Just(Slot::B)];
    prop::collection::vec((slot, step), 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_happens_every_page_gets_every_message_once_and_in_order(steps in steps()) {
        let mut world = World::new();
        let lives = steps.into_iter().all(|(slot, step)| {
            world.step(slot, step);
            world.check()
        });
        if lives && !world.record.is_over(world.now.plus(Duration::from_secs(60))) {
            world.settle();
        }
    }
}
