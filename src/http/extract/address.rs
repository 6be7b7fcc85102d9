//! The address a request came from, for limits. It is never logged.
//!
//! `X-Forwarded-For` can be written by anyone, so its last entry counts only when the TCP peer is one of the
//! operator's proxies: that entry is the one the proxy itself appended. Earlier entries, `Forwarded` and
//! `X-Real-IP` are never believed.

use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::{HeaderMap, HeaderName};
use ipnet::IpNet;

pub(crate) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The client's address, or the peer's where the headers don't say or can't be believed.
pub(crate) fn client_address(peer: SocketAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let address = peer.ip().to_canonical();
    if !is_trusted(peer, trusted) {
        return address;
    }
    last_forwarded(headers).unwrap_or(address)
}

/// Whether what a peer says of others is believed.
pub(crate) fn is_trusted(peer: SocketAddr, trusted: &[IpNet]) -> bool {
    let address = peer.ip().to_canonical();
    trusted.iter().any(|network| network.contains(&address))
}

/// The last entry of the last line: several lines are one list (RFC 9110, 5.3).
fn last_forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let line = headers.get_all(FORWARDED_FOR).last()?.to_str().ok()?;
    parse_entry(line.rsplit(',').next()?.trim())
}

/// Some proxies append a port, and IPv6 in brackets.
fn parse_entry(entry: &str) -> Option<IpAddr> {
    let bare = entry
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(entry);
    let address = bare.parse::<IpAddr>().ok();
    address
        .or_else(|| entry.parse::<SocketAddr>().ok().map(|socket| socket.ip()))
        .map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn seen_from(peer: &str, headers: &[(&'static str, &str)]) -> String {
        let trusted = ["127.0.0.0/8", "10.0.0.0/8", "::1/128"].map(|net| net.parse().unwrap());
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        client_address(peer.parse().unwrap(), &map, &trusted).to_string()
    }

    #[test]
    fn the_last_entry_counts_behind_a_trusted_proxy() {
        assert_eq!(
            seen_from("127.0.0.1:1", &[("x-forwarded-for", "6.6.6.6, 1.2.3.4")]),
            "1.2.3.4"
        );
    }

    #[test]
    fn the_last_of_several_lines_counts() {
        let lines = [
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-for", "6.6.6.6, 5.6.7.8"),
        ];
        assert_eq!(seen_from("10.1.1.1:1", &lines), "5.6.7.8");
    }

    #[test]
    fn a_peer_that_is_no_proxy_of_ours_is_the_client_whatever_it_claims() {
        assert_eq!(
            seen_from("9.9.9.9:1", &[("x-forwarded-for", "1.2.3.4")]),
            "9.9.9.9"
        );
    }

    #[test]
    fn other_headers_are_never_believed() {
        let claims = [("forwarded", "for=1.2.3.4"), ("x-real-ip", "1.2.3.4")];
        assert_eq!(seen_from("127.0.0.1:1", &claims), "127.0.0.1");
    }

    #[test]
    fn an_entry_that_is_no_address_leaves_the_peer() {
        for value in ["unknown", "1.2.3.4, ", "", "1.2.3.4.5", "fe80::zz"] {
            assert_eq!(
                seen_from("127.0.0.1:1", &[("x-forwarded-for", value)]),
                "127.0.0.1",
                "{value}"
            );
        }
    }

    #[test]
    fn ports_and_brackets_are_dropped() {
        assert_eq!(
            seen_from("[::1]:1", &[("x-forwarded-for", "1.2.3.4:5678")]),
            "1.2.3.4"
        );
        assert_eq!(
            seen_from("[::1]:1", &[("x-forwarded-for", "[2001:db8::1]:443")]),
            "2001:db8::1"
        );
        assert_eq!(
            seen_from("[::1]:1", &[("x-forwarded-for", "[2001:db8::1]")]),
            "2001:db8::1"
        );
    }

    #[test]
    fn an_ipv4_peer_on_a_dual_stack_socket_is_the_ipv4_address() {
        assert_eq!(seen_from("[::ffff:9.9.9.9]:1", &[]), "9.9.9.9");
        assert_eq!(
            seen_from("[::ffff:10.0.0.1]:1", &[("x-forwarded-for", "::ffff:1.2.3.4")]),
            "1.2.3.4"
        );
    }

    proptest! {
        #[test]
        fn no_header_moves_an_untrusted_peer(value in "[ -~]{0,60}") {
            prop_assert_eq!(seen_from("9.9.9.9:1", &[("x-forwarded-for", value.as_str())]), "9.9.9.9");
        }

        #[test]
        fn no_header_is_a_panic(value in "[ -~]{0,60}") {
            seen_from("127.0.0.1:1", &[("x-forwarded-for", value.as_str())]);
        }
    }
}
