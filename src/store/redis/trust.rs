//! Which certificates Redis may show: the system's roots issued it, or `RELAY_EXTRA_CA_FILE`'s did.
//!
//! The crate `redis` takes the system's roots or others, so those two are handed over as one bundle.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use redis::TlsCertificates;
use rustls::RootCertStore;
use rustls_native_certs::load_native_certs;

/// Both, as the crate wants them.
pub(super) fn certificates(extra_ca: &str) -> TlsCertificates {
    TlsCertificates {
        client_tls: None,
        root_cert: Some([&system_roots(), extra_ca].join("\n").into_bytes()),
    }
}

/// Those that TLS can use: one that can't would make the whole bundle useless.
fn system_roots() -> String {
    let mut usable = RootCertStore::empty();
    let mut pem = String::new();
    for certificate in load_native_certs().certs {
        if usable.add(certificate.clone()).is_ok() {
            let text = STANDARD.encode(certificate);
            // To a string it never fails.
            let _ = writeln!(
                pem,
                "-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----"
            );
        }
    }
    pem
}

#[cfg(test)]
mod tests {
    use rustls_pki_types::{CertificateDer, pem::PemObject as _};

    use super::*;

    #[test]
    fn the_extra_certificates_come_on_top_of_the_systems() {
        let own = rcgen::generate_simple_self_signed(["redis.example".to_owned()]).unwrap();
        let bundle = certificates(&own.cert.pem()).root_cert.unwrap();
        let all: Vec<_> = CertificateDer::pem_slice_iter(&bundle)
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(all.last(), Some(own.cert.der()));
        let mut usable = RootCertStore::empty();
        usable.add_parsable_certificates(load_native_certs().certs);
        assert_eq!(all.len(), usable.len() + 1);
    }
}
