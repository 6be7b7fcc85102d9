//! Who sends: VAPID (RFC 8292). Each push carries a token that says which push service it is for, until when it holds
//! and whom to ask, signed with the key that browsers subscribed to.
//!
//! ```text
//!   VapidKey::kept        made once, kept in the settings; another key would orphan every subscription
//!   Vapid::authorization  the token of the endpoint's origin: the kept one while it lasts, else a new one
//! ```
//!
//! One token an origin, since Apple asks not to renew more than once an hour, and a signature costs more than a
//! look-up.
//!
//! Invariant: a token is made out to the origin it goes to, ends within 12 hours and prints nothing.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use p256::{SecretKey, pkcs8::EncodePrivateKey as _};
use reqwest::header::HeaderValue;
use serde::Serialize;
use sha2::Sha256;
use sovereign_relay_protocol::{redacted::Redacted, time::UnixMillis};
use thiserror::Error;
use url::Url;
use zeroize::Zeroizing;

use super::{address::Endpoint, crypto};

/// Name of the setting that keeps the private key.
pub const VAPID_SETTING: &str = "vapid_private_key";

/// RFC 8292 allows 24 hours; half of it leaves room for clocks that differ.
const TOKEN_SECONDS: u64 = 12 * 3600;
/// A token is not used in its last hour: a push may wait on its way.
const RENEW_SECONDS: u64 = 3600;
/// Origins whose token is kept, 400 bytes or so each. Browsers have a handful of push services; UnifiedPush lets each
/// user bring one. When full, the token that ends first goes, and its origin gets a new one.
const TOKENS: usize = 1024;
/// A topic has at most 32 characters of base64url (RFC 8030, 5.4).
const TOPIC_BYTES: usize = 24;

/// The key that browsers subscribe to. It prints nothing.
#[derive(Clone)]
pub struct VapidKey(SecretKey);

/// Whom a push service may ask about what it is sent. Apple refuses addresses that can't be real.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contact(String);

/// There is no key to sign with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum VapidError {
    /// What is kept is not the base64url of a P-256 scalar.
    #[error("the kept VAPID key is not the base64url of a P-256 private key")]
    Malformed,
    /// The randomness gave no usable key in many draws.
    #[error("the randomness source is broken")]
    Randomness,
    /// The cryptography library refused the key.
    #[error("a VAPID token could not be signed")]
    Signing,
}

/// The contact is neither a `mailto:` nor an `https:` URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("the contact for push services is neither mailto: nor https:")]
pub struct ContactError;

impl VapidKey {
    /// A new key.
    pub fn generate() -> Result<Self, VapidError> {
        crypto::random_key().map(Self).ok_or(VapidError::Randomness)
    }

    /// From base64url of the 32-byte scalar, as the usual Web Push libraries keep it: a host can bring its own.
    pub fn parse(text: &Redacted) -> Result<Self, VapidError> {
        let bytes = URL_SAFE_NO_PAD.decode(text.expose().trim_end_matches('='));
        let bytes = Zeroizing::new(bytes.map_err(|_| VapidError::Malformed)?);
        crypto::key_of_scalar(&bytes)
            .map(Self)
            .ok_or(VapidError::Malformed)
    }

    /// The key that is kept, or a new one if there is none. `get_or_put` takes a setting's name and a value, and gives
    /// the value that holds, so that processes which start together agree.
    pub async fn kept<E: From<VapidError>>(
        get_or_put: impl AsyncFnOnce(&'static str, Redacted) -> Result<Redacted, E>,
    ) -> Result<Self, E> {
        let candidate = Self::generate()?.to_text();
        let holds = get_or_put(VAPID_SETTING, candidate).await?;
        Ok(Self::parse(&holds)?)
    }

    /// For the settings, nowhere else.
    pub fn to_text(&self) -> Redacted {
        Redacted::new(URL_SAFE_NO_PAD.encode(Zeroizing::new(self.0.to_bytes()).as_slice()))
    }

    /// What browsers take as `applicationServerKey`: base64url of the uncompressed point.
    pub fn public_key(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key().to_sec1_bytes())
    }
}

impl fmt::Debug for VapidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("REDACTED")
    }
}

