//! The primitives that the `ece` crate asks for, from the crates that the sealed payload uses already.
//!
//! Called by [`mod@super::seal`], which installs it. `ece` knows RFC 8188 and 8291 (which bytes are derived, padded and
//! encrypted in which order); here is P-256, HKDF-SHA-256, AES-128-GCM and randomness, and no decision.
//!
//! Invariant: what is not a point on the curve, a key or an authentic ciphertext is an error.

use std::{any::Any, sync::Once};

use aes_gcm::{Aes128Gcm, KeyInit as _, Nonce, aead::Aead as _};
use ece::{Cryptographer, EcKeyComponents, Error, LocalKeyPair, RemotePublicKey};
use hkdf::Hkdf;
use p256::{PublicKey, SecretKey};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::entropy::random_bytes;

/// A random scalar lies outside the group's order once in 2^32 draws.
const SCALAR_DRAWS: usize = 16;
const SCALAR_BYTES: usize = 32;
/// The marker, x and y.
pub(super) const POINT_BYTES: usize = 65;
const UNCOMPRESSED: u8 = 0x04;
const RANDOM_CHUNK_BYTES: usize = 32;

/// Makes `ece` use these primitives. A host that has given it others keeps them.
pub(super) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let _ = ece::crypto::set_cryptographer(&Primitives);
    });
}

/// A new P-256 key.
pub(super) fn random_key() -> Option<SecretKey> {
    (0..SCALAR_DRAWS).find_map(|_| key_of_scalar(&*Zeroizing::new(random_bytes::<SCALAR_BYTES>())))
}

/// The key of a 32-byte scalar. By itself the library would take shorter ones too.
pub(super) fn key_of_scalar(bytes: &[u8]) -> Option<SecretKey> {
    let has_length = bytes.len() == SCALAR_BYTES;
    has_length.then(|| SecretKey::from_slice(bytes).ok()).flatten()
}

/// The uncompressed form of a point, which is the only one that RFC 8291 knows.
pub(super) fn uncompressed_point(bytes: &[u8]) -> Option<PublicKey> {
    let is_uncompressed = bytes.len() == POINT_BYTES && bytes.first() == Some(&UNCOMPRESSED);
    is_uncompressed
        .then(|| PublicKey::from_sec1_bytes(bytes).ok())
        .flatten()
}

pub(super) struct Primitives;

struct Ours(SecretKey);

struct Theirs(PublicKey);

