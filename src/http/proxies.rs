//! The proxies that the operator trusts, and a word about one that they forgot.
//!
//! One for the process: the public listener asks it for the bound of a connection and shows it every request, handlers
//! and WebSockets ask it for a client's address. A proxy that isn't named works, but all its clients are then one
//! address and share its limits, which nobody would notice before they are reached. A peer on the same machine or
//! network that speaks for others is most likely such a proxy; one on a public address can't be told from a client that
//! pretends.
//!
//! Invariant: the word is said once, and names no address.

use std::{
    net::{IpAddr, SocketAddr},
    sync::atomic::{AtomicBool, Ordering},
};

use actix_web::http::header::{FORWARDED, HeaderMap};
use ipnet::IpNet;
use metrics::counter;
use tracing::warn;

use super::extract::address::{self, FORWARDED_FOR};

/// Peers whose `X-Forwarded-For` is believed.
#[derive(Debug)]
pub struct TrustedProxies {
    networks: Vec<IpNet>,
    is_told: AtomicBool,
}

impl TrustedProxies {
    /// These.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self {
            networks,
            is_told: AtomicBool::new(false),
        }
    }

    /// Whether what a peer says of others is believed.
    pub(crate) fn contains(&self, peer: SocketAddr) -> bool {
        address::is_trusted(peer, &self.networks)
    }

    /// The client's address, or the peer's where the headers don't say or can't be believed.
    pub(crate) fn client_address(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        address::client_address(peer, headers, &self.networks)
    }

    /// Counts a request of a proxy that seems forgotten, and tells the operator of the first.
    pub(crate) fn notice(&self, peer: SocketAddr, headers: &HeaderMap) {
        if !speaks_for_others(headers) || !is_near(peer.ip().to_canonical()) || self.contains(peer) {
            return;
        }
        counter!("relay_unnamed_proxy_requests_total").increment(1);
        if !self.is_told.swap(true, Ordering::Relaxed) {
            warn!(
                "a proxy on this machine or network is not in RELAY_TRUSTED_PROXIES: all its clients count as one \
                 address and share its limits on enrollments, connections and WebSockets; name the proxy there"
            );
        }
    }
}

/// `Forwarded` (RFC 7239) is never believed, but tells as much.
fn speaks_for_others(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED_FOR) || headers.contains_key(FORWARDED)
}

/// The ranges that are trusted where the operator names nobody.
fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;
    use crate::defaults;

    /// Whether the operator is told of a request, from this peer, with this header.
    fn is_told(trusted: &[&str], peer: &str, header: &'static str) -> bool {
        let proxies = TrustedProxies::new(trusted.iter().map(|net| net.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static(header),
            HeaderValue::from_static("192.0.2.1"),
        );
        proxies.notice(peer.parse().unwrap(), &headers);
        proxies.is_told.load(Ordering::Relaxed)
    }

    #[test]
    fn a_peer_nearby_that_speaks_for_others_and_is_not_named_is_told_of() {
        for peer in ["127.0.0.1:1", "10.1.1.1:1", "[::1]:1", "[::ffff:172.17.0.1]:1"] {
            for header in ["x-forwarded-for", "forwarded"] {
                assert!(is_told(&[], peer, header), "{peer} {header}");
                assert!(is_told(&["10.0.0.7/32"], peer, header), "{peer} {header}");
            }
        }
    }

    #[test]
    fn a_named_proxy_a_client_and_a_peer_far_away_are_not() {
        assert!(!is_told(
            &["10.0.0.0/8"],
            "[::ffff:10.1.1.1]:1",
            "x-forwarded-for"
        ));
        assert!(!is_told(&[], "127.0.0.1:1", "x-request-id"));
        assert!(!is_told(&[], "9.9.9.9:1", "x-forwarded-for"));
        assert!(!is_told(&[], "[2001:db8::1]:1", "x-forwarded-for"));
    }

    #[test]
    fn near_is_what_is_trusted_when_nobody_is_named() {
        for network in defaults::TRUSTED_PROXIES {
            let network: IpNet = network.parse().unwrap();
            assert!(
                is_near(network.network()) && is_near(network.broadcast()),
                "{network}"
            );
        }
    }
}
