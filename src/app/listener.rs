//! A listener that runs, and its end.

use std::net::SocketAddr;

use actix_web::dev::ServerHandle;
use tokio::task::JoinHandle;
use tracing::error;

use crate::http::server::Bound;

/// Dropped, it closes at once; [`Listener::close`] lets what is under way finish.
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