impl RemotePublicKey for Theirs {
    fn as_raw(&self) -> ece::Result<Vec<u8>> {
        Ok(self.0.to_sec1_bytes().into())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl LocalKeyPair for Ours {
    fn pub_as_raw(&self) -> ece::Result<Vec<u8>> {
        Ok(self.0.public_key().to_sec1_bytes().into())
    }

    fn raw_components(&self) -> ece::Result<EcKeyComponents> {
        Ok(EcKeyComponents::new(
            self.0.to_bytes().to_vec(),
            self.pub_as_raw()?,
        ))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Cryptographer for Primitives {
    fn generate_ephemeral_keypair(&self) -> ece::Result<Box<dyn LocalKeyPair>> {
        let key = random_key().ok_or(Error::CryptoError)?;
        Ok(Box::new(Ours(key)))
    }

    fn import_key_pair(&self, components: &EcKeyComponents) -> ece::Result<Box<dyn LocalKeyPair>> {
        let key = key_of_scalar(components.private_key()).ok_or(Error::CryptoError)?;
        Ok(Box::new(Ours(key)))
    }

    fn import_public_key(&self, raw: &[u8]) -> ece::Result<Box<dyn RemotePublicKey>> {
        let key = uncompressed_point(raw).ok_or(Error::CryptoError)?;
        Ok(Box::new(Theirs(key)))
    }

    fn compute_ecdh_secret(
        &self,
        remote: &dyn RemotePublicKey,
        local: &dyn LocalKeyPair,
    ) -> ece::Result<Vec<u8>> {
        let (Some(ours), Some(theirs)) = (
            local.as_any().downcast_ref::<Ours>(),
            remote.as_any().downcast_ref::<Theirs>(),
        ) else {
            return Err(Error::CryptoError);
        };
        Ok(ours.0.diffie_hellman(&theirs.0).raw_secret_bytes().to_vec())
    }

    fn hkdf_sha256(&self, salt: &[u8], secret: &[u8], info: &[u8], len: usize) -> ece::Result<Vec<u8>> {
        let mut output = vec![0; len];
        Hkdf::<Sha256>::new(Some(salt), secret)
            .expand(info, &mut output)
            .map_err(|_| Error::CryptoError)?;
        Ok(output)
    }

    fn aes_gcm_128_encrypt(&self, key: &[u8], iv: &[u8], data: &[u8]) -> ece::Result<Vec<u8>> {
        let (cipher, nonce) = cipher(key, iv)?;
        cipher.encrypt(&nonce, data).map_err(|_| Error::CryptoError)
    }

    fn aes_gcm_128_decrypt(&self, key: &[u8], iv: &[u8], ciphertext_and_tag: &[u8]) -> ece::Result<Vec<u8>> {
        let (cipher, nonce) = cipher(key, iv)?;
        cipher
            .decrypt(&nonce, ciphertext_and_tag)
            .map_err(|_| Error::CryptoError)
    }

    fn random_bytes(&self, dest: &mut [u8]) -> ece::Result<()> {
        for chunk in dest.chunks_mut(RANDOM_CHUNK_BYTES) {
            let random = random_bytes::<RANDOM_CHUNK_BYTES>();
            for (to, from) in chunk.iter_mut().zip(random) {
                *to = from;
            }
        }
        Ok(())
    }
}

fn cipher(key: &[u8], iv: &[u8]) -> ece::Result<(Aes128Gcm, Nonce<aes_gcm::aead::consts::U12>)> {
    let cipher = Aes128Gcm::new_from_slice(key).map_err(|_| Error::InvalidKeyLength)?;
    let nonce = iv.try_into().map_err(|_| Error::CryptoError)?;
    Ok((cipher, nonce))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primitives_pass_the_suite_of_the_crate_that_asks_for_them() {
        install();
        ece::crypto::test_cryptographer(Primitives);
    }

    #[test]
    fn what_is_no_key_or_not_authentic_is_an_error() {
        for raw in [&[][..], &[4; 65], &[0; 65], &[2; 33], &[4; 64]] {
            assert!(Primitives.import_public_key(raw).is_err());
        }
        for scalar in [vec![0; 32], vec![0xff; 32], vec![1; 31], vec![]] {
            let components = EcKeyComponents::new(scalar, vec![4; 65]);
            assert!(Primitives.import_key_pair(&components).is_err());
        }
        let (key, iv) = ([7; 16], [9; 12]);
        let mut sealed = Primitives.aes_gcm_128_encrypt(&key, &iv, b"hello").unwrap();
        assert_eq!(
            Primitives.aes_gcm_128_decrypt(&key, &iv, &sealed).unwrap(),
            b"hello"
        );
        sealed[0] ^= 1;
        assert!(Primitives.aes_gcm_128_decrypt(&key, &iv, &sealed).is_err());
        assert!(Primitives.aes_gcm_128_encrypt(&key[1..], &iv, b"").is_err());
        assert!(Primitives.aes_gcm_128_encrypt(&key, &iv[1..], b"").is_err());
    }

    #[test]
    fn randomness_fills_lengths_of_every_kind() {
        for length in [0, 1, 16, 31, 32, 33, 100] {
            let mut bytes = vec![0; length + 16];
            Primitives.random_bytes(&mut bytes).unwrap();
            assert!(bytes[length..].iter().any(|byte| *byte != 0));
        }
    }
}
