//! FCM's connections. One HTTP client has one HTTP/2 connection to a host, so there are several clients.
//!
//! A push takes a [`Place`] and tells it how each try went. A connection can be alive and of no use: its peer answers
//! PINGs, and gives no stream (`SETTINGS_MAX_CONCURRENT_STREAMS` of 0, or refusals; RFC 9113, 5.1.2) or no answer. The
//! HTTP client would keep it for ever, so it is the client that is replaced, and the next try dials anew.
//!
//! Invariant: a client that has answered nobody for [`BARREN`], while somebody asked, gets no further try.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::Client;

use crate::provider::{
    alarm::of_the_provider,
    http::{CONNECT_LIMIT, ClientError},
};

/// Calls under way at once: FCM answers in tens of milliseconds, so this is more than 10,000 pushes a second, which is
/// Google's quota for a whole project.
pub(super) const CAPACITY: usize = 1000;
/// Streams on one connection: what Google's front ends allow. The HTTP client keeps what is more in a line of its own
/// that nobody sees; a call whose turn in it doesn't come by its deadline is surely not sent, and said to be so.
const STREAMS: usize = 100;
/// After so long without an answer to anybody a connection is left for a new one: a dial takes no longer, and a push of
/// the default deadline has as long again on the new one.
const BARREN: Duration = CONNECT_LIMIT;
/// Connections that carry [`CAPACITY`].
pub(super) const CONNECTIONS: usize = CAPACITY / STREAMS;

/// The clients. The first ones are filled first, so that a small relay has one connection that stays warm.
pub(super) struct Connections {
    first: Connection,
    more: Vec<Connection>,
    client: Box<dyn Fn() -> Result<Client, ClientError> + Send + Sync>,
}

struct Connection {
    line: Mutex<Line>,
    under_way: AtomicUsize,
}

/// A client, and whether its connection carries anything.
struct Line {
    http: Client,
    /// When it last answered, or was new.
    good_at: Duration,
    /// The first try without an answer since began then.
    failing_since: Option<Duration>,
}

/// A place on a connection, given back when dropped.
pub(super) struct Place<'a> {
    connections: &'a Connections,
    connection: &'a Connection,
}

impl Connections {
    /// [`CONNECTIONS`] clients made by `client`; none dials before it is used.
    pub(super) fn new(
        client: impl Fn() -> Result<Client, ClientError> + Send + Sync + 'static,
    ) -> Result<Self, ClientError> {
        let connection = || client().map(Connection::new);
        Ok(Self {
            first: connection()?,
            more: (1..CONNECTIONS).map(|_| connection()).collect::<Result<_, _>>()?,
            client: Box::new(client),
        })
    }

    /// A place on the first connection that has one. The lane never has more than [`CAPACITY`] calls under way, so
    /// there is always one; a call too many would wait for a stream on the first.
    pub(super) fn place(&self) -> Place<'_> {
        let all = std::iter::once(&self.first).chain(&self.more);
        let free = all.into_iter().find(|connection| connection.take_below(STREAMS));
        let connection = free.unwrap_or_else(|| {
            self.first.under_way.fetch_add(1, Ordering::Relaxed);
            &self.first
        });
        Place {
            connections: self,
            connection,
        }
    }
}

impl Connection {
    fn new(http: Client) -> Self {
        Self {
            line: Mutex::new(Line {
                http,
                good_at: Duration::ZERO,
                failing_since: None,
            }),
            under_way: AtomicUsize::new(0),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_below(&self, limit: usize) -> bool {
        self.under_way
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < limit).then_some(taken + 1)
            })
            .is_ok()
    }
}

impl Line {
    fn answered(&mut self, now: Duration) {
        self.good_at = now;
        self.failing_since = None;
    }

    /// A try that `began` then got no answer until now. `true`: nobody has for too long.
    fn is_barren(&mut self, began: Duration, now: Duration) -> bool {
        let since = self.failing_since.unwrap_or(began).max(self.good_at);
        self.failing_since = Some(since);
        now.saturating_sub(since) >= BARREN
    }
}

impl Place<'_> {
    /// The client for the next try.
    pub(super) fn http(&self) -> Client {
        self.connection.line().http.clone()
    }

    /// Its connection has answered.
    pub(super) fn answered(&self, now: Duration) {
        self.connection.line().answered(now);
    }

    /// A try that `began` then got no stream or no answer until now.
    pub(super) fn failed(&self, began: Duration, now: Duration) {
        let mut line = self.connection.line();
        if !line.is_barren(began, now) {
            return;
        }
        // The old one goes with the last push that still has it. Making one has succeeded before with the same settings.
        if let Ok(http) = (self.connections.client)() {
            let _entered = of_the_provider().entered();
            tracing::debug!("no answer over a connection for long, taking a new one");
            line.http = http;
        }
        line.answered(now);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.connection.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn taken(connections: &Connections) -> Vec<usize> {
        let all = std::iter::once(&connections.first).chain(&connections.more);
        all.map(|connection| connection.under_way.load(Ordering::Relaxed))
            .collect()
    }

    fn connections() -> Connections {
        counted().0
    }

    /// And how many clients were made.
    fn counted() -> (Connections, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let client = move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Client::new())
        };
        (Connections::new(client).unwrap(), made)
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_connection_that_answers_nobody_is_replaced_once_however_many_waited_on_it() {
        let (connections, made) = counted();
        let places: Vec<_> = (0..STREAMS).map(|_| connections.place()).collect();
        for place in &places {
            place.failed(s(10), s(15));
        }
        assert_eq!(made.load(Ordering::Relaxed), CONNECTIONS + 1);
        places[0].failed(s(15), s(19));
        assert_eq!(
            made.load(Ordering::Relaxed),
            CONNECTIONS + 1,
            "the new one has its time too"
        );
        places[0].failed(s(19), s(20));
        assert_eq!(made.load(Ordering::Relaxed), CONNECTIONS + 2);
    }

    #[test]
    fn quick_refusals_add_up_to_the_same_time() {
        let (connections, made) = counted();
        let place = connections.place();
        for tenth in 0..50 {
            let now = s(10) + Duration::from_millis(100 * tenth);
            place.failed(now, now);
        }
        assert_eq!(made.load(Ordering::Relaxed), CONNECTIONS);
        place.failed(s(15), s(15));
        assert_eq!(made.load(Ordering::Relaxed), CONNECTIONS + 1);
    }

    #[test]
    fn a_connection_that_answers_others_is_kept() {
        let (connections, made) = counted();
        let (slow, quick) = (connections.place(), connections.place());
        for second in 1..100 {
            quick.answered(s(second));
            slow.failed(s(second - 1), s(second) + Duration::from_millis(4_999));
        }
        assert_eq!(made.load(Ordering::Relaxed), CONNECTIONS);
    }

    #[test]
    fn a_connection_is_filled_before_the_next_is_opened() {
        let connections = connections();
        let places: Vec<_> = (0..250).map(|_| connections.place()).collect();
        assert_eq!(taken(&connections), [100, 100, 50, 0, 0, 0, 0, 0, 0, 0]);
        drop(places);
        assert_eq!(taken(&connections), [0; CONNECTIONS]);
    }

    #[test]
    fn the_lanes_capacity_fits_and_one_too_many_waits_on_the_first() {
        let connections = connections();
        let _places: Vec<_> = (0..CAPACITY).map(|_| connections.place()).collect();
        assert_eq!(taken(&connections), [STREAMS; CONNECTIONS]);
        let _extra = connections.place();
        assert_eq!(taken(&connections)[0], STREAMS + 1);
    }
}
