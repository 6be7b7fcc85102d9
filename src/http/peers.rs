//! How many connections one TCP peer may have, so that no single address holds all of the listener's.
//!
//! Asked by [`super::server`] for each connection of the public listener, before a byte is read. A proxy that the operator
//! trusts has no bound: it speaks for many, and to bound them is its own business. Everybody else has
//! `RELAY_CONNECTIONS_PER_ADDRESS`, WebSockets included; an IPv6 /64 counts as one, since any customer has one. One
//! connection too many is closed at once: to hold it until there is room is what its sender wants.
//!
//! Invariant: a place is given back when its connection ends, whatever the connection became. Only peers with an open
//! connection are remembered, so there are never more than the listener's connections.

use std::{net::SocketAddr, sync::Arc};

use actix_web::dev::ServiceRequest;
use metrics::counter;

use super::proxies::TrustedProxies;
use crate::{
    auth::Authority,
    ws::places::{Place, PlaceBounds, Places},
};

/// Everybody who is connected.
pub(crate) struct Peers {
    proxies: Arc<TrustedProxies>,
    authority: Arc<Authority>,
    places: Places,
}

/// Whose connection it is. Its place, where it needs one, is given back by dropping.
pub(super) struct Peer {
    _place: Option<Place>,
}

impl Peer {
    /// A trusted proxy, or the operator. It needs no place.
    pub(super) const TRUSTED: Self = Self { _place: None };

    /// Whether it is [`Peer::TRUSTED`].
    #[cfg(test)]
    fn is_trusted(&self) -> bool {
        self._place.is_none()
    }
}

impl Peers {
    /// Nobody yet. Of an address that isn't trusted, so many.
    pub(super) fn new(
        per_address: usize,
        proxies: Arc<TrustedProxies>,
        authority: Arc<Authority>,
    ) -> Arc<Self> {
        let bounds = PlaceBounds {
            per_address: u32::try_from(per_address).unwrap_or(u32::MAX),
            // The listener bounds them.
            all: u32::MAX,
        };
        Arc::new(Self {
            proxies,
            authority,
            places: Places::new(bounds),
        })
    }

    /// A request comes on one of the connections.
    pub(super) fn notice(&self, request: &ServiceRequest) {
        if let Some(peer) = request.peer_addr() {
            self.proxies.notice(peer, request.headers());
        }
    }

    /// A connection comes. `None`: its peer has enough.
    pub(super) fn admit(&self, peer: SocketAddr) -> Option<Peer> {
        if self.proxies.contains(peer) {
            return Some(Peer::TRUSTED);
        }
        let hash = self.authority.derived().address_hash(peer.ip()).host;
        let place = self.places.take_any(hash).ok();
        if place.is_none() {
            counter!("relay_connections_refused_total").increment(1);
        }
        place.map(|place| Peer { _place: Some(place) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::authority::tests::kit::Kit;

    async fn peers() -> Arc<Peers> {
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        Peers::new(
            2,
            Arc::new(TrustedProxies::new(trusted)),
            Kit::new().await.authority,
        )
    }

    fn admitted(peers: &Peers, peer: &str) -> Option<Peer> {
        peers.admit(peer.parse().unwrap())
    }

    #[tokio::test]
    async fn a_peer_has_its_share_and_gets_it_back_and_its_neighbour_has_another() {
        let peers = peers().await;
        let own = ["9.9.9.9:1", "9.9.9.9:2"].map(|peer| admitted(&peers, peer).unwrap());
        assert!(admitted(&peers, "9.9.9.9:3").is_none());
        assert!(admitted(&peers, "[::ffff:9.9.9.9]:3").is_none());
        assert!(admitted(&peers, "9.9.9.8:1").is_some());
        drop(own);
        assert!(admitted(&peers, "9.9.9.9:3").is_some());
        assert_eq!(peers.places.count(), 0);
    }

    #[tokio::test]
    async fn addresses_of_one_ipv6_network_share_and_the_next_network_does_not() {
        let peers = peers().await;
        let own = ["[2001:db8::1]:1", "[2001:db8::2]:1"].map(|peer| admitted(&peers, peer).unwrap());
        assert!(admitted(&peers, "[2001:db8::ffff:0:0:3]:1").is_none());
        assert!(admitted(&peers, "[2001:db8:0:1::1]:1").is_some());
        drop(own);
    }

    #[tokio::test]
    async fn a_trusted_proxy_has_no_bound_on_a_dual_stack_socket_either() {
        let peers = peers().await;
        let held: Vec<_> = (1..=50)
            .map(|port| peers.admit(([10, 0, 0, 1], port).into()).unwrap())
            .collect();
        assert!(held.iter().all(Peer::is_trusted));
        assert!(admitted(&peers, "[::ffff:10.0.0.1]:1").unwrap().is_trusted());
        assert!(!admitted(&peers, "9.9.9.9:1").unwrap().is_trusted());
    }
}
