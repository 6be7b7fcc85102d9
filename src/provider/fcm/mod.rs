//! FCM HTTP v1: the client behind the port. <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages>
//!
//! The app makes one, a lane calls it. Flow: [`message`] makes the body, [`super::call`] sends it over a connection of
//! [`client`] with a token of [`super::oauth`], [`error`] reads the answer.
//!
//! Invariant: only `UNREGISTERED` in an `FcmError` is a certain end of a device; a 404 without it, and everything
//! that could be the relay's or the caller's fault, never is.

mod client;
mod error;
mod message;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use reqwest::{Url, header::CONTENT_TYPE};
use sovereign_relay_actors::ports::{Clock, Delivery, Entropy, Outcome, PushProvider, Scope};
use sovereign_relay_protocol::{platform::Platform, token::TargetToken};
use thiserror::Error;
use tokio::{runtime::Handle, sync::watch};

use self::client::{CAPACITY, Connections};
use super::{
    call::{Caller, not_ours},
    http::{self, ClientError},
    oauth::{Grant, TokenEndpoint, TokenKeeper},
    transport,
};
use crate::config::ServiceAccount;

const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";

/// What the client needs.
pub struct FcmConfig {
    /// The account; without it the platform is off.
    pub account: Option<ServiceAccount>,
    /// Scheme, host and port of FCM.
    pub endpoint: Url,
    /// PEM of CAs to trust besides the system's.
    pub extra_ca: Option<String>,
}

/// The client could not be made.
#[derive(Debug, Error)]
pub enum FcmError {
    /// No HTTP client.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A private key that is none.
    #[error("FCM_SERVICE_ACCOUNT_JSON: private_key is not the PEM of an RSA key")]
    Key,
    /// The endpoint and the project make no URL.
    #[error("FCM_ENDPOINT and the account's project_id make no URL")]
    Url,
}

/// FCM, behind the port.
pub struct FcmProvider {
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
    url: Url,
    keeper: TokenKeeper,
    connections: Connections,
}

impl FcmProvider {
    /// A client whose tasks run on `runtime`.
    pub fn new(
        config: FcmConfig,
        ports: (Arc<dyn Clock>, Arc<dyn Entropy>),
        runtime: Handle,
    ) -> Result<Self, FcmError> {
        let provider = Self {
            account: ArcSwap::from_pointee(None),
            next_generation: AtomicU64::new(0),
            caller: Arc::new(Caller::new("fcm", ports.clone(), http::causes)),
            ports,
            runtime,
            capacity: watch::Sender::new(CAPACITY),
        };
        provider.reload(config)?;
        Ok(provider)
    }

    /// Replaces the credentials. Pushes under way finish with the old ones; guard and fuses start anew.
    pub fn reload(&self, config: FcmConfig) -> Result<(), FcmError> {
        let account = config
            .account
            .clone()
            .map(|account| self.account(account, &config))
            .transpose()?;
        self.account.store(Arc::new(account));
        Ok(())
    }

    /// Ends the token task. Pushes under way end by their deadline.
    pub fn close(&self) {
        self.account.store(Arc::new(None));
    }

    fn account(&self, account: ServiceAccount, config: &FcmConfig) -> Result<Account, FcmError> {
        let tls = transport::tls_config(config.extra_ca.as_deref()).map_err(ClientError::from)?;
        let mut url = config.endpoint.clone();
        url.path_segments_mut()
            .map_err(|()| FcmError::Url)?
            .clear()
            .extend(["v1", "projects", &account.project_id, "messages:send"]);
        let audience = account.token_uri.to_string();
        let grant = Grant::assertion(
            &account.private_key,
            account.private_key_id,
            account.client_email,
            audience,
            SCOPE,
        )
        .map_err(|_| FcmError::Key)?;
        let tokens = TokenEndpoint {
            provider: "fcm",
            grant,
            url: account.token_uri,
            http: http::client(&tls, http::Options::tokens())?,
        };
        let connections = Connections::new(|| http::client(&tls, http::Options::http2()))?;
        let scope = Scope {
            name: format!("fcm/{}", account.project_id).into(),
            generation: self.next_generation.fetch_add(1, Ordering::Relaxed),
        };
        Ok(Account {
            scope,
            url,
            keeper: TokenKeeper::start(tokens, self.ports.clone(), &self.runtime),
            connections,
        })
    }
}

impl PushProvider for FcmProvider {
    fn name(&self) -> &'static str {
        "fcm"
    }

    fn scope(&self, platform: Platform) -> Option<Scope> {
        let account = self.account.load();
        account
            .as_ref()
            .as_ref()
            .filter(|_| platform == Platform::Android)
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
            let (Some(account), TargetToken::Fcm(token)) = (account.as_ref(), &delivery.token) else {
                return not_ours();
            };
            let body = message::body(&delivery, token).into();
            let place = account.connections.place();
            let request = || {
                place
                    .http()
                    .post(account.url.clone())
                    .header(CONTENT_TYPE, "application/json")
            };
            let began = clock.now().unix;
            let read = |answer: &_| error::read(answer, token, began, clock.now().unix);
            caller
                .deliver(&account.keeper, delivery.deadline, body, request, read)
                .await
        })
    }
}

#[cfg(test)]
mod tests;
