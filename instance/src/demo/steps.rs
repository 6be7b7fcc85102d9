//! What happens, and whether what came of it is what should.

use std::{pin::pin, time::Duration};

use anyhow::{Context as _, bail, ensure};
use serde::Serialize;
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::apns;

use super::{devices::Read, report::Report, stage::Stage};
use crate::{clock::Clock, relay::RelayStatus, routes::DEVICES_PATH, store::RelayState};

/// How often a person's own notifications are looked for.
const LOOK: Duration = Duration::from_millis(200);

/// One step of the tour.
#[derive(Serialize)]
pub(super) struct Step {
    /// What happened.
    pub(super) title: &'static str,
    /// What the instance reported of the notification.
    pub(super) told: Value,
    /// Who opened what.
    pub(super) opened: Vec<Opened>,
    /// What the instance says about it.
    pub(super) says: Vec<String>,
    /// What was not as it should be.
    pub(super) fault: Option<String>,
}

/// What was read where.
#[derive(Serialize)]
pub(super) struct Opened {
    /// Platform, or `browser`.
    pub(super) by: &'static str,
    #[serde(flatten)]
    pub(super) read: Read,
}

impl Step {
    fn new(title: &'static str) -> Self {
        Self {
            title,
            told: Value::Null,
            opened: Vec::new(),
            says: Vec::new(),
            fault: None,
        }
    }

    fn ended(mut self, ended: anyhow::Result<()>) -> Self {
        self.fault = ended.err().map(|error| format!("{error:#}"));
        self
    }

    /// Sends a notification to the user.
    async fn tell(&mut self, stage: &Stage, body: &str) -> anyhow::Result<()> {
        let notification = json!({ "title": "Hello from your own server", "body": body });
        self.told = stage.post("/api/me/notifications", &notification).await?;
        Ok(())
    }

    fn count(&self, name: &str) -> Option<u64> {
        self.told.get(name).and_then(Value::as_u64)
    }

    /// The report says just this, and nothing of the rest.
    fn expect(&self, counts: &[(&str, u64)]) -> anyhow::Result<()> {
        let targets = counts.iter().map(|(_, count)| count).sum();
        for (name, count) in counts.iter().chain(&[("targets", targets)]) {
            ensure!(
                self.count(name) == Some(*count),
                "{name} should be {count}: {}",
                self.told
            );
        }
        Ok(())
    }

    /// All devices but those of `silent` open what was sent.
    async fn read_on_devices(
        &mut self,
        stage: &mut Stage,
        body: &str,
        silent: &[Platform],
    ) -> anyhow::Result<()> {
        for device in stage
            .devices
            .iter_mut()
            .filter(|device| !silent.contains(&device.platform))
        {
            let by = device.platform.as_str();
            let read = device.read_next(&stage.simulators).await.context(by)?;
            ensure!(read.body == body, "{by} read something else than what was sent");
            self.opened.push(Opened { by, read });
        }
        Ok(())
    }

