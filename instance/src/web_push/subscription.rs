//! What a browser's `PushSubscription` says: where to post, and for which keys to encrypt.

use std::fmt;

use base64::{
    Engine as _,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use thiserror::Error;
use zeroize::Zeroizing;

use super::{
    address::{Addresses, Endpoint, EndpointError},
    crypto::{POINT_BYTES, uncompressed_point},
};

const AUTH_BYTES: usize = 16;
/// Browsers leave the padding out, some libraries put it in.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A subscription that passed the rules. It prints nothing.
#[derive(Clone)]
pub struct Subscription {
    endpoint: Endpoint,
    public_key: [u8; POINT_BYTES],
    auth: Zeroizing<[u8; AUTH_BYTES]>,
}

/// It can't be a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SubscriptionError {
    /// The address.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// `keys.p256dh`.
    #[error("keys.p256dh is not the base64url of an uncompressed P-256 point (65 bytes)")]
    PublicKey,
    /// `keys.auth`.
    #[error("keys.auth is not the base64url of 16 bytes")]
    Auth,
}

impl Subscription {
    /// Checks the three texts of a subscription, at registration and when they are read back.
    pub fn parse(
        endpoint: &str,
        p256dh: &str,
        auth: &str,
        addresses: Addresses,
    ) -> Result<Self, SubscriptionError> {
        let endpoint = Endpoint::parse(endpoint, addresses)?;
        let public_key = point(p256dh).ok_or(SubscriptionError::PublicKey)?;
        let auth = decode(auth).ok_or(SubscriptionError::Auth)?;
        Ok(Self {
            endpoint,
            public_key,
            auth: Zeroizing::new(auth),
        })
    }

    /// Where to post.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    pub(super) fn auth(&self) -> &[u8] {
        self.auth.as_slice()
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

fn point(text: &str) -> Option<[u8; POINT_BYTES]> {
    let bytes: [u8; POINT_BYTES] = decode(text)?;
    uncompressed_point(&bytes).map(|_| bytes)
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    LENIENT.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};

    use super::*;

    const ENDPOINT: &str = "https://push.example/send/1";

    fn key() -> Vec<u8> {
        let scalar = [7; 32];
        let key = p256::SecretKey::from_slice(&scalar).unwrap();
        key.public_key().to_sec1_bytes().into()
    }

    fn parse(p256dh: &str, auth: &str) -> Result<(), SubscriptionError> {
        Subscription::parse(ENDPOINT, p256dh, auth, Addresses::Public).map(|_| ())
    }

    #[test]
    fn keys_are_read_with_padding_and_without() {
        for engine in [URL_SAFE, URL_SAFE_NO_PAD] {
            assert_eq!(parse(&engine.encode(key()), &engine.encode([1; 16])), Ok(()));
        }
    }

    #[test]
    fn what_is_no_uncompressed_point_is_refused() {
        let good_auth = URL_SAFE_NO_PAD.encode([1; 16]);
        let mut off_the_curve = key();
        off_the_curve[64] ^= 1;
        let compressed = [&[2][..], &key()[1..33]].concat();
        for bytes in [
            vec![],
            vec![4; 65],
            off_the_curve,
            compressed,
            key()[..64].to_vec(),
        ] {
            assert_eq!(
                parse(&URL_SAFE_NO_PAD.encode(bytes), &good_auth),
                Err(SubscriptionError::PublicKey)
            );
        }
        assert_eq!(parse("no base64!", &good_auth), Err(SubscriptionError::PublicKey));
    }

    #[test]
    fn an_auth_secret_of_another_length_is_refused() {
        let good_key = URL_SAFE_NO_PAD.encode(key());
        for length in [0, 15, 17, 32] {
            let auth = URL_SAFE_NO_PAD.encode(vec![1; length]);
            assert_eq!(parse(&good_key, &auth), Err(SubscriptionError::Auth));
        }
        assert_eq!(
            parse(&good_key, "+/+/+/+/+/+/+/+/+/+/+/"),
            Err(SubscriptionError::Auth)
        );
    }

    #[test]
    fn a_subscription_prints_nothing() {
        let (key, auth) = (URL_SAFE_NO_PAD.encode(key()), URL_SAFE_NO_PAD.encode([1; 16]));
        let subscription = Subscription::parse(ENDPOINT, &key, &auth, Addresses::Public).unwrap();
        assert_eq!(format!("{subscription:?}"), "REDACTED");
    }
}
