//! FCM's connections. One HTTP client has one HTTP/2 connection to a host, so there are several clients.

use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::Client;

/// Calls under way at once: FCM answers in tens of milliseconds, so this is more than 10,000 pushes a second, which is
/// Google's quota for a whole project.
pub(super) const CAPACITY: usize = 1000;
/// Streams on one connection: what Google's front ends allow. The HTTP client keeps what is more in a line of its own
/// that nobody sees; a call whose turn in it doesn't come by its deadline is surely not sent, and said to be so.
const STREAMS: usize = 100;
/// Connections that carry [`CAPACITY`].
pub(super) const CONNECTIONS: usize = CAPACITY / STREAMS;

/// The clients. The first ones are filled first, so that a small relay has one connection that stays warm.
pub(super) struct Connections {
    first: Connection,
    more: Vec<Connection>,
}

struct Connection {
    http: Client,
    under_way: AtomicUsize,
}

/// A place on a connection, given back when dropped.
pub(super) struct Place<'a> {
    connection: &'a Connection,
}

impl Connections {
    /// [`CONNECTIONS`] clients made by `client`; none dials before it is used.
    pub(super) fn new<E>(client: impl Fn() -> Result<Client, E>) -> Result<Self, E> {
        let connection = || {
            client().map(|http| Connection {
                http,
                under_way: AtomicUsize::new(0),
            })
        };
        Ok(Self {
            first: connection()?,
            more: (1..CONNECTIONS).map(|_| connection()).collect::<Result<_, _>>()?,
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
        Place { connection }
    }
}

impl Connection {
    fn take_below(&self, limit: usize) -> bool {
        self.under_way
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < limit).then_some(taken + 1)
            })
            .is_ok()
    }
}

impl Place<'_> {
    pub(super) fn http(&self) -> &Client {
        &self.connection.http
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.connection.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(connections: &Connections) -> Vec<usize> {
        let all = std::iter::once(&connections.first).chain(&connections.more);
        all.map(|connection| connection.under_way.load(Ordering::Relaxed))
            .collect()
    }

    fn connections() -> Connections {
        Connections::new(|| Ok::<_, ()>(Client::new())).unwrap()
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
