//! The sealed file, version 1: bytes in, bytes out, nothing else.
//!
//! ```text
//! "SRDKEYF" | version, 1 byte | memory in KiB, passes, lanes, 4 bytes each | salt, 16 | nonce, 12   = 48, associated data
//! AES-256-GCM(Argon2id(passphrase, salt), nonce, entry, the 48)             = entry and 16
//! SHA-256 of all before, its first 8 bytes
//! ```
//! The last part tells a damaged file from a wrong passphrase, which have different answers; it protects nothing.
//! RFC 9106 (Argon2), NIST SP 800-38D (GCM).

use aes_gcm::{
    Aes256Gcm, KeyInit, Nonce,
    aead::{Aead as _, Key, Payload},
};
use argon2::{Algorithm, Argon2, Params, Version};
use sha2::{Digest as _, Sha256};
use sovereign_relay_protocol::redacted::Redacted;
use zeroize::Zeroizing;

use crate::{
    entropy,
    store::{Entry, StoreError},
};

const NAME: &[u8; 7] = b"SRDKEYF";
const VERSION: u8 = 1;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;
const CHECK_BYTES: usize = 8;

/// What a guess costs. The defaults are RFC 9106's second recommendation, for machines that can't spare 2 GiB: 64 MiB,
/// three passes, four lanes. A guess takes a tenth of a second and the memory of one on whatever hardware; an app opens
/// its key once per start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cost {
    pub(super) memory_kib: u32,
    pub(super) passes: u32,
    pub(super) lanes: u32,
}

impl Default for Cost {
    fn default() -> Self {
        Self {
            memory_kib: 64 * 1024,
            passes: 3,
            lanes: 4,
        }
    }
}

/// Beyond these a file asks for more than any version wrote: it would only take the machine's memory or time.
const MOST: Cost = Cost {
    memory_kib: 1024 * 1024,
    passes: 16,
    lanes: 16,
};

/// The parts of a file, before anything is believed of them.
struct Parts<'a> {
    head: &'a [u8],
    cost: Cost,
    salt: &'a [u8; SALT_BYTES],
    nonce: &'a [u8; NONCE_BYTES],
    sealed: &'a [u8],
}

/// Seals an entry.
pub(super) fn seal(entry: &Entry, passphrase: &Redacted, cost: Cost) -> Result<Vec<u8>, StoreError> {
    let salt: [u8; SALT_BYTES] = entropy::random_bytes().map_err(|_| StoreError::Randomness)?;
    let nonce: [u8; NONCE_BYTES] = entropy::random_bytes().map_err(|_| StoreError::Randomness)?;
    let mut file = Vec::new();
    file.extend_from_slice(NAME);
    file.push(VERSION);
    for number in [cost.memory_kib, cost.passes, cost.lanes] {
        file.extend_from_slice(&number.to_be_bytes());
    }
    file.extend_from_slice(&salt);
    file.extend_from_slice(&nonce);
    let cipher = cipher(passphrase, &salt, cost)?;
    let payload = Payload {
        msg: entry,
        aad: &file,
    };
    // GCM refuses only texts of 64 GiB and more.
    let sealed = cipher
        .encrypt(&Nonce::from(nonce), payload)
        .map_err(|_| StoreError::Damaged)?;
    file.extend_from_slice(&sealed);
    let check = check(&file);
    file.extend_from_slice(&check);
    Ok(file)
}

/// Opens a file.
pub(super) fn open(file: &[u8], passphrase: &Redacted) -> Result<Entry, StoreError> {
    let parts = parse(file)?;
    let cipher = cipher(passphrase, parts.salt, parts.cost)?;
    let payload = Payload {
        msg: parts.sealed,
        aad: parts.head,
    };
    cipher
        .decrypt(&Nonce::from(*parts.nonce), payload)
        .map(Zeroizing::new)
        .map_err(|_| StoreError::WrongPassphrase)
}

fn parse(file: &[u8]) -> Result<Parts<'_>, StoreError> {
    let (name, rest) = file.split_first_chunk::<7>().ok_or(StoreError::Damaged)?;
    if name != NAME {
        return Err(StoreError::Foreign);
    }
    let (version, rest) = rest.split_first().ok_or(StoreError::Damaged)?;
    if *version > VERSION {
        return Err(StoreError::Newer);
    }
    let (before, check_as_read) = file
        .split_last_chunk::<CHECK_BYTES>()
        .ok_or(StoreError::Damaged)?;
    if *version != VERSION || check(before) != *check_as_read {
        return Err(StoreError::Damaged);
    }
    fields(before, rest).ok_or(StoreError::Damaged)
}

/// `rest` is the file after its version, with the check; `before` the file without the check.
fn fields<'a>(before: &'a [u8], rest: &'a [u8]) -> Option<Parts<'a>> {
    let (memory, rest) = rest.split_first_chunk::<4>()?;
    let (passes, rest) = rest.split_first_chunk::<4>()?;
    let (lanes, rest) = rest.split_first_chunk::<4>()?;
    let (salt, rest) = rest.split_first_chunk::<SALT_BYTES>()?;
    let (nonce, rest) = rest.split_first_chunk::<NONCE_BYTES>()?;
    let (sealed, _) = rest.split_last_chunk::<CHECK_BYTES>()?;
    let head = before.strip_suffix(sealed)?;
    let cost = Cost {
        memory_kib: u32::from_be_bytes(*memory),
        passes: u32::from_be_bytes(*passes),
        lanes: u32::from_be_bytes(*lanes),
    };
    cost.is_bearable().then_some(Parts {
        head,
        cost,
        salt,
        nonce,
        sealed,
    })
}

impl Cost {
    fn is_bearable(self) -> bool {
        self.memory_kib <= MOST.memory_kib && self.passes <= MOST.passes && self.lanes <= MOST.lanes
    }
}

fn cipher(passphrase: &Redacted, salt: &[u8], cost: Cost) -> Result<Aes256Gcm, StoreError> {
    let mut key = Zeroizing::new(Key::<Aes256Gcm>::default());
    let params = Params::new(cost.memory_kib, cost.passes, cost.lanes, Some(key.len()));
    let argon2 = Argon2::new(
        Algorithm::Argon2id,
        Version::V0x13,
        params.map_err(|_| StoreError::Damaged)?,
    );
    argon2
        .hash_password_into(passphrase.expose().as_bytes(), salt, key.as_mut_slice())
        .map_err(|_| StoreError::Damaged)?;
    Ok(Aes256Gcm::new(&key))
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
