//! Which connection a push takes, and when another one is opened.
//!
//! Pure: called by the pool under its lock, told what happened, asked what to do.
//!
//! ```text
//! a connection:  opened (one stream) -> proven (the peer showed its limit, or answered) -> out (GOAWAY, loss, reload)
//!                                       `-> worn (a row of tries without a good answer) -> replaced
//! ```
//!
//! Connections are opened one at a time: only when pushes wait, when every open one is full and proven or is the one
//! that they avoid, and after the back-off of the last failure. Pushes spread over what is open, the least loaded first.
//!
//! A connection can be open, answer every PING and still be of no use: its front end has lost what is behind it. So
//! tries that came to nothing are counted, and any good answer ends the count. Where it is the provider that is down,
//! new connections are as bad, and the time between two replacements is what bounds the handshakes.
//!
//! Invariant: no connection is given more pushes than its peer allows; an unproven one is given one; of those that
//! are still open no more than one is replaced in [`REPLACE_EVERY`].

use std::time::Duration;

/// Streams used of one connection at most, whatever its peer allows. Apple shows 1000; a peer that shows none at
/// all must not make the relay hold everything on one connection.
const STREAMS_PER_CONNECTION: usize = 1000;
/// Pushes that may wait until a peer has shown that it is one. The circuit breaker concludes nothing from fewer than
/// 20 calls, so one at a time would never show it that nobody is there; the rest waits in the lane, in fair turns.
pub(super) const UNCONNECTED: usize = 32;

/// Tries in a row without a good answer that make a connection worn: one or two are the pushes' own bad luck.
const ROW: u32 = 3;
/// A shorter row does too when it has lasted this long, so that a peer which leaves one push at a time without an answer
/// costs one and not three. Half a push's deadline.
const ROW_LASTS: Duration = Duration::from_secs(5);
/// Connections that are open but of no use are replaced this often at most: they must not cost one handshake per push.
const REPLACE_EVERY: Duration = Duration::from_secs(1);

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
    next_replacement: Duration,
}

#[derive(Debug)]
struct Member {
    id: u64,
    limit: usize,
    in_flight: usize,
    /// The peer showed a limit of its own.
    shown: bool,
    answered: bool,
    /// Tries in a row without a good answer.
    row: u32,
    /// When the first of them began.
    row_since: Duration,
    /// The last good answer.
    good_at: Duration,
}

impl Member {
    fn new(id: u64) -> Self {
        Self {
            id,
            limit: 1,
            in_flight: 0,
            shown: false,
            answered: false,
            row: 0,
            row_since: Duration::ZERO,
            good_at: Duration::ZERO,
        }
    }

    /// Neither worn nor the one to avoid. A short row makes a connection worn when its time has come, not before.
    fn is_sound_beside(&self, avoid: Option<u64>) -> bool {
        self.row < ROW && Some(self.id) != avoid
    }

    fn is_worn(&self, now: Duration) -> bool {
        self.row >= ROW || self.row > 0 && now >= self.row_since.saturating_add(ROW_LASTS)
    }

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
            next_replacement: Duration::ZERO,
        }
    }

    /// Takes a stream of the least loaded connection with room; of `avoid` and worn ones only when no other has any.
    pub(super) fn take(&mut self, avoid: Option<u64>) -> Option<u64> {
        let roomy = self.members.iter_mut().filter(|member| member.has_room());
        let chosen = roomy.min_by_key(|member| (!member.is_sound_beside(avoid), member.in_flight))?;
        chosen.in_flight += 1;
        Some(chosen.id)
    }

    /// The same, but never of those.
    pub(super) fn take_sound(&mut self, avoid: Option<u64>) -> Option<u64> {
        let sound = self
            .members
            .iter_mut()
            .filter(|member| member.has_room() && member.is_sound_beside(avoid));
        let chosen = sound.min_by_key(|member| member.in_flight)?;
        chosen.in_flight += 1;
        Some(chosen.id)
    }

    /// Whether a push that finds no sound connection may hope for another one: not while dials fail.
    pub(super) fn may_open(&self, now: Duration) -> bool {
        self.members.len() < self.bounds.connections && now >= self.next_dial
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

    /// The peer answered a push: there is one, whatever the answer.
    pub(super) fn answered(&mut self, id: u64) {
        if let Some(member) = self.member(id) {
            member.answered = true;
            self.failures = 0;
        }
    }

    /// The answer was a good one: the provider is well behind this connection, whatever it thinks of the push.
    pub(super) fn answered_well(&mut self, id: u64, now: Duration) {
        if let Some(member) = self.member(id) {
            member.row = 0;
            member.good_at = member.good_at.max(now);
        }
    }

    /// A try that began then came to no good answer. Where one has come since, it says nothing of the connection.
    pub(super) fn missed(&mut self, id: u64, began: Duration) {
        let Some(member) = self.member(id) else { return };
        if began < member.good_at {
            return;
        }
        if member.row == 0 {
            member.row_since = began;
        }
        member.row = member.row.saturating_add(1);
    }

    /// The peer itself said that this connection is of no more use.
    pub(super) fn condemn(&mut self, id: u64) {
        if let Some(member) = self.member(id) {
            member.row = ROW;
        }
    }

    /// Whether any try came to nothing lately: else there is nothing to replace.
    pub(super) fn any_missed(&self) -> bool {
        self.members.iter().any(|member| member.row > 0)
    }

    /// The worn connection to be replaced now; whoever asks takes it out.
    pub(super) fn replace_one(&mut self, now: Duration) -> Option<u64> {
        if now < self.next_replacement {
            return None;
        }
        let worn = self.members.iter().find(|member| member.is_worn(now))?.id;
        self.next_replacement = now.saturating_add(REPLACE_EVERY);
        Some(worn)
    }

    /// Whether to start a dial now (after [`Slots::next_dial`]); the pool then says how it ended.
    pub(super) fn start_dial(&mut self, waiting: usize) -> bool {
        self.dial_if(waiting > 0, |_| false)
    }

    /// The same, for a push that waits for a sound connection that is not `avoid`.
    pub(super) fn start_dial_beside(&mut self, avoid: Option<u64>) -> bool {
        self.dial_if(true, |member| !member.is_sound_beside(avoid))
    }

    fn dial_if(&mut self, asked: bool, is_passed_over: impl Fn(&Member) -> bool) -> bool {
        let is_no_choice = |member: &Member| is_passed_over(member) || member.proven() && !member.has_room();
        let wanted = asked
            && !self.dialing
            && self.members.len() < self.bounds.connections
            && self.members.iter().all(is_no_choice);
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
        self.members.push(Member::new(id));
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
