//! FCM HTTP v1: the client behind the port. <https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages>
//!
//! [`super::http_provider`] with FCM plugged in. Flow: [`message`] makes the body, [`super::call`] sends it over a
//! connection of [`client`] with a token of [`super::oauth`], [`error`] reads the answer.
//!
//! Invariant: only `UNREGISTERED` in an `FcmError` is a certain end of a device; a 404 without it, and everything
//! that could be the relay's or the caller's fault, never is.

mod client;
mod error;
mod message;

use bytes::Bytes;
use reqwest::{RequestBuilder, Url, header::CONTENT_TYPE};
use sovereign_relay_actors::{ports::Delivery, push::TurnKey};
use sovereign_relay_protocol::{platform::Platform, redacted::Redacted, token::TargetToken};
use thiserror::Error;

use self::client::{Connections, Place};
use super::{
    answer::{Answer, Reading},
    call::{Over, Push, Tried},
    http::{self, ClientError, SendError},
    http_provider::{HttpProvider, NewAccount, Service},
    oauth::{Grant, TokenEndpoint},
    transport,
};
use crate::config::ServiceAccount;

const SCOPE: &str = "https://www.googleapis.com/auth/firebase.messaging";

/// FCM, behind the port.
pub(crate) type FcmProvider = HttpProvider<Fcm>;

/// What the client needs.
pub(crate) struct FcmConfig {
    /// The account; without it the platform is off.
    pub(crate) account: Option<ServiceAccount>,
    /// Scheme, host and port of FCM.
    pub(crate) endpoint: Url,
    /// PEM of CAs to trust besides the system's.
    pub(crate) extra_ca: Option<String>,
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

/// One project at FCM.
pub(crate) struct Fcm {
    url: Url,
    connections: Connections,
}

impl Service for Fcm {
    const NAME: &'static str = "fcm";
    const PLATFORM: Platform = Platform::Android;
    const CAPACITY: usize = client::CAPACITY;

    type Config = FcmConfig;
    type Error = FcmError;
    type Push<'a> = FcmPush<'a>;

    fn account(config: FcmConfig) -> Result<Option<NewAccount<Self>>, FcmError> {
        let Some(account) = config.account else {
            return Ok(None);
        };
        let tls = transport::tls_config(config.extra_ca.as_deref()).map_err(ClientError::from)?;
        let http = http::client(&tls, http::Options::tokens())?;
        let service = Self {
            url: send_url(config.endpoint, &account.project_id)?,
            connections: Connections::new(move || http::client(&tls, http::Options::http2()))?,
        };
        Ok(Some(NewAccount {
            scope: format!("fcm/{}", account.project_id).into(),
            tokens: tokens(account, http)?,
            service,
        }))
    }

    fn push<'a>(&'a self, delivery: &'a Delivery) -> Option<FcmPush<'a>> {
        let TargetToken::Fcm(token) = &delivery.token else {
            return None;
        };
        Some(FcmPush {
            url: &self.url,
            place: self.connections.place(),
            token,
            delivery,
        })
    }

    fn describe(error: reqwest::Error) -> String {
        http::causes(error)
    }
}

/// One push with its place on a connection, which it keeps until it is over.
pub(crate) struct FcmPush<'a> {
    url: &'a Url,
    place: Place<'a>,
    token: &'a Redacted,
    delivery: &'a Delivery,
}

impl Push for FcmPush<'_> {
    fn body(&self) -> Bytes {
        message::body(self.delivery, self.token).into()
    }

    fn request(&self, _: Over) -> RequestBuilder {
        let request = self.place.http().post(self.url.clone());
        request.header(CONTENT_TYPE, "application/json")
    }

    fn read(&self, answer: &Answer) -> Reading {
        error::read(answer, self.token)
    }

    fn is_own(&self, answer: &Answer) -> bool {
        error::is_from_fcm(answer)
    }

    fn sender(&self) -> TurnKey {
        self.delivery.sender
    }

    fn tried(&self, tried: &Tried<'_>) {
        match tried.result {
            Ok(_) => self.place.answered(tried.ended),
            Err(SendError::NotSent | SendError::Refused | SendError::Reset | SendError::TimedOut) => {
                self.place.failed(tried.began, tried.ended);
            }
            // A lost connection is gone already: the next try dials anew.
            Err(SendError::Lost | SendError::Unsendable) => {}
        }
    }
}

fn send_url(mut endpoint: Url, project_id: &str) -> Result<Url, FcmError> {
    endpoint
        .path_segments_mut()
        .map_err(|()| FcmError::Url)?
        .clear()
        .extend(["v1", "projects", project_id, "messages:send"]);
    Ok(endpoint)
}

fn tokens(account: ServiceAccount, http: reqwest::Client) -> Result<TokenEndpoint, FcmError> {
    let grant = Grant::assertion(
        &account.private_key,
        account.private_key_id,
        account.client_email,
        account.token_uri.to_string(),
        SCOPE,
    );
    Ok(TokenEndpoint {
        provider: Fcm::NAME,
        grant: grant.map_err(|_| FcmError::Key)?,
        url: account.token_uri,
        http,
    })
}

#[cfg(test)]
mod tests;
