//! Whether a platform can be pushed to, and if not, why.

use std::fmt;

use super::setting::Setting;

/// Why something is off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Off {
    missing: Vec<&'static str>,
    partial: bool,
    instead: Option<&'static str>,
}

impl Off {
    /// Off because of the settings that are not there, of those that it needs.
    pub(crate) fn lacking(needed: &[(&Setting, bool)]) -> Self {
        let missing = needed
            .iter()
            .filter(|(_, set)| !set)
            .map(|(setting, _)| setting.name)
            .collect();
        Self {
            missing,
            partial: needed.iter().any(|(_, set)| *set),
            instead: None,
        }
    }

    /// And for want of this one.
    pub(crate) fn and(mut self, setting: &Setting) -> Self {
        self.missing.push(setting.name);
        self
    }

    /// What would do as well, in words.
    pub(crate) fn or(self, instead: &'static str) -> Self {
        Self {
            instead: Some(instead),
            ..self
        }
    }

    /// Whether some of what it needs was given: surely a mistake, and worth a warning.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// The settings that are lacking.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }
}

impl fmt::Display for Off {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.missing.len() == 1 { "is" } else { "are" };
        write!(f, "{} {verb} not set", self.missing.join(", "))?;
        self.instead.map_or(Ok(()), |instead| write!(f, " ({instead})"))
    }
}
