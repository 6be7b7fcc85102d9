//! What the three simulators have in common: inbox, script, counters, and a socket that can be made to fail.
//!
//! [`Simulator`] is generic over the provider, so a test commands APNs, FCM and WNS with the same words; what only one
//! of them has is in `apns`, `fcm` and `wns`. The commanding side holds a [`Simulator`], the serving side an
//! `Arc<Shared>`; both look at the same inbox and script.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use rustls::ServerConfig;
use serde::Serialize;

use crate::{
    clock::SimulatorClock,
    error::SimulatorError,
    inbox::Inbox,
    net::{
        gauge::Gauge,
        server::{Serve, Server},
    },
    script::Script,
    sync::lock,
};

/// A kind of provider. Implemented here only.
pub trait Provider: sealed::Sealed + Send + Sync + 'static {
    /// What its devices get.
    type Delivery: Clone + std::fmt::Debug + Serialize + Send + Sync + 'static;
}

pub(crate) mod sealed {
    /// Keeps [`super::Provider`] to this crate.
    pub trait Sealed {}
}

/// One running provider stand-in.
pub struct Simulator<P: Provider> {
    pub(crate) shared: Arc<Shared<P>>,
    pub(crate) server: Server,
}

/// A notification request and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<D> {
    /// What was asked for, as far as it could be read.
    pub delivery: D,
    /// The status it was answered with; absent where it was not answered.
    pub status: Option<u16>,
    /// Why it was refused by the rules; empty otherwise.
    pub refusal: String,
}

/// What the serving and the commanding side share.
pub(crate) struct Shared<P: Provider> {
    pub(crate) provider: P,
    pub(crate) inbox: Inbox<P::Delivery>,
    pub(crate) requests: Inbox<Request<P::Delivery>>,
    pub(crate) script: Script,
    pub(crate) under_way: Gauge,
    pub(crate) clock: Arc<SimulatorClock>,
    arrivals: AtomicU64,
    statuses: Mutex<HashMap<u16, u64>>,
}

impl<P: Provider> Shared<P> {
    pub(crate) fn new(provider: P, inbox_capacity: usize, clock: Arc<SimulatorClock>) -> Self {
        Self {
            provider,
            inbox: Inbox::new(inbox_capacity),
            requests: Inbox::new(inbox_capacity),
            script: Script::default(),
            under_way: Gauge::default(),
            clock,
            arrivals: AtomicU64::new(0),
            statuses: Mutex::new(HashMap::new()),
        }
    }

    /// The place of a request in the order of arrival, from 1.
    pub(crate) fn next_arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Notes how a request ended. `delivery` is called only while recording.
    pub(crate) fn note(&self, status: Option<u16>, refusal: &str, delivery: impl FnOnce() -> P::Delivery) {
        if let Some(status) = status {
            let mut statuses = lock(&self.statuses);
            let count = statuses.entry(status).or_default();
            *count = count.saturating_add(1);
        }
        self.requests.record(|| Request {
            delivery: delivery(),
            status,
            refusal: refusal.to_owned(),
        });
    }
}

impl<P: Provider> Simulator<P> {
    pub(crate) async fn start<S: Serve>(
        port: u16,
        config: Arc<ServerConfig>,
        shared: Arc<Shared<P>>,
        service: Arc<S>,
    ) -> Result<Self, SimulatorError> {
        Ok(Self {
            shared,
            server: Server::start(port, config, service).await?,
        })
    }

    /// What the devices got, in order of arrival.
    pub fn inbox(&self) -> &Inbox<P::Delivery> {
        &self.shared.inbox
    }

    /// Every notification request that was read, refused ones too, in order of their answers.
    pub fn requests(&self) -> &Inbox<Request<P::Delivery>> {
        &self.shared.requests
    }

    /// What requests that keep the rules are met with.
    pub fn script(&self) -> &Script {
        &self.shared.script
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// `https://localhost:<port>`
    pub fn endpoint(&self) -> String {
        format!("https://localhost:{}", self.port())
    }

    /// How many requests were answered with this status.
    pub fn answered_with(&self, status: u16) -> u64 {
        lock(&self.shared.statuses).get(&status).copied().unwrap_or(0)
    }

    /// Counts of answers by status.
    pub fn statuses(&self) -> HashMap<u16, u64> {
        lock(&self.shared.statuses).clone()
    }

    /// Requests under way now.
    pub fn requests_under_way(&self) -> u64 {
        self.shared.under_way.current()
    }

    /// The most requests that were ever under way at the same time.
    pub fn most_requests_under_way(&self) -> u64 {
        self.shared.under_way.highest()
    }

    /// Connections accepted since the start.
    pub fn connections_accepted(&self) -> u64 {
        self.server.accepted()
    }

    /// Connections open now.
    pub fn connections_open(&self) -> usize {
        self.server.open()
    }

    /// Freezes the connections that are open now: nothing is read, written or closed any more (half-open). `false`
    /// lets them go on where they stood. New connections work.
    pub fn blackhole(&self, frozen: bool) {
        self.server.freeze_open(frozen);
    }

    /// Freezes connections to come before their TLS handshake. `false` ends that; [`Simulator::blackhole`] with
    /// `false` thaws those that were accepted meanwhile.
    pub fn blackhole_new_connections(&self, frozen: bool) {
        self.server.freeze_new(frozen);
    }

    /// Cuts all open connections.
    pub fn kill_connections(&self) {
        self.server.kill_open();
    }

    /// Makes dialing fail, or work again on the same port. Open connections stay; see
    /// [`Simulator::kill_connections`].
    pub async fn refuse_connections(&self, refuse: bool) -> Result<(), SimulatorError> {
        self.server.refuse(refuse).await
    }

    /// Records what arrives (the default), or only counts it so that memory stays flat under load.
    pub fn set_recording(&self, recording: bool) {
        self.shared.inbox.set_recording(recording);
        self.shared.requests.set_recording(recording);
    }
}
