//! Keyed hashes: names for tokens, addresses and messages that tell nothing without the enrollment secret.
//!
//! Called by the edge (`http/`), which hands hashes on in place of what they name. Every purpose has its own key,
//! HKDF-SHA256 (RFC 5869) of the enrollment secret with a label of its own, so that replicas agree and a hash made
//! for one purpose says nothing in another.
//!
//! While the secret is changed, replicas side by side have different ones as their current. What one of them must find
//! though another wrote it, the outcome of a push and the session at a rendezvous, therefore has a name under every
//! secret that is configured, and whoever looks for it looks under each. The rest goes by the current secret alone:
//! limits and memories of a token or an address begin anew once, at the swap, and a collapse id of before it replaces
//! nothing after it.
//!
//! Invariant: what is hashed is encoded unambiguously, each part behind its length.

use std::net::{IpAddr, Ipv6Addr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use sovereign_relay_actors::{
    ports::{Entropy, TokenHash},
    push::{Idempotency, PushName},
    session::port::ConnectionHash,
};
use sovereign_relay_protocol::{
    envelope::CollapseTag,
    id::{CollapseId, IdempotencyKey, InstanceId},
    platform::{Environment, Platform},
    push::PushMessage,
    redacted::Redacted,
    signal::id::{ConnectionId, SessionId, Slot},
    token::identity,
};
use zeroize::Zeroizing;

use super::keys::Secrets;
use crate::store::InviteHash;

/// HKDF salt: sets these keys apart from any other use of the same secret.
const SALT: &[u8] = b"sovereign-relay derived keys v1";

/// Keyed hashes of a client address, for limits and groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressHash {
    /// Of the IPv4 address, or of the IPv6 /64.
    pub host: u64,
    /// IPv6 only: of the /48.
    pub site: Option<u64>,
}

/// One key per purpose.
pub struct DerivedKeys {
    token: Key,
    collapse: Key,
    address: Key,
    turn: Key,
    shared: SharedKeys,
    /// Of the previous secrets, which may also be the next one.
    others: Vec<SharedKeys>,
}

/// Of one secret: for what is looked up under the others, too.
struct SharedKeys {
    idempotency: Key,
    rendezvous: Key,
}

impl DerivedKeys {
    /// From the secrets; without any, from randomness of this process.
    pub fn new(secrets: Option<&Secrets>, entropy: &dyn Entropy) -> Self {
        let mut random = Zeroizing::new([0; 32]);
        entropy.fill(random.as_mut());
        let secret = secrets.map_or(random.as_slice(), |secrets| secrets.current().expose().as_bytes());
        let previous = secrets.into_iter().flat_map(Secrets::previous);
        Self {
            token: Key::new(secret, "device token"),
            collapse: Key::new(secret, "collapse id"),
            address: Key::new(secret, "client address"),
            turn: Key::new(secret, "turn user"),
            shared: SharedKeys::new(secret),
            others: previous
                .map(|secret| SharedKeys::new(secret.expose().as_bytes()))
                .collect(),
        }
    }

    /// Names a device token in limits, memories and fuses: one device by one name, however its token is spelled.
    pub fn token_hash(&self, platform: Platform, token: &Redacted) -> TokenHash {
        TokenHash(u128::from_be_bytes(
            self.token
                .short(&[platform.as_str().as_bytes(), &identity(platform, token)]),
        ))
    }

    /// What a collapse id leaves as.
    pub fn collapse_tag(&self, instance: InstanceId, id: &CollapseId) -> CollapseTag {
        CollapseTag::from_mac(&self.collapse.hash(&[instance.as_bytes(), id.expose().as_bytes()]))
    }

    /// Names a push for its repeats. The message's own `idempotency_key` is not part of its identity.
    pub fn idempotency(
        &self,
        instance: InstanceId,
        key: &IdempotencyKey,
        message: &PushMessage,
    ) -> Idempotency {
        let name = |keys: &SharedKeys| keys.push_name(instance, key, message);
        Idempotency::new(name(&self.shared), self.others.iter().map(name))
    }

    /// Names a client address in limits and groups. An IPv4 address mapped into IPv6 is the IPv4 address.
    pub fn address_hash(&self, address: IpAddr) -> AddressHash {
        let hash = |parts: &[&[u8]]| u64::from_be_bytes(self.address.short(parts));
        match address.to_canonical() {
            IpAddr::V4(address) => AddressHash {
                host: hash(&[b"4", &address.octets()]),
                site: None,
            },
            IpAddr::V6(address) => AddressHash {
                host: hash(&[b"64", &prefix(address, 64)]),
                site: Some(hash(&[b"48", &prefix(address, 48)])),
            },
        }
    }

    /// The session at a rendezvous: all that is kept of the rendezvous itself.
    pub fn session_id(&self, rendezvous: &Redacted) -> SessionId {
        self.shared.session_id(rendezvous)
    }

