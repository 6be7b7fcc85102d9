//! Randomness, behind a type that tests can script. The one place of this crate that asks the system.
#![allow(
    dead_code,
    reason = "the modules that spread retries and make secrets are being built"
)]

use std::time::Duration;

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

/// Spreads retries; no secret hangs on it.
pub(crate) struct Jitter(Box<dyn FnMut() -> u64 + Send>);

impl Jitter {
    pub(crate) fn system() -> Self {
        Self(Box::new(|| u64::from_le_bytes(random_bytes())))
    }

    /// Always the same draw.
    #[cfg(test)]
    pub(crate) fn fixed(draw: u64) -> Self {
        Self(Box::new(move || draw))
    }

    /// A moment from zero up to `bound`, each as likely as any other.
    pub(crate) fn within(&mut self, bound: Duration) -> Duration {
        let scaled = (bound.as_nanos() * u128::from((self.0)())) >> u64::BITS;
        Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_is_scaled_to_the_bound() {
        let bound = Duration::from_secs(8);
        assert_eq!(Jitter::fixed(0).within(bound), Duration::ZERO);
        assert_eq!(Jitter::fixed(1 << 63).within(bound), bound / 2);
        assert!(Jitter::fixed(u64::MAX).within(bound) < bound);
        assert!(Jitter::system().within(bound) < bound);
    }

    #[test]
    fn two_ids_differ_and_say_that_they_are_random() {
        assert_ne!(uuid(), uuid());
        assert_eq!(uuid().get_version_num(), 4);
    }
}
