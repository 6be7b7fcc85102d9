//! Where state is kept and who may use it: the data directory, the store in it, the keys, and what a stop leaves for the
//! next start.

use std::sync::Arc;

use sovereign_relay_actors::now::Now;
use sovereign_relay_protocol::redacted::Redacted;
use tracing::warn;

use super::{Ports, StartError};
use crate::{
    auth::{Authority, Secrets, authority},
    config::Config,
    limit::EmbeddedOutcomes,
    store::embedded::{DataDir, EmbeddedStore},
};

/// Where state is kept, and who may use it.
pub(super) struct Records {
    pub(super) store: Arc<EmbeddedStore>,
    pub(super) authority: Arc<Authority>,
    pub(super) admin_token: Redacted,
}

impl Records {
    pub(super) async fn open(config: &Config, ports: &Ports) -> Result<Self, StartError> {
        let directory = DataDir::open(&config.storage.data_dir)?;
        let entropy = ports.entropy.as_ref();
        let (store, secret) = match config.enrollment.secret.clone() {
            Some(secret) => (EmbeddedStore::open(directory)?, secret),
            None => EmbeddedStore::open_with_secret(directory, entropy)?,
        };
        let own_token = || store.admin_token(entropy);
        let admin_token = config.admin.token.clone().map_or_else(own_token, Ok)?;
        let store = Arc::new(store);
        let authority = Authority::open(authority::Parts {
            store: store.clone(),
            secrets: Some(Secrets::new(secret, config.enrollment.previous_secrets.clone())?),
            mode: config.enrollment.mode,
            entropy: ports.entropy.clone(),
        });
        Ok(Self {
            store,
            authority: Arc::new(authority.await?),
            admin_token,
        })
    }
}

/// What was answered under idempotency keys before this start. Pushes go on without.
pub(super) async fn remembered(store: &EmbeddedStore, now: Now) -> Arc<EmbeddedOutcomes> {
    let outcomes = EmbeddedOutcomes::new();
    match store.kept_outcomes().await {
        Ok(kept) => outcomes.restore(kept, now),
        Err(error) => warn!(%error, "idempotency keys used before this start are forgotten"),
    }
    Arc::new(outcomes)
}

/// Keeps it for the next start.
pub(super) async fn remember(outcomes: &EmbeddedOutcomes, store: &EmbeddedStore, now: Now) {
    if let Err(error) = store.keep_outcomes(outcomes.all(now)).await {
        warn!(%error, "the next start will not know the idempotency keys used so far");
    }
}
