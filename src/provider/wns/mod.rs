//! WNS raw notifications: the client behind the port.
//! <https://learn.microsoft.com/windows/apps/develop/notifications/push-notifications/push-request-response-headers>
//!
//! The app makes one, a lane calls it. Flow: [`request`] sets the headers, [`super::call`] sends it with a token of
//! [`super::oauth`], [`error`] reads the answer; [`resolver`] keeps the call inside the public internet.
//!
//! Invariant: the relay's bearer token goes to no host but those under the channel rule, redirects are not followed,
//! and an answer without any `X-WNS-` header is some proxy's and says nothing about the device. HTTP/1.1, which is what
//! Microsoft documents: a lost connection then costs one push.

mod error;
mod request;
mod resolver;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use reqwest::Url;
use sovereign_relay_actors::ports::{Clock, Delivery, Entropy, Outcome, PushProvider, Scope};
use sovereign_relay_protocol::{platform::Platform, token::TargetToken};
use tokio::{runtime::Handle, sync::watch};

use super::{
    call::{Caller, not_ours},
    http::{self, ClientError},
    oauth::{Grant, TokenEndpoint, TokenKeeper},
    transport,
};
use crate::config::{WnsCredential, WnsIdentity};

/// Calls under way at once, a connection each.
const CAPACITY: usize = 256;
const LEGACY_SCOPE: &str = "notify.windows.com";
const ENTRA_SCOPE: &str = "https://wns.windows.com/.default";

/// What the client needs.
pub struct WnsConfig {
    /// The credential; without it the platform is off.
    pub credential: Option<WnsCredential>,
    /// Where the credential becomes an access token.
    pub token_endpoint: Url,
    /// PEM of CAs to trust besides the system's.
    pub extra_ca: Option<String>,
    /// Simulators may sit on loopback.
    pub allow_test_endpoints: bool,
}

/// WNS, behind the port.
pub struct WnsProvider {
    account: ArcSwap<Option<Account>>,
    next_generation: AtomicU64,
    caller: Arc<Caller>,
    ports: (Arc<dyn Clock>, Arc<dyn Entropy>),
    runtime: Handle,
    capacity: watch::Sender<usize>,
}

/// One generation of credentials.
struct Account {
    scope: Scope,
    keeper: TokenKeeper,
    http: reqwest::Client,
}

impl WnsProvider {
    /// A client whose tasks run on `runtime`.
    pub fn new(
        config: WnsConfig,
        ports: (Arc<dyn Clock>, Arc<dyn Entropy>),
        runtime: Handle,
    ) -> Result<Self, ClientError> {
        let provider = Self {
            account: ArcSwap::from_pointee(None),
            next_generation: AtomicU64::new(0),
            caller: Arc::new(Caller::new("wns", ports.clone(), http::kind_of_failure)),
            ports,
            runtime,
            capacity: watch::Sender::new(CAPACITY),
        };
        provider.reload(config)?;
        Ok(provider)
    }

    /// Replaces the credentials. Pushes under way finish with the old ones; guard and fuses start anew.
    pub fn reload(&self, config: WnsConfig) -> Result<(), ClientError> {
        let account = config
            .credential
            .clone()
            .map(|credential| self.account(credential, &config))
            .transpose()?;
        self.account.store(Arc::new(account));
        Ok(())
    }

    /// Ends the token task. Pushes under way end by their deadline.
    pub fn close(&self) {
        self.account.store(Arc::new(None));
    }

    fn account(&self, credential: WnsCredential, config: &WnsConfig) -> Result<Account, ClientError> {
        let tls = transport::tls_config(config.extra_ca.as_deref())?;
        let (client_id, scope) = match credential.identity {
            WnsIdentity::PackageSid(sid) => (sid, LEGACY_SCOPE),
            WnsIdentity::Entra { client_id, .. } => (client_id, ENTRA_SCOPE),
        };
        // Tokens come from Microsoft's fixed host, or the operator's override; channels from what devices registered.
        let tokens = TokenEndpoint {
            provider: "wns",
            grant: Grant::ClientCredentials {
                client_id,
                client_secret: credential.client_secret,
                scope,
            },
            url: config.token_endpoint.clone(),
            http: http::client(&tls, http::Options::tokens())?,
        };
        let public_only = resolver::public_only(config.allow_test_endpoints, resolver::outgoing_proxy());
        let to_channels = http::client(&tls, http::Options::http1(public_only))?;
        Ok(Account {
            scope: Scope {
                name: "wns".into(),
                generation: self.next_generation.fetch_add(1, Ordering::Relaxed),
            },
            keeper: TokenKeeper::start(tokens, self.ports.clone(), &self.runtime),
            http: to_channels,
        })
    }
}

impl PushProvider for WnsProvider {
    fn name(&self) -> &'static str {
        "wns"
    }

    fn scope(&self, platform: Platform) -> Option<Scope> {
        let account = self.account.load();
        account
            .as_ref()
            .as_ref()
            .filter(|_| platform == Platform::Windows)
            .map(|account| account.scope.clone())
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.capacity.subscribe()
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'static, Outcome> {
        let (account, caller, clock) = (
            self.account.load_full(),
            Arc::clone(&self.caller),
            Arc::clone(&self.ports.0),
        );
        Box::pin(async move {
            let (Some(account), TargetToken::Channel(channel)) = (account.as_ref(), &delivery.token) else {
                return not_ours();
            };
            let began = clock.now().unix;
            let body = delivery.payload.expose().to_owned().into();
            let build = || request::build(&account.http, channel, &delivery);
            let read = |answer: &_| error::read(answer, began, clock.now().unix);
            caller
                .deliver(&account.keeper, delivery.deadline, body, build, read)
                .await
        })
    }
}

#[cfg(test)]
mod tests;
