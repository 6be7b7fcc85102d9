//! Keyed hashes under keys derived from the enrollment secret.
use std::net::IpAddr;

use sovereign_relay_actors::{
    ports::{Entropy, TokenHash},
    push::Idempotency,
};
use sovereign_relay_protocol::{
    envelope::CollapseTag,
    id::{CollapseId, IdempotencyKey, InstanceId},
    platform::Platform,
    push::PushMessage,
    redacted::Redacted,
};

use super::keys::Secrets;

/// Keyed hashes of a client address, for limits and groups.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AddressHash {
    /// Of the IPv4 address, or of the IPv6 /64.
    pub host: u64,
    /// IPv6 only: of the /48.
    pub site: Option<u64>,
}

/// One key per purpose.
pub struct DerivedKeys {}

impl DerivedKeys {
    /// From the current secret; without one, from randomness of this process.
    pub fn new(_secrets: Option<&Secrets>, _entropy: &dyn Entropy) -> Self {
        Self {}
    }

    /// Names a device token in limits, memories and fuses. Case does not matter in Apple's hexadecimal.
    pub fn token_hash(&self, _platform: Platform, _token: &Redacted) -> TokenHash {
        unimplemented!()
    }

    /// What a collapse id leaves as.
    pub fn collapse_tag(&self, _instance: InstanceId, _id: &CollapseId) -> CollapseTag {
        unimplemented!()
    }

    /// Names a push for its repeats. The message's own `idempotency_key` is not part of its identity.
    pub fn idempotency(
        &self,
        _instance: InstanceId,
        _key: &IdempotencyKey,
        _message: &PushMessage,
    ) -> Idempotency {
        unimplemented!()
    }

    /// Names a client address in limits and groups.
    pub fn address_hash(&self, _address: IpAddr) -> AddressHash {
        unimplemented!()
    }

    /// Names a device token in the logs of this process.
    pub fn log_pseudonym(&self, _platform: Platform, _token: &Redacted) -> String {
        unimplemented!()
    }
}
