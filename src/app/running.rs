//! A relay that serves, until it is told otherwise.
//!
//! Made by [`start_with`](super::start_with). A stop goes from the outside in, each step while all behind it still
//! works; a reload replaces what may change without one.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use sovereign_relay_actors::ports::Clock;
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::{
    follow::Following, listener::Listener, push_half::PushHalf, records::Place, signaling::SignalHalf,
};
use crate::{
    auth::Authority,
    config::{Config, ConfigError, texts::Texts},
    defaults::STOP_TIME,
    shutdown::{Lifecycle, Phase},
    store::embedded::EmbeddedStore,
};

/// How often a stop looks whether the store is free. Usually it is at the first look.
const RELEASE_CHECK: Duration = Duration::from_millis(5);

/// A relay that serves. Dropped without [`RunningRelay::stop`], it ends without finishing what is under way.
pub struct RunningRelay {
    /// Where the public listener is bound.
    pub public_addr: SocketAddr,
    /// Where the admin listener is bound.
    pub admin_addr: SocketAddr,
    pub(super) drain_grace: Duration,
    pub(super) lifecycle: Lifecycle,
    pub(super) public: Listener,
    pub(super) admin: Listener,
    pub(super) push: PushHalf,
    pub(super) signal: SignalHalf,
    pub(super) upkeep: JoinSet<()>,
    pub(super) authority: Arc<Authority>,
    pub(super) following: Following,
    pub(super) place: Place,
    pub(super) clock: Arc<dyn Clock>,
    /// What the relay works by, for a reload to compare with.
    pub(super) texts: Texts,
}

impl RunningRelay {
    /// Takes over the settings that need no restart, and tells the log which they were and which wait for one. Pushes
    /// under way end as they began.
    pub(super) fn reload(&mut self, loaded: Result<Config, ConfigError>) {
        let config = match loaded {
            Ok(config) => config,
            Err(error) => {
                count_reload("refused");
                return error!(%error, "the configuration can't be read, everything stays as it was");
            }
        };
        config.warnings.iter().for_each(|warning| warn!("{warning}"));
        let all_taken = self.push.reload(&config);
        self.signal.reload(&config);
        let changes = self.texts.take_over(&config.texts);
        let (taken_over, need_restart) = (changes.taken_over.join(", "), changes.need_restart.join(", "));
        count_reload(if all_taken { "applied" } else { "partly" });
        if all_taken {
            info!(taken_over, need_restart, "configuration reloaded");
        } else {
            warn!(
                taken_over,
                need_restart, "configuration reloaded but for what was refused"
            );
        }
    }

    /// Stops in order: looks unready from this call on, for the grace, then finishes what is under way.
    pub fn stop(self) -> impl Future<Output = ()> {
        self.lifecycle.advance(Phase::Draining);
        self.signal.leave(self.drain_grace);
        self.end()
    }

    async fn end(self) {
        tokio::time::sleep(self.drain_grace).await;
        self.lifecycle.advance(Phase::Closing);
        let rest = STOP_TIME.saturating_sub(self.drain_grace);
        if tokio::time::timeout(rest, self.close()).await.is_err() {
            warn!("not everything ended in time");
        }
        info!("stopped");
    }

    /// Returns when a listener ends that nobody asked to end.
    pub(super) async fn listener_failed(&mut self) {
        tokio::select! {
            () = self.public.ended() => {}
            () = self.admin.ended() => {}
        }
    }

    async fn close(mut self) {
        self.public.close().await;
        self.signal.close().await;
        let memories = self.push.memories.clone();
        self.push.close().await;
        memories.keep(&self.place, self.clock.now()).await;
        self.following.stop().await;
        self.upkeep.shutdown().await;
        self.authority.save_first_uses().await;
        drop(self.authority);
        self.admin.close().await;
        if let Place::Here(store) = self.place {
            released(store).await;
        }
    }
}

fn count_reload(result: &'static str) {
    metrics::counter!("relay_reloads_total", "result" => result).increment(1);
}

/// Waits until nothing but us holds the store, then closes it: when a stop is over, the data directory is free.
/// Threads that have just ended may still be dropping what they held.
async fn released(store: Arc<EmbeddedStore>) {
    let mut looks = tokio::time::interval(RELEASE_CHECK);
    while Arc::strong_count(&store) > 1 {
        looks.tick().await;
    }
}
