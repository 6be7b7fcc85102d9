//! Web Push: notifications for browsers (RFC 8030, 8188, 8291, 8292), and for UnifiedPush, which is the same on the
//! wire.
//!
//! Called by the fan-out, which seals first, keeps the sealed bytes and posts them until the outcome is final; and by
//! the registration routes, which let no address in that a push could not go to.
//!
//! ```text
//!   registration   Subscription::parse
//!   fan-out        seal -> (outbox) -> WebPush::post -> Outcome
//!   a push         vapid (who sends) + send (head, body) -> address (where it may go) -> outcome (what came of it)
//! ```
//!
//! Invariants: the endpoint is a user's word, so a push goes to public addresses alone, costs a bounded time and memory
//! whatever answers, and ends a subscription only when the push service says that it is gone. Endpoints, keys, tags and
//! content are never logged. Why the protocol is our own on top of `ece`: docs/adr/0007-web-push.md.

pub mod address;
mod crypto;
pub mod outcome;
pub mod seal;
mod send;
#[cfg(any(test, feature = "demo"))]
pub mod service;
pub mod subscription;
pub mod vapid;

use std::{sync::Arc, time::Duration};

use reqwest::{Client, dns::Resolve, header::AUTHORIZATION};
use sovereign_relay_protocol::time::UnixMillis;
use thiserror::Error;

use self::{
    address::SystemNames,
    outcome::{Failure, Misconfiguration},
    vapid::Vapid,
};
pub use self::{
    address::{Addresses, Endpoint, EndpointError},
    outcome::Outcome,
    seal::{SealError, seal},
    send::Delivery,
    subscription::{Subscription, SubscriptionError},
    vapid::{Contact, VapidError, VapidKey},
};

/// From the first byte to the end of the answer. Push services store and answer within a second; the outbox repeats
/// what took longer.
pub const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// How pushes are sent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where they may go.
    pub addresses: Addresses,
    /// PEM of certificates to trust besides the system's.
    pub extra_ca: Option<String>,
    /// The limit of one push.
    pub answer_within: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            addresses: Addresses::Public,
            extra_ca: None,
            answer_within: ANSWER_WITHIN,
        }
    }
}

/// A notification for one browser.
#[derive(Clone, Copy)]
pub struct WebPushMessage<'a> {
    /// JSON, which the service worker opens.
    pub json: &'a str,
    /// What is said about it in the open.
    pub delivery: Delivery<'a>,
}

/// Sends. Make one for the whole program: it holds the connections and the tokens.
pub struct WebPush {
    http: Client,
    vapid: Vapid,
    addresses: Addresses,
}

/// Web Push could not be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The key.
    #[error(transparent)]
    Vapid(#[from] VapidError),
    /// The extra certificates are not PEM, or the system's could not be loaded.
    #[error("the HTTP client of Web Push could not be made: {0}")]
    Client(#[source] reqwest::Error),
}

impl WebPush {
    /// Pushes signed with `key`, about which services may ask `contact`.
    pub fn new(key: &VapidKey, contact: Contact, settings: &Settings) -> Result<Self, SetupError> {
        Self::with_names(key, contact, settings, Arc::new(SystemNames))
    }

    fn with_names(
        key: &VapidKey,
        contact: Contact,
        settings: &Settings,
        names: Arc<dyn Resolve>,
    ) -> Result<Self, SetupError> {
        Ok(Self {
            http: send::client(settings, names)?,
            vapid: Vapid::new(key, contact)?,
            addresses: settings.addresses,
        })
    }

    /// What browsers take as `applicationServerKey`.
    pub fn public_key(&self) -> &str {
        self.vapid.public_key()
    }

    /// Where pushes may go, for whoever parses a [`Subscription`].
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Seals and posts.
    pub async fn send(
        &self,
        subscription: &Subscription,
        message: &WebPushMessage<'_>,
        now: UnixMillis,
    ) -> Result<Outcome, SealError> {
        let sealed = seal(subscription, message.json)?;
        let endpoint = subscription.endpoint();
        Ok(self.deliver(endpoint, sealed, &message.delivery, now).await)
    }

    /// Posts what [`seal()`] gave, to the address as the database keeps it.
    pub async fn post(
        &self,
        endpoint: &str,
        sealed: Vec<u8>,
        delivery: &Delivery<'_>,
        now: UnixMillis,
    ) -> Outcome {
        match Endpoint::parse(endpoint, self.addresses) {
            Ok(endpoint) => self.deliver(&endpoint, sealed, delivery, now).await,
            Err(error) => Outcome::Failed(Failure::Endpoint(error)),
        }
    }

    async fn deliver(
        &self,
        endpoint: &Endpoint,
        sealed: Vec<u8>,
        delivery: &Delivery<'_>,
        now: UnixMillis,
    ) -> Outcome {
        let Ok(authorization) = self.vapid.authorization(endpoint, now) else {
            return Outcome::Misconfigured(Misconfiguration::Unsigned);
        };
        let topic = delivery.tag.map(|tag| self.vapid.topic(endpoint, tag));
        let request = self.http.post(endpoint.url().clone());
        let request = send::head(request, delivery, topic, sealed).header(AUTHORIZATION, authorization);
        match request.send().await {
            Ok(response) => {
                let outcome = Outcome::of_answer(response.status().as_u16(), response.headers(), now);
                send::drain(response).await;
                outcome
            }
            Err(error) => send::outcome_of_error(&error),
        }
    }
}

#[cfg(test)]
mod tests;
