//! The simulators' own certificate authority, made anew at each start: nothing outside the process trusts it.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::SimulatorError;

/// Names that the servers' certificates are good for. `localhost` is also the WNS channel host.
const SERVER_NAMES: [&str; 4] = ["localhost", "*.localhost", "127.0.0.1", "::1"];

/// The authority and the one server certificate that it signed.
pub(crate) struct CertificateAuthority {
    pem: String,
    chain: Vec<rustls_pki_types::CertificateDer<'static>>,
    server_key: Vec<u8>,
}

impl CertificateAuthority {
    pub(crate) fn generate() -> Result<Self, SimulatorError> {
        let issuer = CertifiedIssuer::self_signed(authority_params(), KeyPair::generate()?)?;
        let server_key = KeyPair::generate()?;
        let mut params = CertificateParams::new(SERVER_NAMES.map(str::to_owned))?;
        params
            .distinguished_name
            .push(DnType::CommonName, "Sovereign Relay simulator");
        let certificate = params.signed_by(&server_key, &issuer)?;
        Ok(Self {
            pem: issuer.pem(),
            chain: vec![certificate.der().clone()],
            server_key: server_key.serialize_der(),
        })
    }

    /// The authority's certificate: what a relay is to trust.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A server configuration that offers exactly these application protocols.
    pub(crate) fn server_config(&self, alpn: &[&[u8]]) -> Result<Arc<ServerConfig>, SimulatorError> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server_key.clone()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), key)?;
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
        Ok(Arc::new(config))
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "Sovereign Relay simulator CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}
