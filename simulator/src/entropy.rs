//! Random bytes for device tokens, ids and bearer tokens. The one place of this crate that asks the system.

use uuid::Uuid;

/// `N` random bytes. Simulated secrets protect nothing, so a machine without randomness gets zeros, not a panic.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place of this crate that asks the system for randomness"
)]
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        tracing::error!(%error, "no randomness from the system");
    }
    bytes
}

/// `N` random bytes as lower-case hex.
pub(crate) fn random_hex<const N: usize>() -> String {
    random_bytes::<N>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A random UUID (version 4).
pub(crate) fn random_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(random_bytes()).into_uuid()
}
