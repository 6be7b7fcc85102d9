//! The four platforms, Apple's two environments, and the two priorities.

use serde::{Deserialize, Serialize};

/// The device's operating system, which decides the provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Platform {
    /// APNs, topic of the iOS app.
    Ios,
    /// FCM.
    Android,
    /// APNs, topic of the macOS app.
    Macos,
    /// WNS.
    Windows,
}

impl Platform {
    /// All four, in the order documents list them.
    pub const ALL: [Self; 4] = [Self::Ios, Self::Android, Self::Macos, Self::Windows];

    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ios => "ios",
            Self::Android => "android",
            Self::Macos => "macos",
            Self::Windows => "windows",
        }
    }

    /// Parses the wire form.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|platform| platform.as_str() == text)
    }

    /// Whether Apple delivers it.
    pub fn is_apple(self) -> bool {
        matches!(self, Self::Ios | Self::Macos)
    }
}

/// APNs environment. It follows the app's `aps-environment` entitlement; a token is valid in one only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Environment {
    /// App Store, TestFlight and ad hoc builds.
    Production,
    /// Development builds.
    Sandbox,
}

impl Environment {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Sandbox => "sandbox",
        }
    }

    /// Parses the wire form.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Production, Self::Sandbox]
            .into_iter()
            .find(|environment| environment.as_str() == text)
    }
}

/// How soon the device should learn of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Priority {
    /// At once: APNs 10, FCM HIGH, WNS 1.
    #[default]
    High,
    /// When it suits the device's power: APNs 5, FCM NORMAL, WNS 3.
    Normal,
}

impl Priority {
    /// As on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Normal => "normal",
        }
    }

    /// Parses the wire form.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::High, Self::Normal]
            .into_iter()
            .find(|priority| priority.as_str() == text)
    }
}
