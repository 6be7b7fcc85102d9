//! A core with a clock in its hand.

use sovereign_relay_protocol::{
    signal::{
        frame::{ClientFrame, Hello, PeerPresence, PeerState, ServerFrame, Welcome},
        id::Role,
        session::SessionLimits,
    },
    time::UnixMillis,
};

use super::super::*;

pub(super) struct Bench {
    pub(super) core: Core,
    pub(super) now: Duration,
}

pub(super) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An answer to a hello.
pub(super) fn welcome(next: u64, base: u64) -> Welcome {
    Welcome {
        slot: Slot::A,
        role: Role::Impolite,
        generation: 1,
        next,
        base,
        peer: PeerPresence {
            state: PeerState::Absent,
            generation: 0,
        },
        expires_at: UnixMillis(0),
        grace_seconds: 30,
        heartbeat_seconds: 25,
        limits: SessionLimits::default(),
        ice_servers: Vec::new(),
    }
}

pub(super) fn message(seq: u64, generation: u32) -> ServerFrame {
    ServerFrame::Message {
        seq,
        generation,
        content: Opaque::new(format!("message {seq}")),
    }
}

impl Bench {
    /// Not connected. Every delay is half of what it may be.
    pub(super) fn new() -> Self {
        let identity = Identity {
            ticket: Redacted::new("ticket"),
            connection: ConnectionId::from_bytes([7; 16]),
        };
        Self {
            core: Core::new(identity, Jitter::fixed(1 << 63), Duration::ZERO),
            now: Duration::ZERO,
        }
    }

    /// Connected for the first time, with the events of that taken.
    pub(super) fn connected() -> Self {
        let mut bench = Self::new();
        bench.core.tick(bench.now);
        bench.dial();
        bench.greet(welcome(1, 0));
        bench.events();
        bench
    }

    /// Expects a dial and lets it succeed.
    pub(super) fn dial(&mut self) -> Hello {
        assert_eq!(self.core.effect(), Some(Effect::Dial));
        self.core.dialled(self.now);
        match self.core.transmit(self.now) {
            Some(ClientFrame::Hello(hello)) => hello,
            other => panic!("a hello comes first, not {other:?}"),
        }
    }

    pub(super) fn greet(&mut self, welcome: Welcome) {
        self.say(&ServerFrame::Welcome(welcome));
    }

    pub(super) fn say(&mut self, frame: &ServerFrame) {
        self.core.text(&frame.to_text(), self.now);
    }

    pub(super) fn pass(&mut self, duration: Duration) {
        self.now += duration;
        self.core.tick(self.now);
    }

    /// Waits until the core wants to be ticked.
    pub(super) fn pass_to_deadline(&mut self) {
        self.now = self.core.deadline(self.now).expect("a deadline");
        self.core.tick(self.now);
    }

    /// Everything that goes out now.
    pub(super) fn frames(&mut self) -> Vec<ClientFrame> {
        std::iter::from_fn(|| self.core.transmit(self.now)).collect()
    }

    /// The numbers of the messages that go out now.
    pub(super) fn numbers(&mut self) -> Vec<u64> {
        let number = |frame| match frame {
            ClientFrame::Message { n, .. } => Some(n),
            _ => None,
        };
        self.frames().into_iter().filter_map(number).collect()
    }

    pub(super) fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.core.send(Opaque::new("e1.x")).unwrap();
        }
    }

    /// Takes every event, as an application does.
    pub(super) fn events(&mut self) -> Vec<ConnectionEvent> {
        let mut events = Vec::new();
        while let Some(Delivery { seq, event }) = self.core.take_event() {
            if let Some(seq) = seq {
                self.core.processed(seq, self.now);
            }
            events.push(event);
        }
        events
    }

    pub(super) fn effects(&mut self) -> Vec<Effect> {
        std::iter::from_fn(|| self.core.effect()).collect()
    }

    /// The one interruption among the events.
    pub(super) fn interruption(&mut self) -> (Interruption, Duration) {
        let interruption = |event| match event {
            ConnectionEvent::Interrupted { cause, retry_in } => Some((cause, retry_in)),
            _ => None,
        };
        let events = self.events();
        events
            .into_iter()
            .find_map(interruption)
            .expect("an interruption")
    }
}
