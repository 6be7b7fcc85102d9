//! Where state is kept and who may use it: the data directory and the store in it, or Redis; the keys.

use std::{sync::Arc, time::Duration};

use sovereign_relay_actors::ports::Entropy;
use sovereign_relay_protocol::redacted::Redacted;

use super::{Ports, StartError};
use crate::{
    auth::{Authority, Secrets, authority},
    config::Config,
    limit::AddressLimits,
    store::{
        Store,
        embedded::{DataDir, EmbeddedStore},
        redis::{link::RedisLink, url::RedisUrl},
    },
};

/// How long a start waits for Redis, which may be starting beside it.
const REDIS_PATIENCE: Duration = Duration::from_secs(10);

/// Where state is kept, and who may use it.
pub(super) struct Records {
    pub(super) store: Arc<dyn Store>,
    pub(super) authority: Arc<Authority>,
    /// `None`: there is no admin API.
    pub(super) admin_token: Option<Redacted>,
    pub(super) place: Place,
}

/// Where it is.
#[derive(Clone)]
pub(super) enum Place {
    /// This node is alone.
    Here(Arc<EmbeddedStore>),
    /// One of several replicas, or prepared to be.
    Redis(Arc<RedisLink>),
}

impl Place {
    /// Enrollment budgets of client addresses, shared where there are replicas.
    pub(super) fn address_limits(&self) -> AddressLimits {
        match self {
            Self::Here(_) => AddressLimits::new(),
            Self::Redis(link) => AddressLimits::shared(Arc::new(link.addresses())),
        }
    }
}

/// A store and what opens it.
struct Opened {
    store: Arc<dyn Store>,
    place: Place,
    secret: Option<Redacted>,
    admin_token: Option<Redacted>,
}

impl Records {
    pub(super) async fn open(config: &Config, ports: &Ports) -> Result<Self, StartError> {
        let opened = match &config.storage.redis {
            Some(url) => shared(config, url.clone(), ports.entropy.as_ref()).await?,
            None => own(config, ports.entropy.as_ref())?,
        };
        let previous = config.enrollment.previous_secrets.clone();
        let secrets = opened.secret.map(|secret| Secrets::new(secret, previous));
        let authority = Authority::open(authority::Parts {
            store: opened.store.clone(),
            secrets: secrets.transpose()?,
            mode: config.enrollment.mode,
            entropy: ports.entropy.clone(),
        });
        Ok(Self {
            store: opened.store,
            authority: Arc::new(authority.await?),
            admin_token: opened.admin_token,
            place: opened.place,
        })
    }
}

/// A single node makes and keeps the secrets that nobody has configured.
fn own(config: &Config, entropy: &dyn Entropy) -> Result<Opened, StartError> {
    let directory = DataDir::open(&config.storage.data_dir)?;
    let (store, secret) = match config.enrollment.secret.clone() {
        Some(secret) => (EmbeddedStore::open(directory)?, secret),
        None => EmbeddedStore::open_with_secret(directory, entropy)?,
    };
    let own_token = || store.admin_token(entropy);
    let admin_token = config.admin.token.clone().map_or_else(own_token, Ok)?;
    let store = Arc::new(store);
    Ok(Opened {
        store: store.clone(),
        place: Place::Here(store),
        secret: Some(secret),
        admin_token: Some(admin_token),
    })
}

/// Replicas must be given the same secrets: one that made its own would refuse the keys of the others.
async fn shared(config: &Config, url: RedisUrl, entropy: &dyn Entropy) -> Result<Opened, StartError> {
    let mut name = [0; 8];
    entropy.fill(&mut name);
    let link = RedisLink::open(url, format!("{:016x}", u64::from_be_bytes(name)));
    if !link.is_up_within(REDIS_PATIENCE).await {
        return Err(StartError::Redis);
    }
    Ok(Opened {
        store: Arc::new(link.records()),
        place: Place::Redis(Arc::new(link)),
        secret: config.enrollment.secret.clone(),
        admin_token: config.admin.token.clone(),
    })
}
