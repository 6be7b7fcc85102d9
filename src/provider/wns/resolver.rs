//! Name resolution that gives public addresses alone, and pins what was checked to the connection.
//!
//! A channel URI's host passed the channel rule, but its DNS may still point inside the operator's network. The
//! HTTP client connects to exactly the addresses returned here. Through an outgoing proxy, which resolves names itself,
//! only the host rule holds.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

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

/// Whether an address is one that the public internet routes (IANA's special-purpose registries).
pub(super) fn is_public(address: IpAddr) -> bool {
    let embedded = match address {
        IpAddr::V4(v4) => return is_public_v4(v4),
        IpAddr::V6(v6) => embedded_v4(v6),
    };
    if let Some(v4) = embedded {
        return is_public_v4(v4);
    }
    IpNet::V6(GLOBAL_UNICAST).contains(&address)
        && !SPECIAL_V6.iter().any(|net| IpNet::V6(*net).contains(&address))
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|net| net.contains(&address))
}

/// IPv4 inside IPv6: mapped, NAT64 and 6to4 reach the IPv4 address they name.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return Some(mapped);
    }
    let [a, b, c, d, e, f, g, h] = address.segments();
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match [a, b, c, d, e, f] {
        [0x64, 0xff9b, 0, 0, 0, 0] => Some(from(g, h)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(a: u16, b: u16, bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), bits)
}

const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

/// Everything that is routed lies here; loopback, unique local, link local, site local and multicast do not.
const GLOBAL_UNICAST: Ipv6Net = v6(0x2000, 0, 3);
/// Inside it: protocol assignments with Teredo and ORCHID, documentation.
const SPECIAL_V6: [Ipv6Net; 3] = [v6(0x2001, 0, 23), v6(0x2001, 0xdb8, 32), v6(0x3fff, 0, 20)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_inside_anybodys_network_are_refused() {
        let inside = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
        ];
        for text in inside {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn public_addresses_pass() {
        let public = [
            "20.33.0.1",
            "172.32.0.1",
            "100.128.0.1",
            "192.1.0.1",
            "2603:1030::1",
            "2a01:111::1",
            "::ffff:20.33.0.1",
            "64:ff9b::1421:1",
            "2002:1421:1::",
        ];
        for text in public {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

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
