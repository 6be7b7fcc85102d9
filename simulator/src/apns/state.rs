//! What all connections to one APNs simulator share.

use crate::apns::{
    auth::Keys,
    devices::Devices,
    options::{ApnsEnvironment, ApnsOptions},
    registry::Registry,
};

/// APNs as a [`crate::Provider`].
pub struct Apns {
    pub(crate) environment: ApnsEnvironment,
    pub(crate) options: ApnsOptions,
    pub(crate) devices: Devices,
    pub(crate) keys: Keys,
    pub(crate) registry: Registry,
}
