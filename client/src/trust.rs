//! Whom this side believes to be the relay: certificates, and where plain text is allowed. HTTP and signaling share it.

use std::sync::Arc;

use rustls::{ClientConfig, crypto::aws_lc_rs};
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use rustls_platform_verifier::Verifier;
use thiserror::Error;
use url::{Host, Url};

/// Certificates to trust. Cheap to clone; make one for the whole program, since it loads the system's roots.
#[derive(Clone)]
pub struct Trust {
    tls: Arc<ClientConfig>,
    plaintext_anywhere: bool,
}

/// Trust could not be set up.
#[derive(Debug, Error)]
pub enum TrustError {
    /// The extra bundle is not PEM.
    #[error("the extra certificates are not PEM: {0}")]
    Pem(#[source] rustls_pki_types::pem::Error),
    /// A certificate, or the system's store, was not accepted.
    #[error("the trusted certificates could not be loaded: {0}")]
    Roots(#[source] rustls::Error),
}

/// An address that a key or a ticket must not be sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AddressError {
    /// Not a URL with a host, or of another scheme.
    #[error("not an address of a relay")]
    Malformed,
    /// Anyone on the way could read the key or ticket.
    #[error("an address without TLS is for loopback only")]
    Plaintext,
}

impl Trust {
    /// The system's roots.
    pub fn system() -> Result<Self, TrustError> {
        Self::new(Vec::new())
    }

    /// The system's roots and a bundle of PEM certificates.
    pub fn with_extra(pem: &str) -> Result<Self, TrustError> {
        let extra = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
        Self::new(extra.map_err(TrustError::Pem)?)
    }

    /// Allows addresses without TLS beyond loopback, for a network of which each cable is known.
    pub fn plaintext_anywhere(mut self) -> Self {
        self.plaintext_anywhere = true;
        self
    }

    fn new(extra: Vec<CertificateDer<'static>>) -> Result<Self, TrustError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = Verifier::new_with_extra_roots(extra, provider.clone()).map_err(TrustError::Roots)?;
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TrustError::Roots)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Self {
            tls: Arc::new(tls),
            plaintext_anywhere: false,
        })
    }

    /// The configuration, for a protocol that TLS negotiates.
    pub(crate) fn tls(&self, alpn: &[&[u8]]) -> ClientConfig {
        let mut tls = ClientConfig::clone(&self.tls);
        tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        tls
    }

    /// Checks an address: `secure` or, to loopback, `plain` is its scheme.
    pub(crate) fn address(&self, url: &str, secure: &str, plain: &str) -> Result<Url, AddressError> {
        let url = Url::parse(url).map_err(|_| AddressError::Malformed)?;
        let host = url.host().ok_or(AddressError::Malformed)?;
        if url.scheme() == secure {
            return Ok(url);
        }
        if url.scheme() != plain {
            return Err(AddressError::Malformed);
        }
        if !self.plaintext_anywhere && !is_loopback(&host) {
            return Err(AddressError::Plaintext);
        }
        Ok(url)
    }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_only_loopback_is_an_address() {
        let trust = Trust::system().unwrap();
        let check = |url: &str| trust.address(url, "wss", "ws").map(|_| ());
        for good in [
            "wss://relay.example/v1/signal",
            "ws://127.0.0.1:9",
            "ws://[::1]:9",
            "ws://localhost",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        assert_eq!(check("ws://relay.example"), Err(AddressError::Plaintext));
        assert_eq!(check("ws://127.0.0.1.example"), Err(AddressError::Plaintext));
        for wrong in ["https://relay.example", "relay.example", "wss:", ""] {
            assert_eq!(check(wrong), Err(AddressError::Malformed), "{wrong}");
        }
        let lenient = trust.clone().plaintext_anywhere();
        assert!(lenient.address("ws://relay.example", "wss", "ws").is_ok());
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(Trust::with_extra(wrong), Err(TrustError::Roots(_))));
        let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
        assert!(matches!(Trust::with_extra(cut), Err(TrustError::Pem(_))));
    }
}
