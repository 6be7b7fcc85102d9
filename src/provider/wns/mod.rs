//! WNS raw notifications: the client behind the port.
//! <https://learn.microsoft.com/windows/apps/develop/notifications/push-notifications/push-request-response-headers>
//!
//! [`super::http_provider`] with WNS plugged in. Flow: [`request`] sets the headers, [`super::call`] sends it with a token of
//! [`super::oauth`], [`error`] reads the answer; [`resolver`] keeps the call inside the public internet, and
//! [`hosts`] keeps a caller's choice of host from being taken for WNS's health.
//!
//! Invariant: the relay's bearer token goes to no host but those under the channel rule, redirects are not followed,
//! and an answer without any `X-WNS-` header is some proxy's and says nothing about the device. HTTP/1.1, which is what
//! Microsoft documents: a lost connection then costs one push. Its answers carry no number, so that a device's end is
//! confirmed over a connection of its own.

mod error;
mod hosts;
mod request;
mod resolver;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use reqwest::{Client, RequestBuilder, Url};
use sovereign_relay_actors::{ports::Delivery, push::TurnKey};
use sovereign_relay_protocol::{
    platform::Platform,
    token::{ChannelUri, TargetToken},
};

use self::hosts::Hosts;
use super::{
    answer::{Answer, Reading},
    call::{Over, Push, Tried},
    http::{self, ClientError, SendError},
    http_provider::{HttpProvider, NewAccount, Service},
    oauth::{Grant, TokenEndpoint},
    transport,
};
use crate::config::{WnsCredential, WnsIdentity};

const LEGACY_SCOPE: &str = "notify.windows.com";
const ENTRA_SCOPE: &str = "https://wns.windows.com/.default";

/// WNS, behind the port.
pub(crate) type WnsProvider = HttpProvider<Wns>;

/// What the client needs.
pub(crate) struct WnsConfig {
    /// The credential; without it the platform is off.
    pub(crate) credential: Option<WnsCredential>,
    /// Where the credential becomes an access token.
    pub(crate) token_endpoint: Url,
    /// PEM of CAs to trust besides the system's.
    pub(crate) extra_ca: Option<String>,
    /// Simulators may sit on loopback.
    pub(crate) allow_test_endpoints: bool,
}

/// One app at WNS.
pub(crate) struct Wns {
    http: Client,
    /// Dials for each request.
    fresh: Client,
    hosts: Mutex<Hosts>,
}

impl Wns {
    fn hosts(&self) -> MutexGuard<'_, Hosts> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service for Wns {
    const NAME: &'static str = "wns";
    const PLATFORM: Platform = Platform::Windows;
    /// A connection each.
    const CAPACITY: usize = 256;

    type Config = WnsConfig;
    type Error = ClientError;
    type Push<'a> = WnsPush<'a>;

    fn account(config: WnsConfig) -> Result<Option<NewAccount<Self>>, ClientError> {
        let Some(credential) = config.credential else {
            return Ok(None);
        };
        let tls = transport::tls_config(config.extra_ca.as_deref())?;
        // Tokens come from Microsoft's fixed host, or the operator's override; channels from what devices registered.
        let public_only = resolver::public_only(config.allow_test_endpoints, resolver::outgoing_proxy());
        Ok(Some(NewAccount {
            scope: Self::NAME.into(),
            tokens: TokenEndpoint {
                provider: Self::NAME,
                grant: grant(credential),
                url: config.token_endpoint,
                http: http::client(&tls, http::Options::tokens())?,
            },
            service: Self {
                http: http::client(&tls, http::Options::http1(Arc::clone(&public_only)))?,
                fresh: http::client(&tls, http::Options::http1(public_only).without_pool())?,
                hosts: Mutex::default(),
            },
        }))
    }

    fn push<'a>(&'a self, delivery: &'a Delivery) -> Option<WnsPush<'a>> {
        let TargetToken::Channel(channel) = &delivery.token else {
            return None;
        };
        Some(WnsPush {
            wns: self,
            channel,
            delivery,
        })
    }

    fn can_probe(&self, delivery: &Delivery) -> bool {
        match &delivery.token {
            TargetToken::Channel(channel) => self.hosts().can_probe(channel.host()),
            TargetToken::Apple(_) | TargetToken::Fcm(_) => false,
        }
    }

    fn describe(error: reqwest::Error) -> String {
        http::kind_of_failure(error)
    }
}

/// One push.
pub(crate) struct WnsPush<'a> {
    wns: &'a Wns,
    channel: &'a ChannelUri,
    delivery: &'a Delivery,
}

impl Push for WnsPush<'_> {
    fn body(&self) -> Bytes {
        self.delivery.payload.expose().to_owned().into()
    }

    fn request(&self, over: Over) -> RequestBuilder {
        let http = match over {
            Over::AnyConnection => &self.wns.http,
            Over::FreshConnection => &self.wns.fresh,
        };
        request::build(http, self.channel, self.delivery)
    }

    /// HTTP/1.1 tells answers apart by their order alone. One too many, of a confused server or proxy, is read as that
    /// of the next push over the connection, which may be to another channel.
    fn confirms_an_end(&self) -> bool {
        true
    }

    fn read(&self, answer: &Answer) -> Reading {
        error::read(answer)
    }

    fn is_own(&self, answer: &Answer) -> bool {
        error::is_from_wns(&answer.headers)
    }

    fn sender(&self) -> TurnKey {
        self.delivery.sender
    }

    /// HTTP/1.1.
    fn shares_its_connection(&self) -> bool {
        false
    }

    fn tried(&self, tried: &Tried<'_>) {
        let (host, now) = (self.channel.host(), tried.ended);
        match tried.result {
            Ok(response) if error::is_from_wns(response.headers()) => self.wns.hosts().answered(host, now),
            Ok(response) if response.status().is_server_error() => self.wns.hosts().failed(host, now),
            Ok(_) | Err(SendError::Unsendable) => {}
            Err(
                SendError::NotSent
                | SendError::Refused
                | SendError::TimedOut
                | SendError::Reset
                | SendError::Lost,
            ) => {
                self.wns.hosts().failed(host, now);
            }
        }
    }

    fn speaks(&self) -> bool {
        self.wns.hosts().speaks(self.channel.host())
    }
}

fn grant(credential: WnsCredential) -> Grant {
    let (client_id, scope) = match credential.identity {
        WnsIdentity::PackageSid(sid) => (sid, LEGACY_SCOPE),
        WnsIdentity::Entra { client_id, .. } => (client_id, ENTRA_SCOPE),
    };
    Grant::ClientCredentials {
        client_id,
        client_secret: credential.client_secret,
        scope,
    }
}

#[cfg(test)]
mod tests;
