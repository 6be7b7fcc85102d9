//! End-to-end sealing of signaling messages. Clients call it; the relay sees only that the result begins with `e1.`.
//!
//! ```text
//! e1.<base64url r>.<decimal m>.<base64url(ciphertext || tag)>
//! key = HKDF-SHA256(k, salt sessionId || r, info "sov1|" + sender's slot, 32 bytes)
//! AES-256-GCM, nonce m as 96 bits big-endian, associated data sessionId|slot|r|m
//! ```
//!
//! `k` is the session's secret, which the peers share and the relay never has. `r` is drawn anew for each page load,
//! `m` counts from 1 within it, so no nonce is used twice under one key.
//!
//! Invariant: an [`Opener`] returns what the other slot sealed, in the order it was sealed, each once. The relay can
//! drop and delay; it can't read, change, repeat, reorder, reflect or move a message to another session.
//! RFC 5869 (HKDF), NIST SP 800-38D (GCM).

use aes_gcm::{
    Aes256Gcm, KeyInit, Nonce,
    aead::{Aead, Key, Payload},
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use sha2::Sha256;
use thiserror::Error;
use zeroize::Zeroizing;

use super::{
    frame::{Opaque, SEALED_PREFIX},
    id::{SessionId, Slot},
};

/// The lengths a plaintext is padded to, in bytes, so that an offer, an answer and a candidate don't show by theirs.
pub const PADDED_BYTES: [usize; 7] = [256, 512, 1024, 2048, 4096, 8192, 16384];

/// Page loads of one peer that an opener follows. A relay lets a slot have 100 in the longest session.
const LOADS: usize = 256;

/// A message could not be sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SealError {
    /// Longer than the last of [`PADDED_BYTES`].
    #[error("the message is longer than 16384 bytes of JSON")]
    TooLarge,
    /// As many messages as a 64-bit counter counts.
    #[error("this page load has sealed too many messages")]
    Exhausted,
}

/// A message was not what the peer sealed next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum OpenError {
    /// Not the form above.
    #[error("not a sealed message")]
    Malformed,
    /// It, or a later one of the same page load, was opened before.
    #[error("repeated or out of order")]
    Replayed,
    /// Of a page load that a later one has replaced.
    #[error("of a page load that is over")]
    Retired,
    /// Changed on the way, of another session, of this side, or made by somebody who lacks the secret.
    #[error("not authentic")]
    NotAuthentic,
    /// Authentic, but not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
}

/// `k`: what the peers of a session share. It prints nothing and is wiped when dropped.
#[derive(Clone)]
pub struct SessionSecret(Zeroizing<[u8; 32]>);

impl SessionSecret {
    /// From 32 bytes of a cryptographically secure source.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for handing them to the other peer out of band.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// As 43 characters of base64url, for a link's fragment or a sealed push.
    pub fn expose_text(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(self.0.as_slice()))
    }

    /// Parses what [`SessionSecret::expose_text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).ok()?);
        bytes.as_slice().try_into().ok().map(Self::from_bytes)
    }
}

impl std::fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("REDACTED")
    }
}

/// Seals what one page load of one slot says.
pub struct Sealer {
    load: Load,
    last: u64,
}

impl Sealer {
    /// For a page load. `r` is 16 bytes of a cryptographically secure source, drawn for this load and never stored.
    pub fn new(secret: &SessionSecret, session: SessionId, slot: Slot, r: [u8; 16]) -> Self {
        Self {
            load: Load::new(secret, session, slot, r),
            last: 0,
        }
    }

    /// Seals JSON text, padded.
    pub fn seal(&mut self, plaintext: &str) -> Result<Opaque, SealError> {
        let padded = pad(plaintext)?;
        let m = self.last.checked_add(1).ok_or(SealError::Exhausted)?;
        let sealed = self.load.seal(m, padded.as_bytes());
        self.last = m;
        Ok(sealed)
    }
}

/// Opens what the other slot sealed.
pub struct Opener {
    secret: SessionSecret,
    session: SessionId,
    sender: Slot,
    current: Option<Reading>,
    retired: Vec<[u8; 16]>,
}

/// The page load that the peer is in.
struct Reading {
    load: Load,
    last: u64,
}

impl Opener {
    /// For messages of `sender`, the other slot.
    pub fn new(secret: SessionSecret, session: SessionId, sender: Slot) -> Self {
        Self {
            secret,
            session,
            sender,
            current: None,
            retired: Vec::new(),
        }
    }

