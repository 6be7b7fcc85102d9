//! Where sessions are kept: in this process, or in Redis where replicas share them.

use std::sync::Arc;

use metrics::gauge;
use sovereign_relay_actors::session::{port::SessionStore, registry::Sessions};
use sovereign_relay_protocol::capabilities::Durability;

use super::{Ports, gauges::count};
use crate::{
    config::Config,
    store::{redis::sessions::RedisSessions, sessions::memory::MemorySessions},
};

/// One of the two.
#[derive(Clone)]
pub(super) enum Shelf {
    /// Without `REDIS_URL`.
    Memory(Arc<MemorySessions>),
    /// With it.
    Redis(RedisSessions),
}

impl Shelf {
    pub(super) fn open(config: &Config, ports: &Ports) -> Self {
        let (bounds, rules) = (config.signaling.bounds, config.signaling.rules);
        let clock = ports.clock.clone();
        match &config.storage.redis {
            None => Self::Memory(Arc::new(MemorySessions::new(bounds, rules, clock))),
            Some(url) => Self::Redis(RedisSessions::new(
                url.clone(),
                bounds,
                rules,
                clock,
                ports.entropy.as_ref(),
            )),
        }
    }

    pub(super) fn store(&self) -> Arc<dyn SessionStore> {
        match self {
            Self::Memory(store) => store.clone(),
            Self::Redis(store) => Arc::new(store.clone()),
        }
    }

    /// What an acknowledgement survives.
    pub(super) fn durability(&self) -> Durability {
        match self {
            Self::Memory(_) => Durability::Memory,
            Self::Redis(_) => Durability::Redis,
        }
    }

    /// Whether sessions can be reached.
    pub(super) fn is_up(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Redis(store) => store.is_up(),
        }
    }

    /// What is over is freed, where that doesn't happen by itself.
    pub(super) fn sweep(&self) {
        match self {
            Self::Memory(store) => store.sweep(),
            Self::Redis(_) => {}
        }
    }

    /// Hears what other replicas do, where there are any. Never returns.
    pub(super) async fn run(self, sessions: Sessions) {
        match self {
            Self::Memory(_) => std::future::pending().await,
            Self::Redis(store) => store.run(&sessions).await,
        }
    }

    pub(super) fn gauge(&self) {
        match self {
            Self::Memory(store) => {
                let snapshot = store.snapshot();
                gauge!("relay_signal_sessions").set(count(snapshot.sessions));
                gauge!("relay_signal_mailbox_bytes").set(count(snapshot.mailbox_bytes));
            }
            Self::Redis(store) => {
                gauge!("relay_redis_up").set(f64::from(u8::from(store.is_up())));
                gauge!("relay_signal_slots_held").set(count(store.holdings()));
                gauge!("relay_signal_mailbox_bytes").set(count(store.mailbox_bytes()));
            }
        }
    }
}
