//! Which network addresses are the public internet's, for whoever calls a host that somebody else named.
//!
//! The relay asks it about WNS channels, an instance about Web Push endpoints. It is asked about the very address that
//! is connected to, since a name may resolve to another one each time. IANA's registries of special-purpose addresses:
//! <https://www.iana.org/assignments/iana-ipv4-special-registry/>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry/>.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Whether an address is one that the public internet routes (IANA's special-purpose registries).
pub fn is_public(address: IpAddr) -> bool {
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
}
