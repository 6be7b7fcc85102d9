//! What the operating system calls this device.

use std::sync::Arc;

use sovereign_relay_protocol::platform::{Environment, Platform};

use crate::error::TokenError;

/// The four platforms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, uniffi::Enum)]
pub enum DevicePlatform {
    /// iPhone, iPad.
    Ios,
    /// Android.
    Android,
    /// Mac.
    Macos,
    /// Windows.
    Windows,
}

/// Apple's two environments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, uniffi::Enum)]
pub enum ApnsEnvironment {
    /// App Store, TestFlight and ad hoc builds.
    Production,
    /// Development builds.
    Sandbox,
}

/// A device token of the right shape.
#[derive(uniffi::Object)]
pub struct DeviceToken(pub(crate) sovereign_device::DeviceToken);

#[uniffi::export]
impl DeviceToken {
    /// The `Data` that `didRegisterForRemoteNotificationsWithDeviceToken` brings, on an iPhone or iPad.
    #[uniffi::constructor]
    pub fn ios(token: &[u8]) -> Result<Arc<Self>, TokenError> {
        Self::of(sovereign_device::DeviceToken::ios(token))
    }

    /// The same on a Mac.
    #[uniffi::constructor]
    pub fn macos(token: &[u8]) -> Result<Arc<Self>, TokenError> {
        Self::of(sovereign_device::DeviceToken::macos(token))
    }

    /// The text of `FirebaseMessaging.getToken`.
    #[uniffi::constructor]
    pub fn android(token: &str) -> Result<Arc<Self>, TokenError> {
        Self::of(sovereign_device::DeviceToken::android(token))
    }

    /// `PushNotificationChannel.Uri`.
    #[uniffi::constructor]
    pub fn windows(channel_uri: &str) -> Result<Arc<Self>, TokenError> {
        Self::of(sovereign_device::DeviceToken::windows(channel_uri))
    }

    /// The same token, and which of Apple's environments the app was built for. Without it the relay's own setting decides.
    /// On other platforms it says nothing.
    pub fn in_environment(&self, environment: ApnsEnvironment) -> Arc<Self> {
        Arc::new(Self(self.0.clone().in_environment(environment.into())))
    }

    /// The platform.
    pub fn platform(&self) -> DevicePlatform {
        self.0.platform().into()
    }

    /// The token as it is registered. It goes to the instance and into no log.
    pub fn text(&self) -> String {
        self.0.expose().to_owned()
    }
}

impl DeviceToken {
    fn of(
        token: Result<sovereign_device::DeviceToken, sovereign_device::token::TokenError>,
    ) -> Result<Arc<Self>, TokenError> {
        Ok(Arc::new(Self(token?)))
    }
}

impl From<ApnsEnvironment> for Environment {
    fn from(environment: ApnsEnvironment) -> Self {
        match environment {
            ApnsEnvironment::Production => Self::Production,
            ApnsEnvironment::Sandbox => Self::Sandbox,
        }
    }
}

impl From<Platform> for DevicePlatform {
    fn from(platform: Platform) -> Self {
        match platform {
            Platform::Ios => Self::Ios,
            Platform::Android => Self::Android,
            Platform::Macos => Self::Macos,
            Platform::Windows => Self::Windows,
        }
    }
}
