//! Seals a notification for each device and browser, off the threads that serve.

use std::{iter::zip, num::NonZeroUsize, sync::Arc, thread::available_parallelism};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures_util::future::join_all;
use sovereign_relay_client::protocol::{
    platform::{Environment, Platform, Priority},
    redacted::Redacted,
    seal::{self, DevicePublicKey},
};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::web_lane::Browsers;
use crate::{
    entropy::{random_bytes, uuid},
    notification::{InvalidNotification, Notification},
    store::{Channel, Device, Lane, LogEntry, OutboxRow, Outcome, Subscription},
    user::User,
};

/// Threads that seal at the same time: the rest of the machine is for the host.
const SEALERS: usize = 4;

/// What all rows of a fan-out have in common.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) notification_id: Uuid,
    pub(super) now: u64,
    json: Redacted,
    priority: Priority,
    collapse_id: Option<Redacted>,
    pub(super) ttl_until: u64,
}

/// Whom it is for, as read.
pub(super) enum Target {
    Device(Device),
    Browser(Subscription),
}

/// Rows to write, and entries for what could not be sealed.
#[derive(Default)]
pub(super) struct Sealed {
    pub(super) rows: Vec<OutboxRow>,
    pub(super) failed: Vec<LogEntry>,
}

impl Plan {
    pub(super) fn new(
        user: &User,
        notification: &Notification,
        now: u64,
        collapse_key: &Redacted,
    ) -> Result<Self, InvalidNotification> {
        Ok(Self {
            notification_id: uuid(),
            now,
            json: notification.to_json()?,
            priority: notification.priority,
            collapse_id: notification.collapse_id(user, collapse_key).map(Redacted::new),
            ttl_until: now.saturating_add(u64::from(notification.ttl_seconds)),
        })
    }

    fn row(&self, target: &Target, sealed: String) -> OutboxRow {
        let (channel, user, address) = match target {
            Target::Device(device) => (Channel::Relay, &device.user, &device.token),
            Target::Browser(browser) => (Channel::Web, &browser.user, &browser.endpoint),
        };
        OutboxRow {
            id: uuid(),
            notification_id: self.notification_id,
            user: user.clone(),
            channel,
            target_id: target.id(),
            target_created_at: target.created_at(),
            target_public_key: target.public_key().to_owned(),
            platform: target.platform(),
            address: address.clone(),
            relay_url: target.relay_url().map(str::to_owned),
            environment: target.environment(),
            sealed: Redacted::new(sealed),
            priority: self.priority,
            collapse_id: self.collapse_id.clone(),
            ttl_until: self.ttl_until,
            attempts: 0,
            first_attempt_at: None,
            next_attempt_at: self.now,
            leased_until: 0,
        }
    }
}

impl Target {
    pub(super) fn lane(&self) -> Lane {
        match self {
            Self::Device(device) => Lane::Relay(device.relay_url.clone()),
            Self::Browser(_) => Lane::Web,
        }
    }

    fn id(&self) -> Uuid {
        match self {
            Self::Device(device) => device.id,
            Self::Browser(browser) => browser.id,
        }
    }

    fn created_at(&self) -> u64 {
        match self {
            Self::Device(device) => device.created_at,
            Self::Browser(browser) => browser.created_at,
        }
    }

    fn public_key(&self) -> &str {
        match self {
            Self::Device(device) => &device.public_key,
            Self::Browser(browser) => &browser.p256dh,
        }
    }

    fn platform(&self) -> Option<Platform> {
        match self {
            Self::Device(device) => Some(device.platform),
            Self::Browser(_) => None,
        }
    }

    fn relay_url(&self) -> Option<&str> {
        match self {
            Self::Device(device) => Some(&device.relay_url),
            Self::Browser(_) => None,
        }
    }

    fn environment(&self) -> Option<Environment> {
        match self {
            Self::Device(device) => device.environment,
            Self::Browser(_) => None,
        }
    }
}

/// Seals for all `targets`, on as many threads as are worth it.
pub(super) async fn seal(plan: &Plan, targets: Vec<Target>, browsers: Arc<dyn Browsers>) -> Sealed {
    let threads = available_parallelism().map_or(1, NonZeroUsize::get).min(SEALERS);
    let share = targets.len().div_ceil(threads).max(1);
    let mut targets = targets.into_iter().peekable();
    let mut under_way = Vec::new();
    while targets.peek().is_some() {
        let share: Vec<Target> = targets.by_ref().take(share).collect();
        let (plan, browsers) = (plan.clone(), Arc::clone(&browsers));
        under_way.push(spawn_blocking(move || {
            seal_share(&plan, &share, browsers.as_ref())
        }));
    }
    let mut sealed = Sealed::default();
    // A share is lost only with the runtime, and then there is nobody to send anything.
    for share in join_all(under_way).await.into_iter().flatten() {
        sealed.rows.extend(share.rows);
        sealed.failed.extend(share.failed);
    }
    sealed
}

fn seal_share(plan: &Plan, share: &[Target], browsers: &dyn Browsers) -> Sealed {
    let mut sealed = Sealed::default();
    for target in share {
        match seal_one(plan, target, browsers) {
            Ok(text) => sealed.rows.push(plan.row(target, text)),
            Err(reason) => {
                let row = plan.row(target, String::new());
                let entry = LogEntry::of(&row, Outcome::Failed, reason.into(), plan.now);
                sealed.failed.push(entry);
            }
        }
    }
    sealed
}

fn seal_one(plan: &Plan, target: &Target, browsers: &dyn Browsers) -> Result<String, &'static str> {
    let json = plan.json.expose();
    match target {
        Target::Device(device) => {
            let key = DevicePublicKey::from_base64(&device.public_key).map_err(|_| "public_key")?;
            seal::seal(json, &key, fill).map_err(|_| "not_sealed")
        }
        Target::Browser(browser) => browsers.seal(browser, json).map(|bytes| STANDARD.encode(bytes)),
    }
}

fn fill(bytes: &mut [u8]) {
    for part in bytes.chunks_mut(32) {
        for (byte, random) in zip(part, random_bytes::<32>()) {
            *byte = random;
        }
    }
}
