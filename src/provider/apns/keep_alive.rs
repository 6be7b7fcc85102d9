//! When a connection is asked whether it still lives.
//!
//! Pure: the driver looks at regular times and says what it sees. A peer that was heard since the last look lives. A
//! busy connection that was not is asked at once, so that packets vanishing both ways cost a push a few seconds and
//! not its deadline; an idle one is asked now and then, which also keeps middleboxes from forgetting it.

use std::time::Duration;

/// The times of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KeepAliveTiming {
    /// Between two looks; a busy connection may be quiet this long.
    pub(super) look_every: Duration,
    /// An idle connection may be quiet this long.
    pub(super) idle_for: Duration,
    /// A PING must be answered within this.
    pub(super) pong_within: Duration,
}

/// What was seen so far.
#[derive(Debug)]
pub(super) struct KeepAlive {
    timing: KeepAliveTiming,
    read: u64,
    quiet: Duration,
}

impl KeepAlive {
    pub(super) fn new(timing: KeepAliveTiming) -> Self {
        Self {
            timing,
            read: 0,
            quiet: Duration::ZERO,
        }
    }

    /// One look: bytes read so far, and whether a push is under way. Says whether to send a PING.
    pub(super) fn look(&mut self, read: u64, busy: bool) -> bool {
        let heard = read != self.read;
        self.read = read;
        self.quiet = if heard {
            Duration::ZERO
        } else {
            self.quiet + self.timing.look_every
        };
        let ask = !heard && (busy || self.quiet >= self.timing.idle_for);
        if ask {
            self.quiet = Duration::ZERO;
        }
        ask
    }
}

#[cfg(test)]
mod tests;
