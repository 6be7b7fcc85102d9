//! What tests of this crate build on: a store in a directory that goes with the test, and rows to put into it.
#![allow(dead_code, reason = "each test takes what it needs")]

pub(crate) mod postgres;

use sovereign_relay_protocol::{
    platform::{Platform, Priority},
    redacted::Redacted,
};
use tempfile::TempDir;
use uuid::Uuid;

use super::{Channel, Device, NewDevice, NewSubscription, OutboxRow, Store, Used};
use crate::{entropy, user::User};

/// A relay's address.
pub(crate) const RELAY: &str = "https://relay.example";

/// An empty store on SQLite. Keep the directory as long as the store.
pub(crate) async fn sqlite() -> (TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", directory.path().join("push.db").display());
    (directory, Store::connect(&url).await.unwrap())
}

/// A store, and where it is, for a second process.
pub(crate) struct Place {
    pub(crate) url: String,
    pub(crate) store: Store,
}

impl Place {
    /// Opens what is at this address.
    pub(crate) async fn open(url: String) -> Self {
        let store = Store::connect(&url).await.unwrap();
        Self { url, store }
    }

    /// As another process would.
    pub(crate) async fn again(&self) -> Store {
        Store::connect(&self.url).await.unwrap()
    }
}

/// Registers it and reads it back.
pub(crate) async fn registered(store: &Store, device: &NewDevice, now: u64) -> Device {
    let id = store.register_device(device, u32::MAX, now).await.unwrap().id;
    let devices = store.devices_of(&device.user).await.unwrap();
    devices.into_iter().find(|device| device.id == id).unwrap()
}

/// As after deliveries to these devices.
pub(crate) async fn told(store: &Store, devices: &[(Uuid, u64)], at: u64) {
    let used = Used {
        devices,
        at,
        ..Used::default()
    };
    store.settle_used(&[], &[], &used).await.unwrap();
}

/// A device of `user` with this token.
pub(crate) fn new_device(user: &User, token: &str) -> NewDevice {
    NewDevice {
        user: user.clone(),
        platform: Platform::Android,
        token: Redacted::new(token),
        public_key: format!("key of {token}"),
        relay_url: RELAY.to_owned(),
        environment: None,
    }
}

/// A browser of `user` with this endpoint.
pub(crate) fn new_subscription(user: &User, endpoint: &str) -> NewSubscription {
    NewSubscription {
        user: user.clone(),
        endpoint: Redacted::new(endpoint),
        p256dh: format!("key of {endpoint}"),
        auth: Redacted::new(format!("secret of {endpoint}")),
    }
}

/// A row for `device` that is due at `due` and that nobody holds.
pub(crate) fn waiting(device: &Device, due: u64) -> OutboxRow {
    OutboxRow {
        id: entropy::uuid(),
        notification_id: Uuid::nil(),
        user: device.user.clone(),
        channel: Channel::Relay,
        target_id: device.id,
        target_created_at: device.created_at,
        target_public_key: device.public_key.clone(),
        platform: Some(device.platform),
        address: device.token.clone(),
        relay_url: Some(device.relay_url.clone()),
        environment: device.environment,
        sealed: Redacted::new("c2VhbGVk"),
        priority: Priority::High,
        collapse_id: None,
        ttl_until: due + 3600,
        attempts: 0,
        first_attempt_at: None,
        next_attempt_at: due,
        leased_until: 0,
    }
}
