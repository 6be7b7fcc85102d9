//! Where a Web Push may go: an https address of the public internet, which a user's browser named and nobody vouches
//! for.
//!
//! ```text
//!   registration   Endpoint::parse      https, a name or a public literal, no user info
//!   each push      Endpoint::parse      the same, of what the database gives
//!   each connect   PublicOnly::resolve  only public addresses of the name, and the connection goes to exactly those
//! ```
//!
//! Invariant: no connection is opened to an address that is not public, unless [`Addresses::PublicAndLoopback`] allows
//! this machine's own. A literal is never resolved, so it is judged when parsed; `Url` writes `0x7f.1` and
//! `2130706433` as the addresses they are. Redirects and proxies are off in [`super::send`].

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sovereign_relay_protocol::{address::is_public, redacted::Redacted};
use thiserror::Error;
use url::{Host, Url};

/// The longest endpoint. UnifiedPush allows 1,000 bytes, WNS channels 1,024; browsers' own are a few hundred.
pub const LONGEST_ENDPOINT_BYTES: usize = 2048;

/// Which addresses pushes may go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Addresses {
    /// Those of the public internet, over https.
    #[default]
    Public,
    /// Also this machine's own, and http to it: for a demo and tests, whose push service is local.
    PublicAndLoopback,
}

/// A push resource (RFC 8030). Who knows it can send to it, so it prints nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    url: Url,
    text: Redacted,
    origin: String,
}

/// It can't be an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum EndpointError {
    /// Over [`LONGEST_ENDPOINT_BYTES`].
    #[error("the endpoint is longer than {LONGEST_ENDPOINT_BYTES} bytes")]
    TooLong,
    /// No URL with a host, or one with blanks, a fragment or letters that are not ASCII.
    #[error("the endpoint is not a URL")]
    Malformed,
    /// Another scheme.
    #[error("the endpoint is not https")]
    NotHttps,
    /// A user name or password.
    #[error("the endpoint names a user")]
    UserInfo,
    /// A host inside somebody's network.
    #[error("the endpoint is not on the public internet")]
    NotPublic,
}

/// A name that has addresses, of which none is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the name has no public address")]
pub(super) struct NoPublicAddress;

impl Addresses {
    fn allow(self, address: IpAddr) -> bool {
        is_public(address) || (self.allow_loopback() && address.to_canonical().is_loopback())
    }

    fn allow_loopback(self) -> bool {
        match self {
            Self::Public => false,
            Self::PublicAndLoopback => true,
        }
    }
}

impl Endpoint {
    /// Checks an address. What a name resolves to is judged at each connect.
    pub fn parse(text: &str, addresses: Addresses) -> Result<Self, EndpointError> {
        if text.len() > LONGEST_ENDPOINT_BYTES {
            return Err(EndpointError::TooLong);
        }
        // `Url` would drop blanks and translate names; browsers give neither.
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(EndpointError::Malformed);
        }
        let url = Url::parse(text).map_err(|_| EndpointError::Malformed)?;
        let host = url.host().ok_or(EndpointError::Malformed)?;
        let is_local = addresses.allow_loopback() && is_loopback(&host);
        if url.scheme() != "https" && !(is_local && url.scheme() == "http") {
            return Err(EndpointError::NotHttps);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::UserInfo);
        }
        if url.fragment().is_some() {
            return Err(EndpointError::Malformed);
        }
        if !is_local && !may_be_public(&host) {
            return Err(EndpointError::NotPublic);
        }
        Ok(Self {
            origin: url.origin().ascii_serialization(),
            text: Redacted::new(text),
            url,
        })
    }

    /// The text as it was registered: for the database, nowhere else.
    pub fn expose(&self) -> &str {
        self.text.expose()
    }

    /// The push service, without the part that is the user's.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Scheme, host and port, which a VAPID token is made out to.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("REDACTED")
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => is_localhost(name),
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

/// A name without a dot is one of somebody's own network.
fn may_be_public(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => name.trim_end_matches('.').contains('.') && !is_localhost(name),
        Host::Ipv4(address) => is_public(IpAddr::V4(*address)),
        Host::Ipv6(address) => is_public(IpAddr::V6(*address)),
    }
}

/// RFC 6761, 6.3.
fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

/// The system's name resolution.
pub(super) struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Name resolution that gives allowed addresses alone. The HTTP client connects to what is returned here and asks no
/// second time.
pub(super) struct PublicOnly {
    names: Arc<dyn Resolve>,
    addresses: Addresses,
}

impl PublicOnly {
    pub(super) fn new(names: Arc<dyn Resolve>, addresses: Addresses) -> Self {
        Self { names, addresses }
    }
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let (names, addresses) = (self.names.clone(), self.addresses);
        Box::pin(async move {
            let mut found = names.resolve(name).await?.peekable();
            if found.peek().is_none() {
                return Err("the name has no address".into());
            }
            let allowed: Vec<SocketAddr> = found.filter(|address| addresses.allow(address.ip())).collect();
            if allowed.is_empty() {
                return Err(NoPublicAddress.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
