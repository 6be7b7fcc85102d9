//! Randomness. The one place of this crate that asks the system.

/// `N` random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// Fills `bytes`, or leaves them as they were.
#[allow(
    clippy::disallowed_methods,
    reason = "the one place of this crate that asks the system"
)]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    getrandom::fill(bytes)
}
