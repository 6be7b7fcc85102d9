//! Rules for the URLs that the relay's credentials are sent to.
//!
//! A provider URL carries a signing key's token or a client secret, so a wrong one is a leak. Outside tests it is
//! https, on the provider's port, and not at an address of this machine or network. Names are checked only as names:
//! they are the operator's own words, and whoever answers has to prove the name with a certificate. Channel URIs are a
//! caller's words, so [`crate::provider::wns`] also checks what they resolve to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// What one provider URL may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndpointRule {
    /// Ports that need no permission.
    pub(crate) ports: &'static [u16],
    /// Whether only scheme, host and port may be given.
    pub(crate) bare: bool,
    /// `RELAY_ALLOW_TEST_ENDPOINTS`.
    pub(crate) allow_test: bool,
}

/// Only https's own port.
pub(crate) const HTTPS_ONLY: &[u16] = &[443];
/// APNs also listens on 2197.
pub(crate) const APNS_PORTS: &[u16] = &[443, 2197];

impl EndpointRule {
    /// Checks a URL.
    pub(crate) fn parse(self, text: &str) -> Result<Url, String> {
        let url = Url::parse(text.trim()).map_err(|_| "must be a URL like https://host".to_owned())?;
        if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
            return Err("must be a URL like https://host".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
            return Err("must hold no user name, password or fragment".to_owned());
        }
        if self.bare && (url.path() != "/" || url.query().is_some()) {
            return Err("must be scheme://host[:port] without a path".to_owned());
        }
        if !self.allow_test {
            self.check_public(&url)?;
        }
        Ok(url)
    }

    fn check_public(self, url: &Url) -> Result<(), String> {
        const ONLY_TESTS: &str = "(RELAY_ALLOW_TEST_ENDPOINTS=true allows it for simulators)";
        if url.scheme() != "https" {
            return Err(format!("must be https {ONLY_TESTS}"));
        }
        if !url
            .port_or_known_default()
            .is_some_and(|port| self.ports.contains(&port))
        {
            let ports: Vec<_> = self.ports.iter().map(u16::to_string).collect();
            return Err(format!("must use port {} {ONLY_TESTS}", ports.join(" or ")));
        }
        if !url.host().is_some_and(is_public) {
            return Err(format!("must not be a loopback or private address {ONLY_TESTS}"));
        }
        Ok(())
    }
}

fn is_public(host: Host<&str>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            // A name without a dot is found through the search domain of this network.
            name.contains('.')
                && !["localhost", "local", "internal"]
                    .iter()
                    .any(|end| name.ends_with(&format!(".{end}")))
        }
        Host::Ipv4(address) => is_public_address(IpAddr::V4(address)),
        Host::Ipv6(address) => is_public_address(IpAddr::V6(address)),
    }
}

/// Whether an address can belong to a provider: not this machine, this network or a special range (RFC 6890).
pub(crate) fn is_public_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_public_v4(mapped),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let shared = first == 100 && (64..128).contains(&second);
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || first == 0
        || shared)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    !(address.is_loopback()
        || address.is_unspecified()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: EndpointRule = EndpointRule {
        ports: APNS_PORTS,
        bare: true,
        allow_test: false,
    };
    const TEST: EndpointRule = EndpointRule {
        ports: APNS_PORTS,
        bare: true,
        allow_test: true,
    };

    #[test]
    fn a_public_https_host_is_taken() {
        for text in [
            "https://api.push.apple.com",
            "https://api.push.apple.com:2197",
            "https://8.8.8.8/",
        ] {
            assert!(PUBLIC.parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn simulators_need_the_permission() {
        for text in [
            "http://api.push.apple.com",
            "https://api.push.apple.com:8443",
            "https://127.0.0.1",
            "https://10.1.2.3",
            "https://169.254.169.254",
            "https://100.64.0.1",
            "https://0.0.0.0",
            "https://2130706433",
            "https://[::1]",
            "https://[fe80::1]",
            "https://[fd00::1]",
            "https://[::ffff:127.0.0.1]",
            "https://localhost",
            "https://a.localhost.",
            "https://redis",
            "https://metadata.google.internal",
        ] {
            assert!(PUBLIC.parse(text).is_err(), "{text}");
            assert!(TEST.parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn nothing_may_be_hidden_in_an_endpoint_even_in_tests() {
        for text in [
            "https://user@host.example",
            "https://:pw@host.example",
            "https://host.example/#x",
            "ftp://host.example",
        ] {
            assert!(TEST.parse(text).is_err(), "{text}");
        }
        for text in [
            "https://host.example/path",
            "https://host.example/?q",
            "host.example",
            "",
            "https://",
        ] {
            assert!(TEST.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_full_url_may_have_a_path_when_the_setting_is_one() {
        let rule = EndpointRule {
            bare: false,
            ..PUBLIC
        };
        assert!(rule.parse("https://oauth2.googleapis.com/token").is_ok());
    }
}
