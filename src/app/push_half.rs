//! Everything between the HTTP side and the providers: threads, clients, lanes, instances' actors.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use sovereign_relay_actors::{
    lane::{Lane, LaneConfig},
    ports::{Clock, Providers},
    push::{Answered, Push, Refusal},
    registry::{Lanes, Registry, RegistryConfig},
};
use sovereign_relay_protocol::id::InstanceId;
use tracing::info;

use super::{
    Ports, StartError,
    memories::Memories,
    provider_runtime::ProviderRuntime,
    providers::{Built, Runtimes},
    threads,
};
use crate::{config::Config, http::services::Pushes, store::Store};

/// Everything between the HTTP side and the providers.
pub(super) struct PushHalf {
    pub(super) registry: Registry,
    pub(super) lanes: Lanes,
    pub(super) built: Built,
    runtimes: Runtimes,
    pub(super) memories: Memories,
}

impl PushHalf {
    pub(super) fn start(
        config: &Config,
        ports: &Ports,
        store: &Arc<dyn Store>,
        memories: Memories,
    ) -> Result<Self, StartError> {
        let runtimes = Runtimes::start().map_err(StartError::Thread)?;
        let built = match &ports.providers {
            Some(providers) => Built::brought(providers.clone()),
            None => Built::configured(config, &runtimes, &ports.clock, &ports.entropy)?,
        };
        let lanes = lanes(&built.providers, &runtimes, &ports.clock);
        let registry = Registry::start(
            registry_config(config, &built.providers),
            lanes.clone(),
            store.clone(),
            memories.limits(),
            memories.outcomes(),
            ports.clock.clone(),
            ports.entropy.clone(),
        );
        Ok(Self {
            registry,
            lanes,
            built,
            runtimes,
            memories,
        })
    }

    /// Takes over what a reload may change: credentials and the default limit. `false`: a provider refused its own.
    pub(super) fn reload(&mut self, wanted: &Config) -> bool {
        let all_taken = self.built.reload(wanted);
        if wanted.limits.pushes_per_minute != self.registry.per_minute() {
            self.registry.set_per_minute(wanted.limits.pushes_per_minute);
            info!(
                per_minute = wanted.limits.pushes_per_minute,
                "default limit reloaded"
            );
        }
        all_taken
    }

    pub(super) async fn close(self) {
        self.registry.close().await;
        join_all(all(&self.lanes).map(Lane::close)).await;
        self.built.close().await;
        self.runtimes.stop().await;
    }
}

fn lanes(providers: &Providers, runtimes: &Runtimes, clock: &Arc<dyn Clock>) -> Lanes {
    let lane = |provider: &Arc<_>, runtime: &ProviderRuntime| {
        Lane::new(
            Arc::clone(provider),
            clock.clone(),
            runtime.handle(),
            LaneConfig::default(),
        )
    };
    let lanes = Lanes {
        apns_production: lane(&providers.apns_production, &runtimes.apns_production),
        apns_sandbox: lane(&providers.apns_sandbox, &runtimes.apns_sandbox),
        fcm: lane(&providers.fcm, &runtimes.fcm),
        wns: lane(&providers.wns, &runtimes.wns),
    };
    lanes.apns_production.pair(&lanes.apns_sandbox);
    lanes
}

/// All four, for what is done to each.
pub(super) fn all(lanes: &Lanes) -> [&Lane; 4] {
    [
        &lanes.apns_production,
        &lanes.apns_sandbox,
        &lanes.fcm,
        &lanes.wns,
    ]
}

fn registry_config(config: &Config, providers: &Providers) -> RegistryConfig {
    RegistryConfig {
        arbiters: threads(config.listen.arbiters),
        push_deadline: config.timeouts.push_deadline,
        titles: config.apns.titles.clone(),
        default_environment: providers.default_environment,
        channel_rule: providers.channel_rule.clone(),
        per_minute: config.limits.pushes_per_minute,
        sessions_per_minute: config.signaling.sessions_per_minute,
        ..RegistryConfig::default()
    }
}

impl Pushes for Registry {
    fn push(&self, instance: InstanceId, push: Push) -> BoxFuture<'_, Result<Answered, Refusal>> {
        Self::push(self, instance, push).boxed()
    }

    fn refresh(&self, instance: InstanceId) -> BoxFuture<'_, ()> {
        Self::refresh(self, instance).boxed()
    }

    fn per_minute(&self) -> u32 {
        Self::per_minute(self)
    }
}
