//! `/api/account/push-subscription`: the browsers of the signed-in user.
//!
//! ```text
//! GET     -> {"pushEnabled": true, "subscribed": false, "publicKey": "<VAPID key, for PushManager.subscribe>"}
//! POST    what PushSubscription.toJSON() gives: {"endpoint", "keys": {"p256dh", "auth"}} -> {"ok": true}
//! DELETE  -> {"ok": true}: all of the user's, or none, are gone
//! ```
//! An endpoint is an address that this server will connect to: [`crate::web_push::address`] says which may be.

use actix_web::{
    HttpResponse,
    web::{Data, Json},
};
use serde::Deserialize;
use serde_json::json;
use sovereign_relay_protocol::redacted::Redacted;

use super::{Registration, error::ApiError, gate::Caller, ok};
use crate::{
    store::NewSubscription,
    user::User,
    web_push::{self, Addresses, SubscriptionError},
};

/// What a browser sends. `expirationTime` and fields of later versions are ignored.
#[derive(Deserialize)]
pub(crate) struct Body {
    endpoint: Redacted,
    keys: Keys,
}

#[derive(Deserialize)]
struct Keys {
    p256dh: String,
    auth: Redacted,
}

pub(crate) async fn show(
    registration: Data<Registration>,
    Caller(user): Caller,
) -> Result<HttpResponse, ApiError> {
    let subscribed = !registration.store.subscriptions_of(&user).await?.is_empty();
    let public_key = registration.web_push_key.as_deref();
    let answer =
        json!({ "pushEnabled": public_key.is_some(), "subscribed": subscribed, "publicKey": public_key });
    Ok(HttpResponse::Ok().json(answer))
}

pub(crate) async fn subscribe(
    registration: Data<Registration>,
    Caller(user): Caller,
    Json(body): Json<Body>,
) -> Result<HttpResponse, ApiError> {
    if registration.web_push_key.is_none() {
        return Err(ApiError::WebPushOff);
    }
    let subscription = body.parse(user, registration.addresses)?;
    registration.take_turn(&subscription.user)?;
    let (limit, now) = (
        registration.limits.subscriptions_per_user,
        registration.clock.seconds(),
    );
    let subscribed = registration.store.subscribe(&subscription, limit, now).await?;
    for subscription_id in subscribed.removed {
        tracing::info!(%subscription_id, "a user has too many browsers, the one unused longest is removed");
    }
    Ok(ok())
}

pub(crate) async fn unsubscribe(
    registration: Data<Registration>,
    Caller(user): Caller,
) -> Result<HttpResponse, ApiError> {
    registration.store.unsubscribe_all(&user).await?;
    Ok(ok())
}

impl Body {
    /// Kept as the browser wrote it, once it is known that it can be read.
    fn parse(self, user: User, addresses: Addresses) -> Result<NewSubscription, SubscriptionError> {
        let Keys { p256dh, auth } = self.keys;
        web_push::Subscription::parse(self.endpoint.expose(), &p256dh, auth.expose(), addresses)?;
        Ok(NewSubscription {
            user,
            endpoint: self.endpoint,
            p256dh,
            auth,
        })
    }
}
