//! Where state is kept and who may use it: the data directory, the store in it, the keys.

use std::sync::Arc;

use sovereign_relay_protocol::redacted::Redacted;

use super::{Ports, StartError};
use crate::{
    auth::{Authority, Secrets, authority},
    config::Config,
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
