//! A signaling connection as a pure state machine. The shell (`super::shell`) feeds it what happens, with the time, and
//! does what it says; so hours pass in a test in no time.
//!
//! ```text
//! input:  start, dialled, dial_failed, text, life, closed, tick, send, processed, leave, wake, request_ice
//! output: effect (dial, hang up), transmit (the next frame, when the socket can take one), take_event, deadline
//! ```
//!
//! Invariant: a message that was sent is transmitted, and one that is received is handed on, exactly once and in order
//! over any number of connections; or the connection ends and says why.

mod backoff;
pub(crate) mod events;
mod frames;
mod ice;
mod inbox;
mod liveness;
pub(crate) mod outbox;
mod pace;
mod presence;
mod transmit;

use std::{collections::VecDeque, time::Duration};

use sovereign_relay_protocol::{
    limits,
    redacted::Redacted,
    signal::{
        close::{CloseCode, Next},
        frame::{Mood, Opaque},
        id::{ConnectionId, Slot},
        session::SessionLimits,
    },
};

use self::{
    backoff::Backoff,
    events::{Delivery, Events},
    ice::IceRequests,
    inbox::Inbox,
    liveness::{Liveness, Pulse},
    outbox::{Outbox, TooLarge},
    presence::Presence,
};
use super::event::{ConnectionEvent, Ended, Interruption};
use crate::entropy::Jitter;

/// DNS, TCP, TLS and the upgrade together: longer is a dead end.
const DIAL_LIMIT: Duration = Duration::from_secs(10);
/// After a wake-up a dial or a greeting under way, perhaps over a network that is gone, gets so much longer.
const WAKE_DIAL_LIMIT: Duration = Duration::from_secs(4);
/// From the hello to the welcome.
const WELCOME_LIMIT: Duration = Duration::from_secs(10);
/// Who leaves waits so long for the relay to store what was sent.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
/// Without a welcome for longer than a session lives there is none to come back to.
const UNREACHABLE_AFTER: Duration = Duration::from_secs(limits::SESSION_SECONDS_MAX as u64 + 60);

/// Who this side is.
pub(crate) struct Identity {
    /// The right to a slot.
    pub(crate) ticket: Redacted,
    /// Drawn for this connection and never stored.
    pub(crate) connection: ConnectionId,
}

/// What the shell does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Opens a connection.
    Dial,
    /// Ends the connection, or the dial, with this code.
    HangUp(CloseCode),
}

/// ```text
///                  +------------------ refused, too slow ----------------+
///                  v                                                     |
/// start --> Waiting --delay over--> Dialing --dialled--> Greeting --welcome--> Open
///                  ^                                        |              |
///                  +--- lost, silent, retryable code, goaway, fault -------+
/// any --final code, left, out of step, unreachable for too long--> Over
/// ```
enum Phase {
    /// `patient`: the relay asked for this wait, a wake-up doesn't shorten it.
    Waiting {
        until: Duration,
        patient: bool,
    },
    Dialing {
        until: Duration,
    },
    Greeting {
        until: Duration,
        said_hello: bool,
    },
    Open(Open),
    Over,
}

struct Open {
    since: Duration,
    liveness: Liveness,
    /// The moment drawn after a `goaway`.
    move_at: Option<Duration>,
    pong: bool,
}

struct Leaving {
    mood: Mood,
    until: Duration,
}

pub(crate) struct Core {
    identity: Identity,
    jitter: Jitter,
    phase: Phase,
    attempt: u64,
    slot: Option<Slot>,
    last_open: Duration,
    backoff: Backoff,
    outbox: Outbox,
    inbox: Inbox,
    presence: Presence,
    ice: IceRequests,
    leaving: Option<Leaving>,
    effects: VecDeque<Effect>,
    events: Events,
}

impl Core {
    /// A connection that dials at its first tick.
    pub(crate) fn new(identity: Identity, jitter: Jitter, now: Duration) -> Self {
        Self {
            identity,
            jitter,
            phase: Phase::Waiting {
                until: now,
                patient: false,
            },
            attempt: 0,
            slot: None,
            last_open: now,
            backoff: Backoff::default(),
            outbox: Outbox::default(),
            inbox: Inbox::default(),
            presence: Presence::default(),
            ice: IceRequests::default(),
            leaving: None,
            effects: VecDeque::new(),
            events: Events::default(),
        }
    }

