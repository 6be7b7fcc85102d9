//! Randomness. The one place of this crate that asks the system.

use uuid::Uuid;

/// `N` random bytes for a secret.
///
/// # Panics
/// When the operating system has no randomness to give: nothing secret could be made, so nothing may go on.
#[allow(
    clippy::disallowed_methods,
    clippy::panic,
    reason = "the one place of this crate that asks the system; no secret may be made without randomness"
)]
pub(crate) fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("the operating system gives no randomness: {error}");
    }
    bytes
}

/// A random UUID (RFC 9562, version 4).
pub(crate) fn uuid() -> Uuid {
    uuid::Builder::from_random_bytes(random_bytes()).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_differ_and_say_that_they_are_random() {
        assert_ne!(uuid(), uuid());
        assert_eq!(uuid().get_version_num(), 4);
    }
}
