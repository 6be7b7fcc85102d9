//! Registering this device with an instance, and taking that back.

use std::sync::Arc;

use sovereign_device::instance::{Instance, RegisteredDevice, Registrations, Session, Trust};
use sovereign_relay_protocol::redacted::Redacted;

use crate::{
    error::{CallError, SetupError},
    keys::DeviceKeys,
    runtime,
    token::{DevicePlatform, DeviceToken},
};

/// How the instance knows its user.
#[derive(uniffi::Enum)]
pub enum InstanceSession {
    /// The `Cookie` header, `name=value`, as the app's web view has it.
    Cookie {
        /// The header's text.
        header: String,
    },
    /// A bearer token.
    Bearer {
        /// The token.
        token: String,
    },
}

/// Whom the app believes to be the instance.
#[derive(uniffi::Record)]
pub struct InstanceTrust {
    /// PEM certificates of a self-hosted instance with its own authority. They are trusted beside the system's; on
    /// Android, where the others are Mozilla's, in place of them.
    #[uniffi(default = None)]
    pub extra_certificates: Option<String>,
    /// Also `http://` to this machine, for development: the session travels in plain text.
    #[uniffi(default = false)]
    pub plain_loopback: bool,
}

/// What an instance knows of its user's devices.
#[derive(uniffi::Record)]
pub struct DeviceRegistrations {
    /// Whether the instance sends to devices at all.
    pub relay_enabled: bool,
    /// The devices.
    pub devices: Vec<DeviceRegistration>,
}

/// One device of the user.
#[derive(uniffi::Record)]
pub struct DeviceRegistration {
    /// Its name when it is revoked.
    pub id: String,
    /// Nothing for a platform of a later version.
    pub platform: Option<DevicePlatform>,
    /// When it was registered, or last registered anew: Unix seconds.
    pub created_at: Option<u64>,
    /// When a notification was last accepted for it: Unix seconds.
    pub last_used_at: Option<u64>,
}

/// An instance, for the calls of one signed-in user.
#[derive(uniffi::Object)]
pub struct InstanceClient(Instance);

#[uniffi::export]
impl InstanceClient {
    /// The instance at `base`, such as `https://example.org`.
    #[uniffi::constructor]
    pub fn new(base: &str, session: InstanceSession, trust: InstanceTrust) -> Result<Arc<Self>, SetupError> {
        let trust = Trust {
            extra_certificates: trust.extra_certificates.as_deref(),
            plain_loopback: trust.plain_loopback,
        };
        Ok(Arc::new(Self(Instance::new(base, session.into(), trust)?)))
    }

    /// Notifications for this user are sent to `token` from now on, sealed for `keys`.
    pub async fn register(&self, token: Arc<DeviceToken>, keys: Arc<DeviceKeys>) -> Result<(), CallError> {
        let instance = self.0.clone();
        run(async move { instance.register(&token.0, &keys.0).await }).await
    }

    /// The user's devices.
    pub async fn registrations(&self) -> Result<DeviceRegistrations, CallError> {
        let instance = self.0.clone();
        run(async move { instance.registrations().await })
            .await
            .map(DeviceRegistrations::from)
    }

    /// Notifications are no longer sent to the device with this id. Says whether there was one of this user.
    pub async fn revoke(&self, id: String) -> Result<bool, CallError> {
        let instance = self.0.clone();
        run(async move { instance.revoke(&id).await }).await
    }
}

async fn run<T: Send + 'static>(
    call: impl Future<Output = Result<T, sovereign_device::instance::CallError>> + Send + 'static,
) -> Result<T, CallError> {
    let internal = |reason: String| CallError::Internal { reason };
    let call = runtime::spawn(call).map_err(|error| internal(error.to_string()))?;
    Ok(call.await.map_err(|error| internal(error.to_string()))??)
}

impl From<InstanceSession> for Session {
    fn from(session: InstanceSession) -> Self {
        match session {
            InstanceSession::Cookie { header } => Self::Cookie(Redacted::new(header)),
            InstanceSession::Bearer { token } => Self::Bearer(Redacted::new(token)),
        }
    }
}

impl From<Registrations> for DeviceRegistrations {
    fn from(registrations: Registrations) -> Self {
        Self {
            relay_enabled: registrations.relay_enabled,
            devices: registrations
                .devices
                .into_iter()
                .map(DeviceRegistration::from)
                .collect(),
        }
    }
}

impl From<RegisteredDevice> for DeviceRegistration {
    fn from(device: RegisteredDevice) -> Self {
        Self {
            id: device.id,
            platform: device.platform.map(DevicePlatform::from),
            created_at: device.created_at,
            last_used_at: device.last_used_at,
        }
    }
}
