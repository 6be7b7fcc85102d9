//! Instances that are past their youth: they have their own 600 pushes a minute, where those that enroll in a test
//! share 1,200 because they come from one address.
//!
//! Their keys are made here, as the earlier relay made them (no `gen` claim), under a secret that the relay is told.

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use sovereign_relay_protocol::id::InstanceId;

use super::{
    device::random,
    relay::{Instance, RelayOptions},
};

/// What the keys are signed with.
pub const SECRET: &str = "an enrollment secret that only tests know";
/// When the earlier relay made the keys; any time in the past will do.
const ISSUED_AT: u64 = 1_700_000_000;

impl RelayOptions {
    /// The relay takes the keys of [`grown_instance`].
    pub fn with_grown_instances(self) -> Self {
        self.set("RELAY_ENROLLMENT_SECRET", SECRET)
    }
}

/// An instance of a relay with [`RelayOptions::with_grown_instances`].
pub fn grown_instance() -> Instance {
    let mut bytes = [0; 16];
    random(&mut bytes);
    let id = InstanceId::from_random(bytes).to_string();
    let claims = serde_json::json!({ "instanceId": id, "iat": ISSUED_AT });
    let signer = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    let key = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &signer).unwrap();
    Instance { id, key }
}

/// Several of them.
pub fn grown_instances(count: usize) -> Vec<Instance> {
    (0..count).map(|_| grown_instance()).collect()
}
