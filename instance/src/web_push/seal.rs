//! One notification, sealed for one browser: RFC 8291 over RFC 8188, `aes128gcm`, one record of 4,096 bytes.
//!
//! Called by the fan-out before anything is sent, since the outbox keeps the sealed bytes and repeats them as they are.
//!
//! The plaintext is JSON and padded with trailing spaces, which JSON parsers skip, to one of [`PADDED_BYTES`]: the same
//! steps as the sealed payload of native devices, and one more. `ece` then adds 1 to 128 bytes of padding of its own,
//! up to a multiple of 128, so that a push service sees one of six lengths.

use sovereign_relay_protocol::seal;
use thiserror::Error;
use zeroize::Zeroizing;

use super::{crypto, subscription::Subscription};

/// The longest JSON. RFC 8291 leaves 3,993 bytes of a 4,096-byte body; `ece` pads to whole blocks of 128 bytes, of
/// which 31 fit, and its delimiter takes one byte.
pub const LONGEST_JSON_BYTES: usize = 31 * 128 - 1;
/// What a push service has to take (RFC 8030, 7.2), and no sealed notification is longer.
pub const LONGEST_BODY_BYTES: usize = 4096;

/// The lengths that JSON is padded to.
pub const PADDED_BYTES: [usize; 6] = {
    let [a, b, c, d, e] = seal::PADDED_BYTES;
    [a, b, c, d, e, LONGEST_JSON_BYTES]
};

/// The notification could not be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SealError {
    /// Longer than [`LONGEST_JSON_BYTES`].
    #[error("the notification is longer than {LONGEST_JSON_BYTES} bytes of JSON")]
    TooLarge,
    /// The service worker would not be able to read it.
    #[error("the notification is not JSON")]
    NotJson,
    /// No ephemeral key came of the randomness, or the primitives are another's and broken.
    #[error("the notification could not be encrypted")]
    Encryption,
}

/// Seals a notification (JSON text) for a browser. Each call gives other bytes.
pub fn seal(subscription: &Subscription, json: &str) -> Result<Vec<u8>, SealError> {
    serde_json::from_str::<serde::de::IgnoredAny>(json).map_err(|_| SealError::NotJson)?;
    let padded = PADDED_BYTES
        .into_iter()
        .find(|padded| json.len() <= *padded)
        .ok_or(SealError::TooLarge)?;
    crypto::install();
    let mut plaintext = Zeroizing::new(Vec::with_capacity(padded));
    plaintext.extend_from_slice(json.as_bytes());
    plaintext.resize(padded, b' ');
    ece::encrypt(subscription.public_key(), subscription.auth(), &plaintext)
        .map_err(|_| SealError::Encryption)
}

#[cfg(test)]
mod tests;
