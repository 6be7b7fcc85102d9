//! Name resolution that gives public addresses alone, and pins what was checked to the connection.
//!
//! A channel URI's host passed the channel rule, but its DNS may still point inside the operator's network. The
//! HTTP client connects to exactly the addresses returned here. Through an outgoing proxy, which resolves names itself,
//! only the host rule holds.

use std::{net::SocketAddr, sync::Arc};

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sovereign_relay_protocol::address::is_public;

/// Resolves with the system and drops what is not public, unless tests allow it. `proxy` is resolved too, wherever it
/// lies: an operator's own machine, which no device can name, since its name is not under the channel rule.
pub(super) fn public_only(allow_test_endpoints: bool, proxy: Option<String>) -> Arc<dyn Resolve> {
    Arc::new(PublicOnly {
        allow_test_endpoints,
        proxy,
    })
}

/// Host of the outgoing proxy that the environment names for https. `NO_PROXY` can't take it away for one host: then
/// that host is called directly, and the proxy's name is not asked for.
pub(super) fn outgoing_proxy() -> Option<String> {
    proxy_host(&Matcher::from_system())
}

fn proxy_host(proxies: &Matcher) -> Option<String> {
    let any_host = Uri::from_static("https://channel.invalid/");
    proxies.intercept(&any_host)?.uri().host().map(str::to_owned)
}

struct PublicOnly {
    allow_test_endpoints: bool,
    proxy: Option<String>,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let is_proxy = self
            .proxy
            .as_deref()
            .is_some_and(|proxy| proxy.eq_ignore_ascii_case(name.as_str()));
        let allow_all = self.allow_test_endpoints || is_proxy;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found
                .filter(|address| allow_all || is_public(address.ip()))
                .collect();
            if allowed.is_empty() {
                return Err("the name has no public address".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolves(resolver: Arc<dyn Resolve>, name: &str) -> bool {
        resolver.resolve(name.parse().unwrap()).await.is_ok()
    }

    #[tokio::test]
    async fn a_name_that_resolves_inside_is_no_address_at_all() {
        assert!(!resolves(public_only(false, None), "localhost").await);
        assert!(resolves(public_only(true, None), "localhost").await);
    }

    #[tokio::test]
    async fn the_operators_proxy_may_lie_inside_and_nothing_else() {
        let with_proxy = |proxy: &str| public_only(false, Some(proxy.to_owned()));
        assert!(resolves(with_proxy("LocalHost"), "localhost").await);
        assert!(!resolves(with_proxy("proxy.internal"), "localhost").await);
    }

    #[test]
    fn the_proxy_is_found_whatever_hosts_it_is_not_for() {
        let proxies = Matcher::builder()
            .https("http://proxy.internal:3128")
            .no("notify.windows.com")
            .build();
        assert_eq!(proxy_host(&proxies).as_deref(), Some("proxy.internal"));
        assert_eq!(proxy_host(&Matcher::builder().build()), None);
    }
}
