//! The connections that are open, and what the wire has counted over all of them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use serde::Serialize;

use crate::{
    apns::{
        auth::{JwtUse, Verified},
        wire::WireHandle,
    },
    sync::lock,
};

/// JWT uses remembered over all connections; a relay shows one per connection and 45 minutes.
const MAX_JWT_USES: usize = 10_000;

/// Counters of the APNs wire since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApnsStats {
    /// The most streams that were ever open on one connection.
    pub most_streams_open: u64,
    /// Streams opened while as many as the acknowledged limit, or more, were open.
    pub limit_violations: u64,
    /// The most streams by which the limit was ever exceeded.
    pub most_streams_beyond_limit: u64,
    /// RST_STREAM frames received.
    pub resets_received: u64,
    /// PING frames received, acknowledgements left out.
    pub pings_received: u64,
    /// PRIORITY frames and HEADERS with a priority received; APNs asks not to send them.
    pub priorities_received: u64,
    /// GOAWAY frames received.
    pub goaways_received: u64,
    /// Changes from one JWT to another, over all connections.
    pub jwt_changes: u64,
}

/// The same, being counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) most_streams_open: AtomicU64,
    pub(crate) limit_violations: AtomicU64,
    pub(crate) most_streams_beyond_limit: AtomicU64,
    pub(crate) resets_received: AtomicU64,
    pub(crate) pings_received: AtomicU64,
    pub(crate) priorities_received: AtomicU64,
    pub(crate) goaways_received: AtomicU64,
    jwt_changes: AtomicU64,
}

/// Open connections of one simulator.
pub(crate) struct Registry {
    pub(crate) counters: Arc<Counters>,
    raised_limit: AtomicU32,
    open: Mutex<HashMap<u64, WireHandle>>,
    jwts: Mutex<Vec<JwtUse>>,
}

/// A connection's place; gives it back.
pub(crate) struct Registration<'a> {
    registry: &'a Registry,
    number: u64,
}

impl Registry {
    pub(crate) fn new(raised_limit: u32) -> Self {
        Self {
            counters: Arc::default(),
            raised_limit: AtomicU32::new(raised_limit),
            open: Mutex::new(HashMap::new()),
            jwts: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn register(&self, number: u64, wire: WireHandle) -> Registration<'_> {
        lock(&self.open).insert(number, wire);
        Registration {
            registry: self,
            number,
        }
    }

    /// What a connection's limit is raised to.
    pub(crate) fn raised_limit(&self) -> u32 {
        self.raised_limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stream_limit(&self, limit: u32) {
        self.raised_limit.store(limit, Ordering::Relaxed);
        for wire in lock(&self.open).values() {
            wire.set_stream_limit(limit);
        }
    }

    pub(crate) fn goaway(&self, reason: &str, last_stream_id: Option<u32>) {
        for wire in lock(&self.open).values() {
            wire.goaway(reason, last_stream_id);
        }
    }

    pub(crate) fn note_jwt_change(&self) {
        self.counters.jwt_changes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_jwt(&self, connection: u64, jwt: &Verified, now_millis: i64) {
        let mut jwts = lock(&self.jwts);
        if jwts.len() < MAX_JWT_USES {
            jwts.push(JwtUse {
                connection,
                jwt: jwt.text.to_string(),
                issued_at: jwt.issued_at,
                first_seen_unix_millis: now_millis,
            });
        }
    }

    pub(crate) fn jwts(&self) -> Vec<JwtUse> {
        lock(&self.jwts).clone()
    }

    pub(crate) fn stats(&self) -> ApnsStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ApnsStats {
            most_streams_open: read(&self.counters.most_streams_open),
            limit_violations: read(&self.counters.limit_violations),
            most_streams_beyond_limit: read(&self.counters.most_streams_beyond_limit),
            resets_received: read(&self.counters.resets_received),
            pings_received: read(&self.counters.pings_received),
            priorities_received: read(&self.counters.priorities_received),
            goaways_received: read(&self.counters.goaways_received),
            jwt_changes: read(&self.counters.jwt_changes),
        }
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        lock(&self.registry.open).remove(&self.number);
    }
}