    /// The next thing to do.
    pub(crate) fn effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The next event for the application.
    pub(crate) fn take_event(&mut self) -> Option<Delivery> {
        self.events.take()
    }

    /// Whether an event waits.
    pub(crate) fn has_event(&self) -> bool {
        !self.events.is_empty()
    }

    /// Whether the socket may be read. While the application takes nothing, the relay keeps the rest.
    pub(crate) fn is_reading(&self) -> bool {
        self.events.has_room()
    }

    /// Whether [`Core::send`] may be called.
    pub(crate) fn has_room(&self) -> bool {
        self.outbox.has_room() && !self.is_over()
    }

    /// Whether it ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Highest n that the relay has stored.
    pub(crate) fn stored(&self) -> u64 {
        self.outbox.stored()
    }

    /// What the relay allows, as far as it said so.
    pub(crate) fn limits(&self) -> SessionLimits {
        self.outbox.limits()
    }

    /// The n of a message that turned out to be longer than the relay takes. Those behind it move up by one.
    pub(crate) fn take_dropped(&mut self) -> Option<u64> {
        self.outbox.take_dropped()
    }

    /// When [`Core::tick`] has to be called next, if nothing happens before.
    pub(crate) fn deadline(&self, now: Duration) -> Option<Duration> {
        let leave = self.leaving.as_ref().map(|leaving| leaving.until);
        match &self.phase {
            Phase::Over => None,
            Phase::Waiting { until, .. } | Phase::Dialing { until } | Phase::Greeting { until, .. } => {
                Some(leave.map_or(*until, |leave| leave.min(*until)))
            }
            Phase::Open(open) => {
                // Frames that are due already wait for the socket, not for the time.
                let frames = [self.outbox.deadline(), self.inbox.deadline(), self.ice.deadline()];
                let frames = frames.into_iter().flatten().filter(|at| *at > now);
                let states = [Some(open.liveness.deadline()), open.move_at, leave];
                states.into_iter().flatten().chain(frames).min()
            }
        }
    }

    /// The deadline has passed. Too early does no harm.
    pub(crate) fn tick(&mut self, now: Duration) {
        if self.leaving.as_ref().is_some_and(|leaving| now >= leaving.until) {
            self.end(Ended::Left, Some(CloseCode::Normal));
            return;
        }
        match &self.phase {
            Phase::Waiting { until, .. } if now >= *until => self.dial(now),
            Phase::Dialing { until } if now >= *until => {
                self.interrupt(Interruption::Unreachable, Some(CloseCode::NoHello), now);
            }
            Phase::Greeting { until, .. } if now >= *until => {
                self.interrupt(Interruption::NoWelcome, Some(CloseCode::NoHello), now);
            }
            Phase::Open(_) => self.tick_open(now),
            Phase::Waiting { .. } | Phase::Dialing { .. } | Phase::Greeting { .. } | Phase::Over => {}
        }
    }

    /// The dial succeeded.
    pub(crate) fn dialled(&mut self, now: Duration) {
        if matches!(self.phase, Phase::Dialing { .. }) {
            let until = now + WELCOME_LIMIT;
            let said_hello = false;
            self.phase = Phase::Greeting { until, said_hello };
        }
    }

    /// The dial failed. With a status, an HTTP server said no for good.
    pub(crate) fn dial_failed(&mut self, refused: Option<u16>, now: Duration) {
        match refused {
            Some(status) => self.end(Ended::Refused(status), None),
            None => self.interrupt(Interruption::Unreachable, None, now),
        }
    }

    /// The connection was closed with this code, or lost (1006).
    pub(crate) fn closed(&mut self, code: u16, now: Duration) {
        if self.is_over() {
            return;
        }
        match CloseCode::next_for(code) {
            Next::Stop => {
                let known = CloseCode::from_code(code);
                self.end(known.map_or(Ended::ClosedUnknown(code), Ended::Closed), None);
            }
            next @ (Next::Resume | Next::ResumeWithinGoaway | Next::ResumeLater) => {
                self.wait(Interruption::Closed(code), next, now);
            }
        }
    }

