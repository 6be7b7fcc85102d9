//! The pool's two kinds of task: one that dials, one per connection. Both hold the pool weakly, so that a pool which
//! nobody uses any more goes, and its connections with it.

use std::sync::{Arc, Weak, atomic::Ordering};

use metrics::{counter, gauge};
use tokio::time::sleep;

use super::{Base, Pool};
use crate::provider::apns::{
    connection::{self, Driver, End},
    error::ApnsReason,
    keep_alive::KeepAliveTiming,
};

/// Dials until a connection is open or nobody waits for one.
pub(super) async fn dial_until_open(pool: Weak<Pool>, base: Arc<Base>) {
    loop {
        let Some(next_dial) = pool.upgrade().map(|pool| pool.lock().slots.next_dial()) else {
            return;
        };
        sleep(base.clock.now().until(next_dial)).await;
        if !pool.upgrade().is_some_and(|pool| pool.still_wanted()) {
            return;
        }
        let id = base.next_id.fetch_add(1, Ordering::Relaxed);
        let opened = connection::open(&base.transport, &base.endpoint, base.dial_within, id).await;
        let Some(pool) = pool.upgrade() else { return };
        match opened {
            Ok((link, driver)) => return pool.opened(link, driver),
            Err(error) => {
                counter!("relay_apns_dial_failures_total", "provider" => base.name).increment(1);
                tracing::warn!(provider = base.name, %error, "connecting to the provider failed");
                pool.dial_failed();
            }
        }
    }
}

/// Runs one connection to its end.
pub(super) async fn drive(
    pool: Weak<Pool>,
    counted: OpenConnection,
    id: u64,
    driver: Driver,
    timing: KeepAliveTiming,
) {
    let provider = counted.provider;
    let tell = |event| {
        if let Some(pool) = pool.upgrade() {
            pool.heard(id, event);
        }
    };
    let end = driver.run(timing, tell).await;
    let reason = match end {
        End::Done => "done",
        End::Lost => "lost",
        End::Silent => "silent",
    };
    counter!("relay_apns_connections_ended_total", "provider" => provider, "reason" => reason).increment(1);
    tracing::info!(provider, connection = id, reason, "provider connection ended");
    if let Some(pool) = pool.upgrade() {
        pool.take_out(id);
    }
}

/// Counts a connection for as long as its task lives, however it ends.
pub(super) struct OpenConnection {
    provider: &'static str,
}

impl OpenConnection {
    pub(super) fn new(provider: &'static str) -> Self {
        gauge!("relay_apns_connections", "provider" => provider).increment(1.0);
        Self { provider }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        gauge!("relay_apns_connections", "provider" => self.provider).decrement(1.0);
    }
}

/// Once per connection.
pub(super) fn log_goaway(provider: &'static str, connection: u64, reason: ApnsReason) {
    counter!("relay_apns_goaways_total", "provider" => provider, "reason" => reason.as_str()).increment(1);
    tracing::info!(
        provider,
        connection,
        reason = reason.as_str(),
        "provider said goaway"
    );
}

/// Once per connection, and no more than one in a second.
pub(super) fn log_replaced(provider: &'static str, connection: u64) {
    counter!("relay_apns_connections_replaced_total", "provider" => provider).increment(1);
    tracing::warn!(
        provider,
        connection,
        "a provider connection is open but gives no good answer, so it is replaced"
    );
}