impl Contact {
    /// Checks a contact.
    pub fn parse(text: &str) -> Result<Self, ContactError> {
        let url = Url::parse(text).map_err(|_| ContactError)?;
        let is_mail = url.scheme() == "mailto" && url.path().contains('@');
        let is_page = url.scheme() == "https" && url.has_host();
        (is_mail || is_page)
            .then(|| Self(text.to_owned()))
            .ok_or(ContactError)
    }
}

/// Signs.
pub(super) struct Vapid {
    signer: EncodingKey,
    public_key: String,
    contact: Contact,
    topics: Hkdf<Sha256>,
    tokens: Mutex<Tokens>,
}

impl Vapid {
    pub(super) fn new(key: &VapidKey, contact: Contact) -> Result<Self, VapidError> {
        let der = key.0.to_pkcs8_der().map_err(|_| VapidError::Signing)?;
        let vapid = Self {
            signer: EncodingKey::from_ec_der(der.as_bytes()),
            public_key: key.public_key(),
            contact,
            topics: Hkdf::new(
                Some(b"sovereign-web-push-topic"),
                Zeroizing::new(key.0.to_bytes()).as_slice(),
            ),
            tokens: Mutex::default(),
        };
        // A key that can't sign is found out at the start and not at the first push.
        vapid.sign("https://push.invalid", 0)?;
        Ok(vapid)
    }

    pub(super) fn public_key(&self) -> &str {
        &self.public_key
    }

    /// The `Authorization` of a push to `endpoint`.
    pub(super) fn authorization(
        &self,
        endpoint: &Endpoint,
        now: UnixMillis,
    ) -> Result<HeaderValue, VapidError> {
        let (origin, now) = (endpoint.origin(), now.seconds());
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = tokens.get(origin, now) {
            return Ok(kept);
        }
        let ends = now.saturating_add(TOKEN_SECONDS);
        let value = self.sign(origin, ends)?;
        tokens.put(origin, value.clone(), ends);
        Ok(value)
    }

    /// The `Topic` of a tag: the same for the same endpoint and tag, and nothing that a push service could guess the
    /// tag from or tell two users of one instance by.
    pub(super) fn topic(&self, endpoint: &Endpoint, tag: &str) -> String {
        let mut topic = [0; TOPIC_BYTES];
        let info = [endpoint.expose().as_bytes(), b"\0", tag.as_bytes()];
        // HKDF refuses only outputs over 8,160 bytes.
        let _ = self.topics.expand_multi_info(&info, &mut topic);
        URL_SAFE_NO_PAD.encode(topic)
    }

    fn sign(&self, audience: &str, ends: u64) -> Result<HeaderValue, VapidError> {
        let claims = Claims {
            aud: audience,
            exp: ends,
            sub: &self.contact.0,
        };
        let token = jsonwebtoken::encode(&Header::new(Algorithm::ES256), &claims, &self.signer)
            .map_err(|_| VapidError::Signing)?;
        let text = format!("vapid t={token}, k={}", self.public_key);
        let mut value = HeaderValue::try_from(text).map_err(|_| VapidError::Signing)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

#[derive(Serialize)]
struct Claims<'a> {
    aud: &'a str,
    exp: u64,
    sub: &'a str,
}

/// The tokens under way, by origin.
#[derive(Default)]
struct Tokens(HashMap<String, Token>);

struct Token {
    value: HeaderValue,
    ends: u64,
}

impl Tokens {
    /// One that will last. If the clock was set back, a token may end too late for its push service.
    fn get(&self, origin: &str, now: u64) -> Option<HeaderValue> {
        let token = self.0.get(origin)?;
        let left = token.ends.checked_sub(now)?;
        (RENEW_SECONDS < left && left <= TOKEN_SECONDS).then(|| token.value.clone())
    }

    fn put(&mut self, origin: &str, value: HeaderValue, ends: u64) {
        if self.0.len() >= TOKENS && !self.0.contains_key(origin) {
            self.forget_one();
        }
        self.0.insert(origin.to_owned(), Token { value, ends });
    }

    fn forget_one(&mut self) {
        let first = self.0.iter().min_by_key(|(_, token)| token.ends);
        if let Some(origin) = first.map(|(origin, _)| origin.clone()) {
            self.0.remove(&origin);
        }
    }
}

#[cfg(test)]
mod tests;
