//! The system's randomness, behind the port. One of the two files that may ask the system.
#![allow(
    clippy::disallowed_methods,
    reason = "this is the adapter that the ban points to"
)]

use sovereign_relay_actors::ports::Entropy;

/// The operating system's generator.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    /// # Panics
    /// When the operating system has no randomness to give: nothing secret could be made, so nothing may go on.
    #[allow(
        clippy::panic,
        reason = "no key, ticket or nonce may be made without randomness"
    )]
    fn fill(&self, bytes: &mut [u8]) {
        if let Err(error) = getrandom::fill(bytes) {
            panic!("the operating system gives no randomness: {error}");
        }
    }
}
