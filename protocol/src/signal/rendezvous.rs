//! Two instances that already share a secret meet without another channel: both derive the same rendezvous, which the
//! relay is told, and the same session secret, which it can't know. RFC 5869 (HKDF).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::seal::SessionSecret;
use crate::redacted::Redacted;

/// What both sides derive from the secret they share.
#[derive(Debug)]
pub struct Rendezvous {
    /// For the `rendezvous` of `POST /v1/signal/sessions`.
    pub name: Redacted,
    /// For sealing. It never leaves the client.
    pub secret: SessionSecret,
}

impl Rendezvous {
    /// Derives both from a shared secret of 32 bytes.
    pub fn derive(shared: &[u8; 32]) -> Self {
        let name = expand(shared, b"sov1|rendezvous");
        Self {
            name: Redacted::new(URL_SAFE_NO_PAD.encode(name.as_slice())),
            secret: SessionSecret::from_bytes(*expand(shared, b"sov1|k")),
        }
    }
}

fn expand(shared: &[u8; 32], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    // HKDF refuses only outputs over 8,160 bytes.
    let _ = Hkdf::<Sha256>::new(None, shared).expand(info, out.as_mut_slice());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::seal::tests::{hex, vectors};

    #[test]
    fn both_values_are_those_of_the_vectors() {
        let vectors = vectors(include_str!("../../vectors/rendezvous.json"));
        let cases = vectors["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        for case in cases {
            let derived = Rendezvous::derive(&hex(&case["secretHex"]).try_into().unwrap());
            assert_eq!(derived.name.expose(), case["rendezvous"].as_str().unwrap());
            assert_eq!(derived.secret.expose().as_slice(), hex(&case["kHex"]));
            assert!(!format!("{derived:?}").contains(derived.name.expose()));
        }
    }
}
