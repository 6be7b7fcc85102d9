//! What the handlers work with: the parts of the relay, as the HTTP side sees them.
//!
//! Made once by [`crate::app`], shared by all workers.

use std::{net::IpAddr, sync::Arc, time::Duration};

use actix_web::{HttpRequest, web::Payload};
use futures_util::future::BoxFuture;
use sovereign_relay_actors::{
    now::Now,
    ports::{Clock, Entropy, Providers},
    push::{Answered, Push, Refusal},
};
use sovereign_relay_protocol::{envelope::AlertTitles, error::ErrorCode, id::InstanceId, limits};

use crate::{
    auth::Authority,
    http::{
        error::ApiError,
        extract::{
            body::{self, Body},
            caller::KeyHolder,
        },
        health::{Facts, Told},
        proxies::TrustedProxies,
    },
    limit::{
        AddressLimits, BodyBudget,
        bodies::{BodyKind, BodyShare},
    },
    shutdown::Lifecycle,
    signaling::Signaling,
};

/// Where pushes go: the registry of instances, or a double in tests.
pub trait Pushes: Send + Sync + 'static {
    /// Hands one push to its instance's actor and waits for the answer.
    fn push(&self, instance: InstanceId, push: Push) -> BoxFuture<'_, Result<Answered, Refusal>>;

    /// Makes the instance's actor read its standing again. When it is done, every push that begins later is judged
    /// by the new standing.
    fn refresh(&self, instance: InstanceId) -> BoxFuture<'_, ()>;

    /// Pushes a minute of an instance for which the operator has set nothing.
    fn per_minute(&self) -> u32;
}

/// The parts of the relay.
pub struct Services {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
    /// Keys.
    pub authority: Arc<Authority>,
    /// Pushes.
    pub pushes: Arc<dyn Pushes>,
    /// Sessions.
    pub signaling: Signaling,
    /// Enrollment budgets of client addresses.
    pub addresses: Arc<AddressLimits>,
    /// Memory for request bodies.
    pub bodies: Arc<BodyBudget>,
    /// For which platforms there are credentials.
    pub providers: Providers,
    /// Titles in the APNs envelope, which take room from the payload.
    pub titles: AlertTitles,
    /// How far the relay is in its life.
    pub lifecycle: Lifecycle,
    /// What `/readyz` judges, asked each time.
    pub facts: Box<dyn Fn() -> Facts + Send + Sync>,
    /// What `/readyz` said last.
    pub told: Told,
    /// Whose `X-Forwarded-For` is believed.
    pub proxies: Arc<TrustedProxies>,
    /// How long a body may take.
    pub body_time: Duration,
}

impl Services {
    /// This moment.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Refuses while the relay begins nothing new.
    pub(crate) fn take_work(&self) -> Result<(), ApiError> {
        self.lifecycle
            .phase()
            .takes_work()
            .then_some(())
            .ok_or_else(ApiError::draining)
    }

    /// The client's address, for limits alone.
    pub(crate) fn address(&self, request: &HttpRequest) -> Result<IpAddr, ApiError> {
        // Only a Unix socket has no peer address, and the relay listens on none.
        let peer = request.peer_addr().ok_or_else(ApiError::internal)?;
        Ok(self.proxies.client_address(peer, request.headers()))
    }

    /// The body of a request about one thing. `holder`: whose key was in the header.
    pub(crate) async fn body(
        &self,
        request: &HttpRequest,
        payload: Payload,
        holder: Option<&KeyHolder>,
    ) -> Result<Body, ApiError> {
        let kind = BodyKind::Single(holder.map(|holder| holder.caller.instance));
        let share = self.bodies.share(kind);
        self.read(request, payload, limits::BODY_BYTES, share).await
    }

    /// The body of a batch.
    pub(crate) async fn batch_body(
        &self,
        request: &HttpRequest,
        payload: Payload,
        holder: &KeyHolder,
    ) -> Result<Body, ApiError> {
        let share = self.bodies.share(BodyKind::Batch(holder.caller.instance));
        self.read(request, payload, limits::BATCH_BODY_BYTES, share).await
    }

    /// Any body, at most `bytes` long.
    pub(crate) async fn read(
        &self,
        request: &HttpRequest,
        payload: Payload,
        bytes: usize,
        share: BodyShare,
    ) -> Result<Body, ApiError> {
        let limits = body::BodyLimits {
            bytes,
            time: self.body_time,
        };
        body::read(request.headers(), payload, limits, share).await
    }

    /// Takes one enrollment of the address's budget: enrolling, rotating and withdrawing all spend it.
    pub(crate) async fn spend_enrollment(&self, address: IpAddr) -> Result<(), ApiError> {
        let hash = self.authority.derived().address_hash(address);
        self.addresses
            .enrollment(hash, self.now())
            .await
            .map_err(|retry_after| {
                ApiError::new(
                    ErrorCode::RateLimited,
                    "too many enrollments, rotations or withdrawals from this address",
                )
                .retry_after(retry_after)
            })
    }
}