    /// Where several secrets are configured: all ids that a session at the rendezvous may have, in an order that is the
    /// same whichever secret is the current one. With one secret, none: there is nowhere else to look.
    pub fn session_ids_to_look_at(&self, rendezvous: &Redacted) -> Vec<SessionId> {
        if self.others.is_empty() {
            return Vec::new();
        }
        let all = std::iter::once(&self.shared).chain(&self.others);
        let mut ids: Vec<_> = all.map(|keys| keys.session_id(rendezvous)).collect();
        ids.sort_unstable_by_key(|id| *id.as_bytes());
        ids.dedup();
        ids
    }

    /// Names a slot to the TURN server, in 22 characters of base64url.
    pub fn turn_user(&self, session: SessionId, slot: Slot) -> String {
        let name: [u8; 16] = self
            .turn
            .short(&[session.as_bytes().as_slice(), slot.as_str().as_bytes()]);
        URL_SAFE_NO_PAD.encode(name)
    }

    /// Names a client's connection secret. Without a key, unlike the rest: the secret has 128 random bits, and a
    /// client that resumes must be known again by a replica whose enrollment secret was changed meanwhile.
    pub fn connection_hash(&self, session: SessionId, connection: ConnectionId) -> ConnectionHash {
        let mut hash = Sha256::new();
        hash.update(b"sovereign-relay connection v1\0");
        hash.update(session.as_bytes());
        hash.update(connection.expose());
        ConnectionHash(u128::from_be_bytes(shortened(hash.finalize().into())))
    }
}

impl SharedKeys {
    fn new(secret: &[u8]) -> Self {
        Self {
            idempotency: Key::new(secret, "idempotency"),
            rendezvous: Key::new(secret, "rendezvous"),
        }
    }

    fn session_id(&self, rendezvous: &Redacted) -> SessionId {
        SessionId::from_bytes(self.rendezvous.short(&[rendezvous.expose().as_bytes()]))
    }

    fn push_name(&self, instance: InstanceId, key: &IdempotencyKey, message: &PushMessage) -> PushName {
        PushName {
            key: u128::from_be_bytes(self.idempotency.short(&[
                b"key",
                instance.as_bytes().as_slice(),
                key.expose().as_bytes(),
            ])),
            message: self.message_hash(message),
        }
    }

    /// Outcomes outlive a restart with it: whoever changes what goes in changes the label too, so that a repeat across
    /// an upgrade is a new push and not a conflict.
    fn message_hash(&self, message: &PushMessage) -> u128 {
        let PushMessage {
            platform,
            device_token,
            encrypted_payload,
            priority,
            ttl_seconds,
            collapse_id,
            environment,
            idempotency_key: _,
        } = message;
        let priority = format!("{priority:?}");
        // Neither is ever empty, so that absent and present differ.
        let collapse_id = collapse_id.as_ref().map(|id| id.expose().as_bytes());
        let environment = environment.map(Environment::as_str);
        u128::from_be_bytes(self.idempotency.short(&[
            b"message",
            platform.as_str().as_bytes(),
            device_token.expose().as_bytes(),
            encrypted_payload.expose().as_bytes(),
            priority.as_bytes(),
            &ttl_seconds.to_be_bytes(),
            collapse_id.unwrap_or_default(),
            environment.unwrap_or_default().as_bytes(),
        ]))
    }
}

/// All that is kept of an invite. No key: an invite is 256 random bits, and must outlive a change of the secret.
pub(super) fn invite_hash(invite: &Redacted) -> InviteHash {
    let mut hash = Sha256::new();
    hash.update(b"sovereign-relay invite v1\0");
    hash.update(invite.expose().as_bytes());
    InviteHash(hash.finalize().into())
}

/// `N` bytes for one purpose.
#[allow(
    clippy::expect_used,
    reason = "RFC 5869 gives up to 255 blocks of 32 bytes, and no caller asks for more than 64"
)]
pub(super) fn derive<const N: usize>(secret: &[u8], label: &str) -> [u8; N] {
    let mut key = [0; N];
    Hkdf::<Sha256>::new(Some(SALT), secret)
        .expand(label.as_bytes(), &mut key)
        .expect("at most 64 bytes");
    key
}

fn prefix(address: Ipv6Addr, bits: u32) -> [u8; 16] {
    let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits)).unwrap_or(0);
    (u128::from(address) & mask).to_be_bytes()
}

/// HMAC-SHA256 (RFC 2104) under one derived key.
struct Key(Hmac<Sha256>);

impl Key {
    fn new(secret: &[u8], label: &str) -> Self {
        let key = Zeroizing::new(derive::<64>(secret, label));
        Self(Hmac::new(&(*key).into()))
    }

    fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    fn short<const N: usize>(&self, parts: &[&[u8]]) -> [u8; N] {
        shortened(self.hash(parts))
    }
}

fn shortened<const N: usize>(hash: [u8; 32]) -> [u8; N] {
    let mut short = [0; N];
    short.iter_mut().zip(hash).for_each(|(to, from)| *to = from);
    short
}

#[cfg(test)]
mod tests;