    /// A control frame came, and where it is a ping its answer goes out.
    pub(crate) fn life(&mut self, now: Duration) {
        if let Phase::Open(open) = &mut self.phase {
            open.liveness.heard(now);
            open.liveness.said(now);
        }
    }

    /// Queues a message and gives its n.
    pub(crate) fn send(&mut self, content: Opaque) -> Result<u64, TooLarge> {
        self.outbox.push(content)
    }

    /// The application took everything up to `seq`.
    pub(crate) fn processed(&mut self, seq: u64, now: Duration) {
        self.inbox.processed(seq, now);
    }

    /// Asks for fresh TURN credentials: at once, or as soon as the relay allows it.
    pub(crate) fn request_ice(&mut self) {
        self.ice.want();
    }

    /// The network may have changed: don't wait, and don't trust the connection.
    pub(crate) fn wake(&mut self, now: Duration) {
        match &mut self.phase {
            Phase::Open(open) => open.liveness.wake(now),
            Phase::Waiting {
                until,
                patient: false,
            } => *until = now.min(*until),
            Phase::Dialing { until } | Phase::Greeting { until, .. } => {
                *until = (now + WAKE_DIAL_LIMIT).min(*until);
            }
            Phase::Waiting { patient: true, .. } | Phase::Over => {}
        }
    }

    /// Leaves, once the relay has stored what was sent or a limit is over.
    pub(crate) fn leave(&mut self, mood: Mood, now: Duration) {
        let until = now + LEAVE_LIMIT;
        self.leaving.get_or_insert(Leaving { mood, until });
    }

    fn dial(&mut self, now: Duration) {
        if now.saturating_sub(self.last_open) > UNREACHABLE_AFTER {
            self.end(Ended::Unreachable, None);
            return;
        }
        self.attempt += 1;
        let until = now + DIAL_LIMIT;
        self.phase = Phase::Dialing { until };
        self.effects.push_back(Effect::Dial);
    }

    fn tick_open(&mut self, now: Duration) {
        let is_reading = self.is_reading();
        let Phase::Open(open) = &mut self.phase else {
            return;
        };
        if !is_reading {
            // Who doesn't read can't conclude anything from silence.
            open.liveness.heard(now);
        }
        if open.liveness.tick(now) == Pulse::Lost {
            self.interrupt(Interruption::Silent, Some(CloseCode::HeartbeatsMissed), now);
        } else if open.move_at.is_some_and(|at| now >= at) {
            self.effects.push_back(Effect::HangUp(CloseCode::GoingAway));
            self.wait(Interruption::Moving, Next::ResumeWithinGoaway, now);
            self.tick(now);
        }
    }

    fn interrupt(&mut self, cause: Interruption, hang_up: Option<CloseCode>, now: Duration) {
        if self.is_over() {
            return;
        }
        self.effects.extend(hang_up.map(Effect::HangUp));
        self.wait(cause, Next::Resume, now);
    }

    fn wait(&mut self, cause: Interruption, next: Next, now: Duration) {
        let mut planned = None;
        if let Phase::Open(open) = &self.phase {
            self.last_open = now;
            self.backoff.lived(now.saturating_sub(open.since));
            planned = open.move_at.filter(|_| next == Next::ResumeWithinGoaway);
        }
        let retry_in = match planned {
            Some(at) => Some(at.saturating_sub(now)),
            None => self.backoff.next(next, &mut self.jitter),
        };
        let Some(retry_in) = retry_in else { return };
        self.phase = Phase::Waiting {
            until: now + retry_in,
            patient: next != Next::Resume,
        };
        self.events.tell(ConnectionEvent::Interrupted { cause, retry_in });
    }

    fn end(&mut self, ended: Ended, hang_up: Option<CloseCode>) {
        if self.is_over() {
            return;
        }
        self.effects.extend(hang_up.map(Effect::HangUp));
        self.phase = Phase::Over;
        self.events.tell(ConnectionEvent::Ended(ended));
    }
}

#[cfg(test)]
mod tests;
