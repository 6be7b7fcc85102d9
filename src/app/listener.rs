//! The two listeners: how they are bound, how they run, and their end.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use actix_web::{dev::ServerHandle, web::Data};
use tokio::task::JoinHandle;
use tracing::error;

use super::{Ports, StartError, records::Records, threads};
use crate::{
    admin::{self, Admin},
    config::Config,
    defaults::STOP_TIME,
    http::{self, server::Bound, services::Services},
    limit::{BodyBounds, BodyBudget},
    ws::upgrade::Upgrades,
};

/// What actors, lanes, providers and the admin listener get of a stop after the public listener.
pub(super) const CLOSING_REST: Duration = Duration::from_secs(2);

/// Binds the public API and the WebSocket endpoint, and serves them.
pub(super) fn listen_public(
    config: &Config,
    ports: &Ports,
    services: Data<Services>,
    upgrades: Arc<Upgrades>,
    connections: usize,
) -> Result<Listener, StartError> {
    let closing_time = closing_time(config.timeouts.drain_grace);
    let workers = threads(config.listen.workers);
    let per_address = config.listen.of_an_address(connections);
    let limits = ports
        .tuning
        .public(workers, (connections, per_address), closing_time);
    let address = config.listen.address;
    let bound = http::bind(address, limits, services, Some(upgrades))
        .map_err(|cause| StartError::Listen { address, cause })?;
    Ok(Listener::run(bound))
}

/// Binds the operator's side, and serves it. `gauges` runs before each look at the metrics.
pub(super) fn listen_admin(
    config: &Config,
    ports: &Ports,
    records: &Records,
    gauges: impl Fn() + Send + Sync + 'static,
    services: Data<Services>,
) -> Result<Listener, StartError> {
    let render = ports.metrics.clone();
    let metrics = move || {
        gauges();
        render()
    };
    let token = records.admin_token.clone();
    let admin = Data::new(Admin {
        services,
        token,
        bodies: BodyBudget::new(BodyBounds::default()),
        metrics: Arc::new(metrics),
    });
    let address = config.admin.listen;
    let bound = admin::bind(address, ports.tuning.admin(), admin)
        .map_err(|cause| StartError::Listen { address, cause })?;
    Ok(Listener::run(bound))
}

/// How long answers may take once the listener closes: longer than any push, so that nobody is cut off without one.
pub(super) fn closing_time(grace: Duration) -> Duration {
    STOP_TIME.saturating_sub(grace + CLOSING_REST)
}

/// A listener that runs. Dropped, it closes at once; [`Listener::close`] lets what is under way finish.
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    handle: ServerHandle,
    task: JoinHandle<std::io::Result<()>>,
    has_ended: bool,
}

impl Listener {
    /// Runs a bound server on the current actix system.
    pub(super) fn run(bound: Bound) -> Self {
        let handle = bound.server.handle();
        Self {
            address: bound.address,
            handle,
            task: actix_rt::spawn(bound.server),
            has_ended: false,
        }
    }

    /// Stops accepting at once, closes idle connections, and lets the others finish their request within the
    /// listener's closing time.
    pub(super) async fn close(&mut self) {
        self.handle.stop(true).await;
        self.ended().await;
    }

    /// Returns when the server has ended, whoever ended it.
    pub(super) async fn ended(&mut self) {
        if !self.has_ended && !matches!((&mut self.task).await, Ok(Ok(()))) {
            error!(address = %self.address, "a listener failed");
        }
        self.has_ended = true;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The command is on its way when this returns; awaiting only waits for the end.
        drop(self.handle.stop(false));
    }
}
