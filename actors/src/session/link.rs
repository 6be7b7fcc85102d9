//! What a session's actor wants its connection to say next, in place of a queue.
//!
//! The actor writes, the connection takes. Every cell holds the latest word only (acknowledgements are cumulative,
//! presence is a state), and messages are not here at all: the connection pulls them from the mailbox. So a client that
//! doesn't read costs nothing, and nothing can run full.

use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sovereign_relay_protocol::signal::{
    close::CloseCode,
    frame::{PeerPresence, Refused},
};
use tokio::sync::Notify;

/// Between one connection and its session's actor.
#[derive(Debug)]
pub struct Link {
    words: Mutex<Words>,
    news: Notify,
    is_silent: AtomicBool,
    silence: Notify,
}

/// What is to be said.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Words {
    /// Everything up to this `n` is stored.
    pub ack: Option<u64>,
    /// Nothing from this `n` on was stored.
    pub refusal: Option<Refusal>,
    /// The peer, if it may have changed.
    pub peer: Option<PeerPresence>,
    /// Whether the mailbox may hold something new.
    pub mail: bool,
    /// The relay goes away in so much time.
    pub goaway: Option<Duration>,
    /// The end.
    pub close: Option<CloseCode>,
}

/// A message that was not stored, for now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Why.
    pub code: Refused,
    /// The first that was not stored.
    pub n: u64,
    /// When it may pass.
    pub retry: Duration,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            words: Mutex::new(Words {
                // What waited before the connection came.
                mail: true,
                ..Words::default()
            }),
            news: Notify::new(),
            is_silent: AtomicBool::new(false),
            silence: Notify::new(),
        }
    }
}

impl Link {
    /// Changes what is to be said. Once the end was said nothing changes any more.
    pub(crate) fn say(&self, change: impl FnOnce(&mut Words)) {
        let mut words = self.lock();
        if words.close.is_some() {
            return;
        }
        change(&mut words);
        drop(words);
        self.news.notify_one();
    }

    /// Ends the connection.
    pub fn close(&self, code: CloseCode) {
        self.say(|words| words.close = Some(code));
    }

    /// Takes what is to be said. The end stays, so that it can't be missed.
    pub fn take(&self) -> Words {
        let mut words = self.lock();
        let close = words.close;
        mem::replace(
            &mut *words,
            Words {
                close,
                ..Words::default()
            },
        )
    }

    /// Waits for something to say. Cancel-safe.
    pub async fn news(&self) {
        self.news.notified().await;
    }

    /// Whether the connection was told to end: nothing of a mailbox may be written after this is true.
    pub fn is_closed(&self) -> bool {
        self.lock().close.is_some()
    }

    /// The connection writes no message any more, and no rest of one.
    pub fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Release);
        self.silence.notify_waiters();
    }

    /// Whether the connection writes no message any more.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Acquire)
    }

    /// Waits until the connection writes no message any more.
    pub async fn silent(&self) {
        // Registered before the look, so that a silence in between is not missed.
        let silence = self.silence.notified();
        if !self.is_silent() {
            silence.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Words> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_word_is_taken_once_and_the_end_stays() {
        let link = Link::default();
        link.say(|words| words.ack = Some(1));
        link.say(|words| words.ack = Some(2));
        let words = link.take();
        assert_eq!((words.ack, words.mail), (Some(2), true));
        assert_eq!(link.take(), Words::default());
        link.close(CloseCode::Replaced);
        link.close(CloseCode::SessionOver);
        link.say(|words| words.mail = true);
        for _ in 0..2 {
            let words = link.take();
            assert_eq!((words.close, words.mail), (Some(CloseCode::Replaced), false));
        }
        assert!(link.is_closed());
    }

    #[tokio::test]
    async fn news_said_before_they_are_waited_for_are_not_missed() {
        let link = Link::default();
        link.say(|words| words.ack = Some(1));
        link.news().await;
        link.fall_silent();
        link.silent().await;
    }
}
