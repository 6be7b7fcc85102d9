//! Stops in order, and tells everybody how far it has come.
//!
//! ```text
//! Starting -> Serving -> Draining -> Closing -> (process ends)
//!                        readyz 503  listeners closed, pushes in flight finish, nothing new begins
//! ```
//!
//! SIGTERM or SIGINT begins the drain: `/readyz` says so at once, while pushes are still served for the drain grace,
//! since a load balancer needs a moment to look away. Then the listeners close, every answer closes its
//! connection, and what is under way may finish. A second signal ends the process at once. SIGHUP reloads and ends
//! nothing.
//!
//! Called by [`crate::app`] (transitions), [`crate::http`] (reads). Invariant: phases only go forward.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How far the relay is in its life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Phase {
    /// Parts are being put together.
    Starting,
    /// Normal.
    Serving,
    /// Asked to stop; still serves, no longer ready.
    Draining,
    /// Finishes what is under way and begins nothing new.
    Closing,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Starting, Self::Serving, Self::Draining, Self::Closing];

    /// Whether a push may begin.
    pub fn takes_work(self) -> bool {
        matches!(self, Self::Serving | Self::Draining)
    }
}

/// The phase, shared by everything that has to know it. Clones are the same.
#[derive(Clone, Debug)]
pub struct Lifecycle(Arc<AtomicU8>);

impl Default for Lifecycle {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(Phase::Starting as u8)))
    }
}

impl Lifecycle {
    /// Where it stands.
    pub fn phase(&self) -> Phase {
        let number = self.0.load(Ordering::Acquire);
        Phase::ALL
            .into_iter()
            .find(|phase| *phase as u8 == number)
            .unwrap_or(Phase::Closing)
    }

    /// Goes on to `phase`; an earlier one than now is ignored, so that two parts that hear of the stop at
    /// different times can't make the relay look ready again.
    pub fn advance(&self, phase: Phase) {
        self.0.fetch_max(phase as u8, Ordering::AcqRel);
    }
}

/// The operator's signals, subscribed once, so that none is missed between two waits.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Subscribes. From here on SIGTERM and SIGINT no longer end the process by themselves.
    pub fn subscribe() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next signal's name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The operator's wish that the configuration be read again.
pub struct ReloadSignal(Signal);

impl ReloadSignal {
    /// Subscribes. From here on SIGHUP no longer ends the process.
    pub fn subscribe() -> std::io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Returns at the next SIGHUP.
    pub async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_relay_starts_without_taking_work() {
        assert_eq!(Lifecycle::default().phase(), Phase::Starting);
        assert!(!Phase::Starting.takes_work());
    }

    #[test]
    fn a_draining_relay_still_takes_work_and_a_closing_one_does_not() {
        assert!(Phase::Draining.takes_work());
        assert!(!Phase::Closing.takes_work());
    }

    proptest! {
        #[test]
        fn phases_never_go_back(steps in proptest::collection::vec(0usize..4, 1..20)) {
            let lifecycle = Lifecycle::default();
            let mut furthest = Phase::Starting;
            for step in steps {
                lifecycle.advance(Phase::ALL[step]);
                furthest = furthest.max(Phase::ALL[step]);
                prop_assert_eq!(lifecycle.phase(), furthest);
            }
        }
    }
}
