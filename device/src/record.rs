//! A key pair as text, the way a store keeps it: `sovereign-device-key 1 <private, base64> <public, base64>`.
//!
//! Called by [`crate::key`]. Text, because some credential stores treat what they keep as such; both halves, because a
//! key that lives in hardware can't be asked for its public one everywhere. The two are also each other's check: no
//! damage to either leaves a pair.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sovereign_relay_protocol::seal::{DeviceKey, DevicePublicKey};
use zeroize::Zeroizing;

use crate::store::{Entry, StoreError};

const NAME: &str = "sovereign-device-key";
const VERSION: &str = "1";

/// The entry to keep.
pub(crate) fn write(key: &DeviceKey) -> Entry {
    let private = Zeroizing::new(STANDARD.encode(key.expose_scalar().as_slice()));
    let public = key.public_key().to_base64();
    let length = NAME.len() + VERSION.len() + private.len() + public.len() + 3;
    // Long enough from the start: growing would leave a copy behind.
    let mut entry = Zeroizing::new(Vec::with_capacity(length));
    for part in [NAME, " ", VERSION, " ", &private, " ", &public] {
        entry.extend_from_slice(part.as_bytes());
    }
    entry
}

/// The pair that an entry holds.
pub(crate) fn read(entry: &[u8]) -> Result<DeviceKey, StoreError> {
    let rest = entry.strip_prefix(NAME.as_bytes()).ok_or(StoreError::Foreign)?;
    let text = std::str::from_utf8(rest).map_err(|_| StoreError::Damaged)?;
    let (version, pair) = text
        .strip_prefix(' ')
        .and_then(|text| text.split_once(' '))
        .ok_or(StoreError::Damaged)?;
    if version != VERSION {
        let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
        return Err(if is_number {
            StoreError::Newer
        } else {
            StoreError::Damaged
        });
    }
    pair_of(pair).ok_or(StoreError::Damaged)
}

fn pair_of(text: &str) -> Option<DeviceKey> {
    let (private, public) = text.split_once(' ')?;
    let scalar = Zeroizing::new(STANDARD.decode(private).ok()?);
    let key = DeviceKey::from_scalar(&scalar)?;
    let public = DevicePublicKey::from_base64(public).ok()?;
    (key.public_key() == public).then_some(key)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entropy;

    fn key() -> DeviceKey {
        DeviceKey::generate(|bytes| entropy::fill(bytes).unwrap()).unwrap()
    }

    fn error_of(entry: &[u8]) -> String {
        format!("{:?}", read(entry).unwrap_err())
    }

    #[test]
    fn what_was_written_is_read() {
        let key = key();
        let entry = write(&key);
        assert_eq!(read(&entry).unwrap().public_key(), key.public_key());
        assert_eq!(entry.len(), entry.capacity(), "no copy was left by growing");
    }

    #[test]
    fn a_pair_cut_at_any_byte_is_damaged_and_one_of_somebody_else_is_foreign() {
        let entry = write(&key());
        for length in 0..entry.len() {
            let expected = if length < NAME.len() { "Foreign" } else { "Damaged" };
            assert_eq!(error_of(&entry[..length]), expected, "{length}");
        }
        assert_eq!(error_of(b"a password"), "Foreign");
    }

    #[test]
    fn no_flipped_bit_leaves_a_pair() {
        let entry = write(&key());
        for bit in 0..entry.len() * 8 {
            let mut flipped = entry.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_private_half_with_another_public_half_is_damaged() {
        let (one, other) = (write(&key()), write(&key()));
        let half = one.len() - 88;
        let mixed = [&one[..half], &other[half..]].concat();
        assert_eq!(error_of(&mixed), "Damaged");
    }

    #[test]
    fn a_later_version_is_said_to_be_one() {
        assert_eq!(error_of(b"sovereign-device-key 2 whatever it holds"), "Newer");
        assert_eq!(error_of(b"sovereign-device-key x y z"), "Damaged");
    }

    proptest! {
        #[test]
        fn whatever_is_kept_is_read_without_a_panic(entry in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&entry);
            let _ = read(&[b"sovereign-device-key 1 ".as_slice(), &entry].concat());
        }
    }
}
