//! The sealed payload: what an instance makes and only the device can open. The relay never calls this.
//!
//! ```text
//! base64( ephemeral public key, 65 bytes | IV, 12 | tag, 16 | ciphertext )
//! key = HKDF-SHA256(ECDH P-256(ephemeral, device), empty salt, "sovereign-push-v1", 32 bytes)
//! ciphertext, tag = AES-256-GCM(key, IV, plaintext), no associated data
//! ```
//!
//! The plaintext is UTF-8 JSON. [`seal`] pads it with trailing spaces, which JSON parsers skip, to one of a few
//! lengths, so that the length of what Apple, Google and Microsoft carry tells little.
//!
//! Invariant: nothing is returned from [`open`] that was not authenticated. RFC 5869 (HKDF), NIST SP 800-38D (GCM),
//! SEC 1 (points).

use aes_gcm::{
    Aes256Gcm, KeyInit, Nonce, Tag,
    aead::{AeadInOut, Key},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hkdf::Hkdf;
use p256::{PublicKey, SecretKey};
use sha2::Sha256;
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

const POINT_BYTES: usize = 65;
const IV_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const UNCOMPRESSED: u8 = 0x04;
const INFO: &[u8] = b"sovereign-push-v1";
/// A random scalar is outside the group's order once in 2^32 draws; more misses than this mean that the
/// randomness is broken.
const SCALAR_DRAWS: usize = 16;

/// The lengths a plaintext is padded to, in bytes. The last one is the longest that can be sealed: in base64 and
/// in its envelope it fits every provider.
pub const PADDED_BYTES: [usize; 5] = [256, 512, 1024, 1792, 2560];

/// The payload could not be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SealError {
    /// Longer than the last of [`PADDED_BYTES`].
    #[error("the notification is longer than 2560 bytes of JSON")]
    TooLarge,
    /// Not JSON: the device would not be able to read it.
    #[error("the notification is not JSON")]
    NotJson,
    /// The randomness gave no usable key in many draws.
    #[error("the randomness source is broken")]
    Randomness,
}

/// The payload could not be opened. Which step failed is for the developer, not for an answer to anyone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// Not standard base64 with padding.
    #[error("not base64")]
    NotBase64,
    /// Shorter than key, IV and tag.
    #[error("too short")]
    TooShort,
    /// The ephemeral key is not an uncompressed point on P-256.
    #[error("not a P-256 public key")]
    NotAPoint,
    /// Made for another device, or changed on the way.
    #[error("not authentic")]
    NotAuthentic,
    /// Authentic, but not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
}

/// A device's public key: a point on P-256.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DevicePublicKey(PublicKey);

/// A device's private key. It prints nothing and is wiped when dropped.
#[derive(Clone)]
pub struct DeviceKey(SecretKey);

impl DevicePublicKey {
    /// Parses the base64 of the 65-byte uncompressed point, as devices register it.
    pub fn from_base64(text: &str) -> Result<Self, OpenError> {
        let bytes = STANDARD.decode(text).map_err(|_| OpenError::NotBase64)?;
        point(&bytes).map(Self)
    }

    /// Base64 of the 65-byte uncompressed point.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0.to_sec1_bytes())
    }
}

impl DeviceKey {
    /// A new key from a source of randomness, which fills the bytes it is given.
    pub fn generate(fill: impl FnMut(&mut [u8])) -> Result<Self, SealError> {
        random_scalar(fill).map(Self)
    }

    /// From the 32-byte scalar.
    pub fn from_scalar(bytes: &[u8]) -> Option<Self> {
        SecretKey::from_slice(bytes).ok().map(Self)
    }

    /// The 32-byte scalar: for the device's own key store, nowhere else.
    pub fn expose_scalar(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes().into())
    }

    /// The public half.
    pub fn public_key(&self) -> DevicePublicKey {
        DevicePublicKey(self.0.public_key())
    }
}

impl std::fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("REDACTED")
    }
}

