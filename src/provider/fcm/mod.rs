//! FCM HTTP v1: the client behind the port. <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages>
//!
//! The app makes one, a lane calls it. Flow: [`message`] makes the body, [`super::call`] sends it with a token of
//! [`super::oauth`], [`error`] reads the answer.
//!
//! Invariant: only `UNREGISTERED` in an `FcmError` is a certain end of a device; a 404 without it, and everything
//! that could be the relay's or the caller's fault, never is.

mod error;
mod message;

use std::sync::Arc;

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use reqwest::Url;
use sovereign_relay_actors::ports::{
    Clock, Delivery, Entropy, Failure, Health, Hold, Outcome, PushProvider, Scope,
};
use sovereign_relay_protocol::{platform::Platform, push::Reason, token::TargetToken};
use thiserror::Error;
use tokio::{runtime::Handle, sync::watch};

use super::{
    call::Caller,
    http::{self, ClientError, Versions},
    oauth::{Grant, TokenKeeper},
};
use crate::config::ServiceAccount;

/// Calls under way at once. HTTP/2 carries them on one connection; FCM answers in tens of milliseconds, so this is
/// some 10,000 pushes a second, Google's quota for a whole project.
const CAPACITY: usize = 1000;
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
    http: reqwest::Client,
}

impl FcmProvider {
    /// A client whose tasks run on `runtime`.
    pub fn new(
        config: FcmConfig,
        (clock, entropy): (Arc<dyn Clock>, Arc<dyn Entropy>),
        runtime: Handle,
    ) -> Result<Self, FcmError> {
        let provider = Self {
            account: ArcSwap::from_pointee(None),
            caller: Arc::new(Caller::new(Arc::clone(&clock), Arc::clone(&entropy))),
            ports: (clock, entropy),
            runtime,
            capacity: watch::Sender::new(CAPACITY),
        };
        provider.reload(config)?;
        Ok(provider)
    }

    /// Replaces the credentials. Pushes under way finish with the old ones; guard and fuses start anew.
    pub fn reload(&self, config: FcmConfig) -> Result<(), FcmError> {
        let generation = self
            .account
            .load()
            .as_ref()
            .as_ref()
            .map_or(0, |account| account.scope.generation + 1);
        let account = config
            .account
            .clone()
            .map(|account| self.account(account, &config, generation))
            .transpose()?;
        self.account.store(Arc::new(account));
        Ok(())
    }

    /// Ends the token task. Pushes under way end by their deadline.
    pub fn close(&self) {
        self.account.store(Arc::new(None));
    }

    fn account(
        &self,
        account: ServiceAccount,
        config: &FcmConfig,
        generation: u64,
    ) -> Result<Account, FcmError> {
        let http = http::client(config.extra_ca.as_deref(), Versions::Any, None)?;
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
        let keeper = TokenKeeper::start(
            "fcm",
            grant,
            account.token_uri,
            http.clone(),
            self.ports.clone(),
            &self.runtime,
        );
        let scope = Scope {
            name: format!("fcm/{}", account.project_id).into(),
            generation,
        };
        Ok(Account {
            scope,
            url,
            keeper,
            http,
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
            let body = message::body(&delivery, token);
            let began = clock.now().unix;
            let request = || {
                account
                    .http
                    .post(account.url.clone())
                    .header("content-type", "application/json")
                    .body(body.clone())
            };
            let read = |answer: &_| error::read(answer, began, clock.now().unix);
            caller
                .deliver(&account.keeper, delivery.deadline, request, read)
                .await
        })
    }
}

/// The lane asked for a platform that is off or sent another provider's token: the relay's own fault.
fn not_ours() -> Outcome {
    Outcome::Failed(Failure {
        reason: Reason::RelayMisconfigured,
        retryable: false,
        retry_after: None,
        hold: Hold::Nothing,
        health: Health::Answered,
    })
}

#[cfg(test)]
mod tests;
