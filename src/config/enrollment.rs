//! Who may enroll, and the secret that signs their keys.

use sovereign_relay_protocol::redacted::Redacted;

use super::{error::ConfigError, setting, source::Sources};
use crate::defaults::{SECRET_BYTES_GOOD, SECRET_BYTES_MIN};

/// Between previous secrets.
const SEPARATOR: char = ',';

/// Enrollment of instances.
#[derive(Clone, Debug)]
pub struct Enrollment {
    /// Who may.
    pub mode: EnrollmentMode,
    /// Signs and verifies instance keys. `None`: the relay makes one and keeps it in its data folder.
    pub secret: Option<Redacted>,
    /// Verify only, for keys made before a rotation.
    pub previous_secrets: Vec<Redacted>,
}

/// Who may enroll.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum EnrollmentMode {
    /// Anyone.
    #[default]
    Open,
    /// Whoever holds an invite of the operator.
    Invite,
    /// Nobody.
    Closed,
}

impl EnrollmentMode {
    /// As in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Invite => "invite",
            Self::Closed => "closed",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wanted = text.trim();
        let found = [Self::Open, Self::Invite, Self::Closed]
            .into_iter()
            .find(|mode| mode.as_str() == wanted);
        found.ok_or_else(|| "must be open, invite or closed".to_owned())
    }
}

impl Enrollment {
    pub(crate) fn load(sources: &Sources<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            mode: sources
                .parse(&setting::ENROLLMENT, EnrollmentMode::parse)?
                .unwrap_or_default(),
            secret: sources.parse(&setting::ENROLLMENT_SECRET, parse_secret)?,
            previous_secrets: sources
                .parse(&setting::ENROLLMENT_SECRET_PREVIOUS, parse_secrets)?
                .unwrap_or_default(),
        })
    }

    /// Whether a configured secret could be guessed by someone with time.
    pub(crate) fn has_short_secret(&self) -> bool {
        self.secret
            .iter()
            .chain(&self.previous_secrets)
            .any(|secret| secret.len() < SECRET_BYTES_GOOD)
    }

    /// Whether the current secret, which is taken byte for byte, is another one in the list of previous ones.
    pub(crate) fn has_secret_that_can_not_become_previous(&self) -> bool {
        self.secret.as_ref().is_some_and(|secret| {
            let text = secret.expose();
            text.contains(SEPARATOR) || text.trim() != text
        })
    }
}

/// A secret that is long enough. Taken byte for byte: keys of the earlier relay are signed with exactly these bytes.
pub(crate) fn parse_secret(text: &str) -> Result<Redacted, String> {
    if text.len() < SECRET_BYTES_MIN {
        return Err(format!(
            "must have at least {SECRET_BYTES_MIN} bytes, better {SECRET_BYTES_GOOD}"
        ));
    }
    Ok(Redacted::new(text))
}

fn parse_secrets(text: &str) -> Result<Vec<Redacted>, String> {
    text.split(SEPARATOR)
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(parse_secret)
        .collect()
}