/// Seals a notification (JSON text) for a device. `fill` must be cryptographically secure randomness.
pub fn seal(
    notification: &str,
    device: &DevicePublicKey,
    mut fill: impl FnMut(&mut [u8]),
) -> Result<String, SealError> {
    serde_json::from_str::<serde::de::IgnoredAny>(notification).map_err(|_| SealError::NotJson)?;
    let padded = pad(notification)?;
    let ephemeral = random_scalar(&mut fill)?;
    let mut iv = [0; IV_BYTES];
    fill(&mut iv);
    Ok(seal_with(&padded, device, &ephemeral, iv))
}

/// Opens a sealed payload.
pub fn open(sealed: &str, device: &DeviceKey) -> Result<String, OpenError> {
    let bytes = STANDARD.decode(sealed).map_err(|_| OpenError::NotBase64)?;
    let (ephemeral, rest) = bytes.split_at_checked(POINT_BYTES).ok_or(OpenError::TooShort)?;
    let (iv, rest) = rest.split_first_chunk::<IV_BYTES>().ok_or(OpenError::TooShort)?;
    let (tag, ciphertext) = rest.split_first_chunk::<TAG_BYTES>().ok_or(OpenError::TooShort)?;
    let cipher = cipher(&device.0, &point(ephemeral)?);
    let mut plaintext = ciphertext.to_vec();
    cipher
        .decrypt_inout_detached(
            &Nonce::from(*iv),
            &[],
            plaintext.as_mut_slice().into(),
            &Tag::from(*tag),
        )
        .map_err(|_| OpenError::NotAuthentic)?;
    String::from_utf8(plaintext).map_err(|_| OpenError::NotUtf8)
}

fn pad(notification: &str) -> Result<String, SealError> {
    let length = notification.len();
    let target = PADDED_BYTES
        .into_iter()
        .find(|padded| length <= *padded)
        .ok_or(SealError::TooLarge)?;
    let mut padded = String::with_capacity(target);
    padded.push_str(notification);
    padded.extend(std::iter::repeat_n(' ', target - length));
    Ok(padded)
}

fn seal_with(plaintext: &str, device: &DevicePublicKey, ephemeral: &SecretKey, iv: [u8; IV_BYTES]) -> String {
    let cipher = cipher(ephemeral, &device.0);
    let mut ciphertext = plaintext.as_bytes().to_vec();
    // GCM refuses only texts of 64 GiB and more; a caller's text is at most 2,560 bytes.
    let tag = cipher
        .encrypt_inout_detached(&Nonce::from(iv), &[], ciphertext.as_mut_slice().into())
        .unwrap_or_default();
    let mut bytes = Vec::with_capacity(POINT_BYTES + IV_BYTES + TAG_BYTES + ciphertext.len());
    bytes.extend_from_slice(&ephemeral.public_key().to_sec1_bytes());
    bytes.extend_from_slice(&iv);
    bytes.extend_from_slice(&tag);
    bytes.extend_from_slice(&ciphertext);
    STANDARD.encode(bytes)
}

fn cipher(ours: &SecretKey, theirs: &PublicKey) -> Aes256Gcm {
    let shared = ours.diffie_hellman(theirs);
    let mut key = Zeroizing::new(Key::<Aes256Gcm>::default());
    // HKDF refuses only outputs over 8,160 bytes.
    let _ = Hkdf::<Sha256>::new(None, shared.raw_secret_bytes()).expand(INFO, key.as_mut_slice());
    Aes256Gcm::new(&key)
}

fn point(bytes: &[u8]) -> Result<PublicKey, OpenError> {
    let uncompressed = bytes.len() == POINT_BYTES && bytes.first() == Some(&UNCOMPRESSED);
    if !uncompressed {
        return Err(OpenError::NotAPoint);
    }
    PublicKey::from_sec1_bytes(bytes).map_err(|_| OpenError::NotAPoint)
}

fn random_scalar(mut fill: impl FnMut(&mut [u8])) -> Result<SecretKey, SealError> {
    let mut bytes = [0; 32];
    for _ in 0..SCALAR_DRAWS {
        fill(&mut bytes);
        if let Ok(secret) = SecretKey::from_slice(&bytes) {
            bytes.zeroize();
            return Ok(secret);
        }
    }
    Err(SealError::Randomness)
}

#[cfg(test)]
mod tests;
