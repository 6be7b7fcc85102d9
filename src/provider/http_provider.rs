//! A provider that is called over the HTTP client with OAuth access tokens: what FCM and WNS share behind the port.
//!
//! The app makes one, a lane calls it. A [`Service`] says what credentials make of it and gives each push its
//! provider's form; [`Caller`] does the rest.
//!
//! Invariant: each set of credentials is a generation of its own, with its own tokens and connections, and its number
//! was never used before: what was proven under other credentials proves nothing under these.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use futures_util::future::BoxFuture;
use sovereign_relay_actors::ports::{Clock, Delivery, Entropy, Outcome, PushProvider, Scope};
use sovereign_relay_protocol::platform::Platform;
use tokio::{runtime::Handle, sync::watch};

use super::{
    answer::misconfigured,
    call::{Caller, Push},
    oauth::{TokenEndpoint, TokenKeeper},
};

/// What makes a provider this one.
pub(crate) trait Service: Sized + Send + Sync + 'static {
    /// For metrics, logs and health.
    const NAME: &'static str;
    /// The only one it serves.
    const PLATFORM: Platform;
    /// Calls under way at once.
    const CAPACITY: usize;

    /// Settings and credentials.
    type Config;
    /// They can't be used.
    type Error;
    /// A push in its form.
    type Push<'a>: Push + Send;

    /// What credentials come to; `None` without any, which turns the platform off.
    fn account(config: Self::Config) -> Result<Option<NewAccount<Self>>, Self::Error>;
    /// A push that is about to be called; `None` if the token is another provider's.
    fn push<'a>(&'a self, delivery: &'a Delivery) -> Option<Self::Push<'a>>;
    /// Whether a call of this push will show how the provider is.
    fn can_probe(&self, _delivery: &Delivery) -> bool {
        true
    }
    /// An error in words for the log, without what a device named.
    fn describe(error: reqwest::Error) -> String;
}

/// Credentials, ready for use.
pub(crate) struct NewAccount<S> {
    /// Name of the verdict scope.
    pub(crate) scope: Arc<str>,
    /// Where access tokens come from.
    pub(crate) tokens: TokenEndpoint,
    /// What calls with them.
    pub(crate) service: S,
}

/// A [`Service`] behind the port.
pub(crate) struct HttpProvider<S> {
    account: ArcSwap<Option<Account<S>>>,
    next_generation: Mutex<u64>,
    caller: Arc<Caller>,
    ports: (Arc<dyn Clock>, Arc<dyn Entropy>),
    runtime: Handle,
    capacity: watch::Sender<usize>,
}

/// One generation of credentials.
struct Account<S> {
    scope: Scope,
    keeper: TokenKeeper,
    service: S,
}

impl<S: Service> HttpProvider<S> {
    /// A client whose tasks run on `runtime`.
    pub(crate) fn new(
        config: S::Config,
        ports: (Arc<dyn Clock>, Arc<dyn Entropy>),
        runtime: Handle,
    ) -> Result<Self, S::Error> {
        let provider = Self {
            account: ArcSwap::from_pointee(None),
            next_generation: Mutex::new(0),
            caller: Arc::new(Caller::new(S::NAME, ports.clone(), S::describe)),
            ports,
            runtime,
            capacity: watch::Sender::new(S::CAPACITY),
        };
        provider.reload(config)?;
        Ok(provider)
    }

    /// Replaces the credentials. Pushes under way finish with the old ones; guard and fuses start anew. Of two reloads
    /// at a time the one with the higher number stays.
    pub(crate) fn reload(&self, config: S::Config) -> Result<(), S::Error> {
        let new = S::account(config)?;
        let mut next = self
            .next_generation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let generation = *next;
        *next += 1;
        let account = new.map(|new| Account {
            scope: Scope {
                name: new.scope,
                generation,
            },
            keeper: TokenKeeper::start(new.tokens, self.ports.clone(), &self.runtime),
            service: new.service,
        });
        // Stored before the next number can be taken.
        self.account.store(Arc::new(account));
        drop(next);
        Ok(())
    }

    /// Ends the token task. Pushes under way end by their deadline.
    pub(crate) fn close(&self) {
        self.account.store(Arc::new(None));
    }
}

impl<S: Service> PushProvider for HttpProvider<S> {
    fn name(&self) -> &'static str {
        S::NAME
    }

    fn scope(&self, platform: Platform) -> Option<Scope> {
        let account = self.account.load();
        let account = account.as_ref().as_ref().filter(|_| platform == S::PLATFORM)?;
        Some(account.scope.clone())
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.capacity.subscribe()
    }

    fn can_probe(&self, delivery: &Delivery) -> bool {
        let account = self.account.load();
        account
            .as_ref()
            .as_ref()
            .is_none_or(|account| account.service.can_probe(delivery))
    }

    fn deliver(&self, delivery: Delivery) -> BoxFuture<'static, Outcome> {
        let (account, caller) = (self.account.load_full(), Arc::clone(&self.caller));
        Box::pin(async move {
            let Some(account) = account.as_ref() else {
                return misconfigured();
            };
            let Some(push) = account.service.push(&delivery) else {
                return misconfigured();
            };
            caller.deliver(&account.keeper, delivery.deadline, &push).await
        })
    }
}

#[cfg(test)]
mod tests;
