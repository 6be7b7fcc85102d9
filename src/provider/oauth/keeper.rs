//! The one task that fetches tokens, and the pushes that wait for it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::header::HeaderValue;
use sovereign_relay_actors::{
    ports::{Clock, Entropy},
    push::TurnKey,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    fetch::TokenSource,
    response::Issued,
    state::{Asker, Mend, State, Wanted},
};
use crate::steady::steadily;

/// A token as it goes into `Authorization`.
#[derive(Clone)]
pub(crate) struct AccessToken {
    /// `Bearer ...`, marked sensitive.
    pub(crate) header: HeaderValue,
    /// Tells this token from the one before and the one after.
    pub(crate) serial: u64,
}

/// Why a push gets no token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoToken {
    /// None was issued.
    NotIssued {
        /// What came of it the last time.
        error: TokenError,
        /// How long until one is asked for again, where that's settled.
        wait: Option<Duration>,
    },
    /// The provider takes the one that was issued from nobody.
    Doubted {
        /// How long until another may be asked for.
        wait: Duration,
    },
}

/// What came of asking for a token, instead of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenError {
    /// The endpoint was not reached before the deadline.
    Unreachable,
    /// It answers with a 5xx.
    Unavailable,
    /// It answers with something that is neither a token nor an error.
    Unusable,
    /// It asks to be left alone.
    Throttled {
        /// For so long.
        wait: Duration,
    },
    /// It refuses the relay's credentials.
    Refused,
}

/// What waiting pushes are told.
#[derive(Clone, Default)]
struct Board {
    token: Option<AccessToken>,
    failure: Option<TokenError>,
    /// Grows with each finished fetch.
    fetches: u64,
}

struct Shared {
    source: Box<dyn TokenSource>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    state: Mutex<State>,
    board: watch::Sender<Board>,
    wake: Notify,
}

/// Keeps one access token fresh. Dropping it ends its task.
pub(crate) struct TokenKeeper {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl TokenKeeper {
    /// Starts the task; it calls nobody until a push wants a token.
    pub(crate) fn start(
        source: impl TokenSource,
        (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>),
        runtime: &Handle,
    ) -> Self {
        let shared = Arc::new(Shared {
            source: Box::new(source),
            clock,
            entropy,
            state: Mutex::default(),
            board: watch::Sender::default(),
            wake: Notify::new(),
        });
        let kept = Arc::clone(&shared);
        let task = runtime.spawn(steadily("keeping an access token", move || {
            keep(Arc::clone(&kept))
        }));
        Self { shared, task }
    }

    /// A usable token, waiting for one until `deadline` on the monotonic clock. An endpoint that is not reached is
    /// waited for as long as it will be tried again by then; one that answers with an error is asked once for all who
    /// wait; refused credentials are told at once until the next try.
    pub(crate) async fn token(&self, asker: Asker, deadline: Duration) -> Result<AccessToken, NoToken> {
        let mut board = self.shared.board.subscribe();
        let first_seen = board.borrow().fetches;
        loop {
            // The board before the state, which is published first: a token that comes in between is then unseen news.
            let seen = board.borrow_and_update().clone();
            let now = self.shared.clock.now();
            let wanted = self.shared.want(asker, now.mono);
            if let Wanted::Usable { serial, .. } = wanted
                && let Some(token) = seen.token.filter(|token| token.serial == serial)
            {
                return Ok(token);
            }
            if let Some(error) = seen.failure
                && error.is_final(wanted, seen.fetches > first_seen, deadline)
            {
                return Err(error.told_at(now.mono, wanted));
            }
            if let Wanted::Doubted { until } = wanted {
                let wait = until.saturating_sub(now.mono);
                return Err(NoToken::Doubted { wait });
            }
            if timeout(now.until(deadline), board.changed()).await.is_err() {
                let error = seen.failure.unwrap_or(TokenError::Unreachable);
                return Err(error.told_at(self.shared.clock.now().mono, wanted));
            }
        }
    }