    /// The browser opens what was sent; it has got `count` messages by now.
    async fn read_in_browser(&mut self, stage: &Stage, body: &str, count: usize) -> anyhow::Result<()> {
        let messages = stage.push_service.messages(&stage.browser);
        ensure!(
            messages.len() == count,
            "the browser got {} messages and not {count}",
            messages.len()
        );
        let message = messages.last().context("the browser got nothing")?;
        let read: Value = serde_json::from_str(&stage.browser.open(message)?)?;
        let text = |name: &str| {
            read.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let read = Read {
            title: text("title"),
            body: text("body"),
        };
        ensure!(
            read.body == body,
            "the browser read something else than what was sent"
        );
        self.opened.push(Opened { by: "browser", read });
        Ok(())
    }
}

/// Everything works.
pub(super) async fn everybody_is_told(stage: &mut Stage) -> Step {
    let mut step = Step::new("Four devices and a browser are told, each of which alone can read it");
    let ended = async {
        let body = "Only your own devices can read me";
        step.tell(stage, body).await?;
        step.expect(&[("sent", 5)])?;
        step.read_on_devices(stage, body, &[]).await?;
        step.read_in_browser(stage, body, 1).await
    };
    let ended = ended.await;
    step.ended(ended)
}

/// The phone was wiped: APNs calls its token unregistered.
pub(super) async fn a_dead_device_is_removed(stage: &mut Stage) -> Step {
    let mut step = Step::new("The iPhone is gone: it is removed, and the others are told");
    let ended = async {
        a_second_later().await;
        let dead = stage
            .devices
            .iter()
            .find(|device| device.platform == Platform::Ios)
            .context("no iPhone")?;
        let gone = apns::verdict::unregistered(stage.simulators.clock().unix_millis());
        stage.simulators.apns.script().device(&dead.token).always(gone);
        let body = "One of you is gone";
        step.tell(stage, body).await?;
        step.expect(&[("sent", 4), ("pruned", 1)])?;
        step.read_on_devices(stage, body, &[Platform::Ios]).await?;
        step.read_in_browser(stage, body, 2).await?;
        let listed = stage.get(DEVICES_PATH).await?;
        let left = listed.get("devices").and_then(Value::as_array).map(Vec::len);
        ensure!(left == Some(3), "three devices should be left: {listed}");
        step.says.push("registered devices: 3".to_owned());
        Ok(())
    };
    let ended = ended.await;
    step.ended(ended)
}

/// The relay's operator lost its data, or replaced its secret in a hurry.
pub(super) async fn a_relay_that_forgot_us_is_enrolled_at_again(stage: &mut Stage) -> Step {
    let mut step = Step::new("The relay's secret is replaced: the instance enrolls again, and all are told");
    let ended = async {
        let before = standing(stage).await?;
        stage.replace_relay().await?;
        let body = "The relay has forgotten your server, and nobody noticed";
        step.tell(stage, body).await?;
        step.read_on_devices(stage, body, &[Platform::Ios]).await?;
        step.read_in_browser(stage, body, 3).await?;
        let after = standing(stage).await?;
        ensure!(
            after.state == RelayState::Enrolled,
            "the instance should be enrolled: {}",
            after.note
        );
        ensure!(
            before.instance_id != after.instance_id,
            "the instance should have a new name at the relay"
        );
        let name = |status: &RelayStatus| status.instance_id.clone().unwrap_or_default();
        step.says.push(format!(
            "at the relay it was {}, and is {}",
            name(&before),
            name(&after)
        ));
        Ok(())
    };
    let ended = ended.await;
    step.ended(ended)
}

/// The relay's operator shuts the instance out.
pub(super) async fn a_revoked_instance_stops(stage: &mut Stage) -> Step {
    let mut step =
        Step::new("The relay's operator revokes the instance: it stops and says so, and the browser is told");
    let ended = async {
        let instance = standing(stage)
            .await?
            .instance_id
            .context("the instance is not enrolled")?;
        stage.revoke(&instance).await?;
        let body = "Only your browser hears of this for now";
        step.tell(stage, body).await?;
        step.expect(&[("sent", 1), ("waiting", 3)])?;
        step.read_in_browser(stage, body, 4).await?;
        let standing = standing(stage).await?;
        ensure!(
            standing.state == RelayState::Revoked,
            "the instance should know that it is revoked"
        );
        step.says.push(standing.note);
        for device in &mut stage.devices {
            let silent = device.read_all(&stage.simulators).is_empty();
            ensure!(
                silent,
                "{} got something through a relay that had revoked the instance",
                device.platform.as_str()
            );
        }
        Ok(())
    };
    let ended = ended.await;
    step.ended(ended)
}

/// After the tour: the admin resumes. What waited meanwhile is the worker's, within minutes.
pub(super) async fn come_back(stage: &Stage) -> anyhow::Result<()> {
    Ok(stage.instance.parts.relays.resume(&stage.relay_url()).await?)
}

/// Prints what arrives, until Ctrl-C.
pub(super) async fn watch_until_interrupted(stage: &mut Stage, report: &Report) -> anyhow::Result<()> {
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    let mut messages = stage.push_service.messages(&stage.browser).len();
    loop {
        tokio::select! {
            interrupted = &mut interrupt => return Ok(interrupted?),
            () = tokio::time::sleep(LOOK) => {}
        }
        for device in &mut stage.devices {
            for read in device.read_all(&stage.simulators) {
                report.arrival(device.platform.as_str(), &read?)?;
            }
        }
        let all = stage.push_service.messages(&stage.browser);
        for message in all.iter().skip(messages) {
            let read: Read = serde_json::from_str(&stage.browser.open(message)?)?;
            report.arrival("browser", &read)?;
        }
        messages = all.len();
    }
}

/// How the instance stands with the relay, in its own words.
async fn standing(stage: &Stage) -> anyhow::Result<RelayStatus> {
    let relays = stage.instance.parts.relays.status().await?;
    let Some(standing) = relays.into_iter().find(|status| status.current) else {
        bail!("the instance knows no relay");
    };
    Ok(standing)
}

/// A token is only removed when it died in a later second than it was registered in.
async fn a_second_later() {
    let clock = Clock::system();
    let registered = clock.seconds();
    while clock.seconds() <= registered {
        tokio::time::sleep(LOOK).await;
    }
}
