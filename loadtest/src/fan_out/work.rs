//! The instance's process, as a host makes one: sends a notification to all devices of the user, or goes on with what a
//! killed one left, and returns when nothing is left to send. `tests/it/instance_fan_out.rs` kills the same.

use std::{sync::Arc, time::Duration};

use anyhow::bail;
use sovereign_instance::{
    clock::Clock,
    config::{Limits, RelayChoice},
    fan_out::FanOut,
    notification::Notification,
    relay::{Identity, Relays},
    store::{RelayRow, RelayState, Store},
    user::User,
    web_push::{Contact, Settings, VapidKey, WebPush},
};
use sovereign_relay_client::trust::Trust;
use sovereign_relay_protocol::{redacted::Redacted, time::UnixMillis};
use tokio::{sync::oneshot, time::interval};

/// Whose devices they are.
pub(crate) const USER: &str = "ada";
const TITLE: &str = "Ada";
/// About as long as a chat's notification.
const BODY: &str = "We meet at nine at the station, bring the maps and something warm. The train leaves at 9:12 from \
     platform 4; if you are late, take the next one and tell us where you are.";
/// Looks whether something is left.
const LOOKS: Duration = Duration::from_millis(20);

/// The instance.
pub(crate) struct Work {
    store: Store,
    fan_out: Arc<FanOut>,
}

/// The notification, as devices open it.
pub(crate) fn content() -> serde_json::Value {
    serde_json::json!({ "title": TITLE, "body": BODY })
}

/// What the store keeps of a relay that has enrolled this instance.
pub(crate) fn enrolled(relay_url: &str, id: &str, key: &str, now: u64) -> RelayRow {
    RelayRow {
        relay_url: relay_url.to_owned(),
        instance_id: Some(id.to_owned()),
        instance_key: Some(Redacted::new(key)),
        previous_key: None,
        state: RelayState::Enrolled,
        enrolled_at: Some(now),
        attempts: 0,
        next_attempt_at: 0,
        note: String::new(),
    }
}

impl Work {
    /// Opens it. Its clock is so many seconds ahead.
    pub(crate) async fn open(database: &str, relay: &str, ahead: u64) -> anyhow::Result<Self> {
        let (system, ahead) = (Clock::system(), ahead.saturating_mul(1000));
        let clock = Clock::new(move || UnixMillis(system.now().0.saturating_add(ahead)));
        let store = Store::connect(database).await?;
        let choice: RelayChoice = relay.parse()?;
        let relays = Relays::new(store.clone(), choice, Trust::system()?, Identity::default());
        let relays = Arc::new(relays.with_clock(clock.clone()));
        let contact = Contact::parse("mailto:admin@instance.example")?;
        let browsers = WebPush::new(&VapidKey::generate()?, contact, &Settings::default())?;
        let fan_out = FanOut::new(store.clone(), relays, Arc::new(browsers), Limits::default());
        Ok(Self {
            store,
            fan_out: Arc::new(fan_out.with_clock(clock)),
        })
    }

    /// Sends the notification if `sends`, and works until nothing is left.
    pub(crate) async fn finish(&self, sends: bool) -> anyhow::Result<()> {
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = tokio::spawn(Arc::clone(&self.fan_out).run(async {
            let _ = stopped.await;
        }));
        if sends {
            let notification = Notification::new(TITLE, BODY);
            let report = self.fan_out.send(&User::new(USER), &notification).await?;
            if report.sent + report.waiting != report.targets() {
                bail!("{report:?}");
            }
        }
        let mut looks = interval(LOOKS);
        while self.store.next_due().await?.is_some() {
            looks.tick().await;
        }
        drop(stop);
        Ok(worker.await?)
    }
}