    /// The provider answered 401 to this token in a push of `sender`.
    pub(crate) fn refused(&self, token: &AccessToken, sender: TurnKey) -> Mend {
        let now = self.shared.clock.now().mono;
        let mend = self.shared.state().on_refused(token.serial, sender, now);
        self.shared.wake.notify_one();
        mend
    }

    /// The provider gave an answer of its own to a push with this token, and not about it.
    pub(crate) fn accepted(&self, token: &AccessToken) {
        self.shared.state().on_accepted(token.serial);
    }
}

impl TokenError {
    /// Whether a push that waits has to be told this now. `is_new`: the fetch that failed ended while it waited.
    fn is_final(self, wanted: Wanted, is_new: bool, deadline: Duration) -> bool {
        let (backing_off, too_late) = match wanted {
            Wanted::BackingOff { until } => (true, until >= deadline),
            Wanted::Usable { .. } | Wanted::Coming | Wanted::Doubted { .. } => (false, false),
        };
        match self {
            Self::Refused => is_new || backing_off,
            Self::Unavailable | Self::Unusable | Self::Throttled { .. } => is_new || too_late,
            Self::Unreachable => too_late,
        }
    }

    /// With what is left of the wait.
    fn told_at(self, now: Duration, wanted: Wanted) -> NoToken {
        let wait = match wanted {
            Wanted::BackingOff { until } | Wanted::Doubted { until } => Some(until.saturating_sub(now)),
            Wanted::Usable { .. } | Wanted::Coming => None,
        };
        NoToken::NotIssued { error: self, wait }
    }
}

impl Drop for TokenKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    /// Notes that a push wants a token, and wakes the task where that changes what is due.
    fn want(&self, asker: Asker, now: Duration) -> Wanted {
        let wanted = self.state().on_wanted(asker, now);
        match wanted {
            Wanted::Usable { first: false, .. } | Wanted::Doubted { .. } => {}
            Wanted::Usable { first: true, .. } | Wanted::Coming | Wanted::BackingOff { .. } => {
                self.wake.notify_one();
            }
        }
        wanted
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn jitter(&self) -> f64 {
        let mut byte = [0];
        self.entropy.fill(&mut byte);
        f64::from(u8::from_ne_bytes(byte)) / f64::from(u8::MAX)
    }
}

async fn keep(shared: Arc<Shared>) {
    loop {
        let due = shared.state().fetch_due();
        let Some(due) = due else {
            shared.wake.notified().await;
            continue;
        };
        let wait = shared.clock.now().until(due);
        if !wait.is_zero() {
            tokio::select! {
                () = sleep(wait) => {}
                () = shared.wake.notified() => {}
            }
            continue;
        }
        let outcome = shared.source.fetch(shared.clock.now().unix).await;
        publish(&shared, outcome);
    }
}

/// State first, then the board: whoever sees the board change finds the state it goes with.
fn publish(shared: &Shared, outcome: Result<Issued, TokenError>) {
    let now = shared.clock.now().mono;
    let fetches = shared.board.borrow().fetches + 1;
    let issued = outcome.and_then(|issued| header(&issued).map(|header| (issued, header)));
    match issued {
        Ok((issued, header)) => {
            shared.state().on_fetched(fetches, issued.lifetime, now);
            let token = Some(AccessToken {
                header,
                serial: fetches,
            });
            shared.board.send_replace(Board {
                token,
                failure: None,
                fetches,
            });
        }
        Err(error) => {
            let jitter = shared.jitter();
            shared.state().on_failed(error, now, jitter);
            shared.board.send_modify(|board| {
                board.failure = Some(error);
                board.fetches = fetches;
            });
        }
    }
}

fn header(issued: &Issued) -> Result<HeaderValue, TokenError> {
    let text = format!("Bearer {}", issued.token.expose());
    let mut header = HeaderValue::from_str(&text).map_err(|_| TokenError::Unusable)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests;
