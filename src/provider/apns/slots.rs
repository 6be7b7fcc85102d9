//! Which connection a push takes, and when another one is opened.
//!
//! Pure: called by the pool under its lock, told what happened, asked what to do.
//!
//! ```text
//! a connection:  opened (one stream) -> proven (the peer showed its limit, or answered) -> out (GOAWAY, loss, reload)
//! ```
//!
//! Connections are opened one at a time: only when pushes wait, when every open one is full and proven, and after
//! the back-off of the last failure. Pushes spread over what is open, the least loaded first.
//!
//! Invariant: no connection is given more pushes than its peer allows; an unproven one is given one.

use std::time::Duration;

/// Streams used of one connection at most, whatever its peer allows. Apple shows 1000; a peer that shows none at
/// all must not make the relay hold everything on one connection.
const STREAMS_PER_CONNECTION: usize = 1000;
/// Pushes that may wait until a peer has shown that it is one. The circuit breaker concludes nothing from fewer than
/// 20 calls, so one at a time would never show it that nobody is there; the rest waits in the lane, in fair turns.
pub(super) const UNCONNECTED: usize = 32;

/// How many connections, and how long to wait between failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Bounds {
    pub(super) connections: usize,
    pub(super) backoff_first: Duration,
    pub(super) backoff_longest: Duration,
}

/// The decisions. Ids are the pool's.
#[derive(Debug)]
pub(super) struct Slots {
    bounds: Bounds,
    members: Vec<Member>,
    dialing: bool,
    failures: u32,
    next_dial: Duration,
}

#[derive(Debug)]
struct Member {
    id: u64,
    limit: usize,
    in_flight: usize,
    /// The peer showed a limit of its own.
    shown: bool,
    answered: bool,
}

impl Member {
    fn proven(&self) -> bool {
        self.answered || self.shown
    }

    fn has_room(&self) -> bool {
        self.in_flight < self.limit
    }
}

impl Slots {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            members: Vec::new(),
            dialing: false,
            failures: 0,
            next_dial: Duration::ZERO,
        }
    }

    /// Takes a stream of the least loaded connection with room; of `avoid` only when no other has any.
    pub(super) fn take(&mut self, avoid: Option<u64>) -> Option<u64> {
        let roomy = self.members.iter_mut().filter(|member| member.has_room());
        let chosen = roomy.min_by_key(|member| (Some(member.id) == avoid, member.in_flight))?;
        chosen.in_flight += 1;
        Some(chosen.id)
    }

    /// A stream ended. Connections that are out are no longer counted.
    pub(super) fn give_back(&mut self, id: u64) {
        if let Some(member) = self.member(id) {
            member.in_flight = member.in_flight.saturating_sub(1);
        }
    }

    /// The peer allows this many streams from now on.
    pub(super) fn set_limit(&mut self, id: u64, limit: usize) {
        if let Some(member) = self.member(id) {
            member.limit = limit.min(STREAMS_PER_CONNECTION);
            member.shown |= limit > 1;
        }
    }

    /// The peer answered a push: the provider is well, whatever the answer.
    pub(super) fn answered(&mut self, id: u64) {
        if let Some(member) = self.member(id) {
            member.answered = true;
            self.failures = 0;
        }
    }

    /// Whether to start a dial now (after [`Slots::next_dial`]); the pool then says how it ended.
    pub(super) fn start_dial(&mut self, waiting: usize) -> bool {
        let wanted = waiting > 0
            && !self.dialing
            && self.members.len() < self.bounds.connections
            && self
                .members
                .iter()
                .all(|member| member.proven() && !member.has_room());
        self.dialing |= wanted;
        wanted
    }

    /// Earliest moment of the next dial, on the monotonic clock.
    pub(super) fn next_dial(&self) -> Duration {
        self.next_dial
    }

    /// The dial ended with a connection, which gets one stream until its peer shows more.
    pub(super) fn opened(&mut self, id: u64) {
        self.dialing = false;
        self.members.push(Member {
            id,
            limit: 1,
            in_flight: 0,
            shown: false,
            answered: false,
        });
    }

    /// The dial failed; the next is made by the same task. `jitter` is 0 to 255.
    pub(super) fn dial_failed(&mut self, now: Duration, jitter: u8) {
        self.back_off(now, jitter);
    }

    /// The dial was given up: nobody waits any more.
    pub(super) fn dial_dropped(&mut self) {
        self.dialing = false;
    }

    /// The connection takes no more pushes. One that never answered anything counts as a failed dial, so that a
    /// peer which accepts and closes at once isn't dialled in a loop.
    pub(super) fn out(&mut self, id: u64, now: Duration, jitter: u8) {
        let Some(index) = self.members.iter().position(|member| member.id == id) else {
            return;
        };
        let member = self.members.swap_remove(index);
        if !member.answered {
            self.back_off(now, jitter);
        }
    }

    /// Whether there is a peer: one that accepts a connection and then says nothing is none.
    pub(super) fn reached(&self) -> bool {
        self.members.iter().any(Member::proven)
    }

    /// Pushes that can usefully be under way: what the peers allow, and as much again for each connection that may
    /// still be opened.
    pub(super) fn capacity(&self) -> usize {
        let proven = self.members.iter().filter(|member| member.proven());
        let Some(most) = proven.map(|member| member.limit).max() else {
            return UNCONNECTED;
        };
        let allowed: usize = self.members.iter().map(|member| member.limit).sum();
        let unopened = self.bounds.connections.saturating_sub(self.members.len());
        (allowed + unopened * most).max(1)
    }

    fn member(&mut self, id: u64) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.id == id)
    }

    /// Doubles from the first step to the longest, of which the upper half is left to chance, so that replicas
    /// don't come back together.
    fn back_off(&mut self, now: Duration, jitter: u8) {
        let doubled = self
            .bounds
            .backoff_first
            .saturating_mul(1 << self.failures.min(16));
        let step = doubled.min(self.bounds.backoff_longest);
        self.failures = self.failures.saturating_add(1);
        self.next_dial = now + step / 2 + step / 2 * u32::from(jitter) / 255;
    }
}

#[cfg(test)]
mod tests;