    /// Opens the next message: JSON text, perhaps with spaces after it. A refused one changes nothing.
    pub fn open(&mut self, sealed: &Opaque) -> Result<Zeroizing<String>, OpenError> {
        let parts = Parts::parse(sealed.expose()).ok_or(OpenError::Malformed)?;
        if let Some(current) = self.current.as_mut().filter(|current| current.load.r == parts.r) {
            if parts.m <= current.last {
                return Err(OpenError::Replayed);
            }
            let plaintext = current.load.open(&parts)?;
            current.last = parts.m;
            return utf8(plaintext);
        }
        if self.retired.contains(&parts.r) || self.retired.len() >= LOADS {
            return Err(OpenError::Retired);
        }
        let load = Load::new(&self.secret, self.session, self.sender, parts.r);
        let plaintext = load.open(&parts)?;
        let reading = Reading { load, last: parts.m };
        self.retired
            .extend(self.current.replace(reading).map(|over| over.load.r));
        utf8(plaintext)
    }
}

/// What all messages of one page load share.
struct Load {
    r: [u8; 16],
    cipher: Aes256Gcm,
    associated_prefix: String,
}

impl Load {
    fn new(secret: &SessionSecret, session: SessionId, slot: Slot, r: [u8; 16]) -> Self {
        let session = session.to_string();
        let mut salt = session.clone().into_bytes();
        salt.extend_from_slice(&r);
        let mut key = Zeroizing::new(Key::<Aes256Gcm>::default());
        let info = [b"sov1|".as_slice(), slot.as_str().as_bytes()];
        // HKDF refuses only outputs over 8,160 bytes.
        let _ =
            Hkdf::<Sha256>::new(Some(&salt), secret.expose()).expand_multi_info(&info, key.as_mut_slice());
        Self {
            r,
            cipher: Aes256Gcm::new(&key),
            associated_prefix: format!("{session}|{}|{}|", slot.as_str(), URL_SAFE_NO_PAD.encode(r)),
        }
    }

    fn seal(&self, m: u64, plaintext: &[u8]) -> Opaque {
        let associated = self.associated(m);
        let payload = Payload {
            msg: plaintext,
            aad: associated.as_bytes(),
        };
        // GCM refuses only texts of 64 GiB and more.
        let sealed = self.cipher.encrypt(&nonce(m), payload).unwrap_or_default();
        let (r, sealed) = (URL_SAFE_NO_PAD.encode(self.r), URL_SAFE_NO_PAD.encode(sealed));
        Opaque::new(format!("{SEALED_PREFIX}{r}.{m}.{sealed}"))
    }

    fn open(&self, parts: &Parts) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let associated = self.associated(parts.m);
        let payload = Payload {
            msg: &parts.sealed,
            aad: associated.as_bytes(),
        };
        let opened = self.cipher.decrypt(&nonce(parts.m), payload);
        opened.map(Zeroizing::new).map_err(|_| OpenError::NotAuthentic)
    }

    fn associated(&self, m: u64) -> String {
        format!("{}{m}", self.associated_prefix)
    }
}

/// The parts of a sealed message, in their one spelling.
struct Parts {
    r: [u8; 16],
    m: u64,
    sealed: Vec<u8>,
}

impl Parts {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix(SEALED_PREFIX)?.split('.');
        let (r, m, sealed) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            r: URL_SAFE_NO_PAD.decode(r).ok()?.try_into().ok()?,
            m: counter(m)?,
            sealed: URL_SAFE_NO_PAD.decode(sealed).ok()?,
        })
    }
}

/// A decimal from 1 without a sign or leading zeros.
fn counter(text: &str) -> Option<u64> {
    let m: u64 = text.parse().ok()?;
    (m > 0 && m.to_string() == text).then_some(m)
}

fn nonce(m: u64) -> Nonce<aes_gcm::aead::consts::U12> {
    let mut bytes = [0; 12];
    let (_, counter) = bytes.split_at_mut(4);
    counter.copy_from_slice(&m.to_be_bytes());
    Nonce::from(bytes)
}

fn pad(plaintext: &str) -> Result<Zeroizing<String>, SealError> {
    let length = plaintext.len();
    let mut lengths = PADDED_BYTES.into_iter();
    let target = lengths
        .find(|padded| length <= *padded)
        .ok_or(SealError::TooLarge)?;
    let mut padded = Zeroizing::new(String::with_capacity(target));
    padded.push_str(plaintext);
    padded.extend(std::iter::repeat_n(' ', target - length));
    Ok(padded)
}

fn utf8(plaintext: Zeroizing<Vec<u8>>) -> Result<Zeroizing<String>, OpenError> {
    let text = std::str::from_utf8(&plaintext).map_err(|_| OpenError::NotUtf8)?;
    Ok(Zeroizing::new(text.to_owned()))
}

#[cfg(test)]
pub(crate) mod tests;
