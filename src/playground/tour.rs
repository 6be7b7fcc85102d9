//! Sends one notification to each device through the public API, and later tells of whatever else arrives.

use std::pin::pin;

use anyhow::{Context as _, bail};
use futures_util::future::select_all;
use serde_json::json;
use sovereign_relay_protocol::{
    platform::Platform,
    push::{PushAnswer, PushResult},
};

use super::{
    arrivals::{self, Arrival},
    device::Device,
    report::Report,
    stage::Stage,
};

/// One notification's way.
pub(super) struct Step {
    /// What the instance wanted to say.
    pub(super) notification: serde_json::Value,
    /// What the relay was given.
    pub(super) sealed: String,
    /// What the provider was given, once it got there.
    pub(super) envelope: Option<String>,
    /// What the device read, or why it read nothing.
    pub(super) opened: anyhow::Result<String>,
}

/// Sends a notification to a device and lets it open what arrives.
pub(super) async fn deliver(stage: &Stage, device: &Device) -> Step {
    let notification = json!({
        "title": "Hello from your own server",
        "body": format!("Only this {} device can read me", device.platform.as_str()),
    });
    let mut step = Step {
        notification,
        sealed: String::new(),
        envelope: None,
        opened: Ok(String::new()),
    };
    step.opened = try_deliver(stage, device, &mut step).await;
    step
}

async fn try_deliver(stage: &Stage, device: &Device, step: &mut Step) -> anyhow::Result<String> {
    step.sealed = device.seal(&step.notification)?;
    let before = arrivals::delivered(&stage.simulators, device.platform);
    let answer = post(stage, device, &step.sealed).await?;
    if answer.result != PushResult::Sent {
        bail!("the relay answered {answer:?}");
    }
    arrivals::more_than(&stage.simulators, device.platform, before).await;
    let arrived = device
        .arrivals(&stage.simulators)
        .pop()
        .context("nothing arrived at the device")?;
    step.envelope = Some(arrived.envelope);
    let opened = device.open(&arrived.sealed)?;
    let read: serde_json::Value = serde_json::from_str(&opened)?;
    if read != step.notification {
        bail!("the device read something else than what was sent");
    }
    Ok(opened)
}

/// The request that an instance makes.
pub(super) fn body(device: &Device, sealed: &str) -> serde_json::Value {
    json!({ "deviceToken": device.token, "platform": device.platform.as_str(), "encryptedPayload": sealed })
}

async fn post(stage: &Stage, device: &Device, sealed: &str) -> anyhow::Result<PushAnswer> {
    let request = stage
        .http
        .post(format!("{}/v1/push", stage.url()))
        .bearer_auth(&stage.instance.instance_key);
    let response = request.json(&body(device, sealed)).send().await?;
    let status = response.status();
    if !status.is_success() {
        bail!("the relay answered {status}: {}", response.text().await?);
    }
    Ok(response.json().await?)
}

/// How much has arrived: at each device, and through each provider.
pub(super) struct Seen {
    at_devices: Vec<usize>,
    by_providers: [u64; PROVIDERS.len()],
}

/// One platform of each provider.
const PROVIDERS: [Platform; 3] = [Platform::Ios, Platform::Android, Platform::Windows];

impl Seen {
    /// Up to now.
    pub(super) fn now(stage: &Stage) -> Self {
        // The providers first: what comes between the two looks is looked at again.
        let by_providers = PROVIDERS.map(|platform| arrivals::delivered(&stage.simulators, platform));
        let devices = stage.devices.iter();
        Self {
            at_devices: devices
                .map(|device| device.arrivals(&stage.simulators).len())
                .collect(),
            by_providers,
        }
    }
}

/// Prints what arrives at the devices beyond what was seen, until Ctrl-C.
pub(super) async fn watch_until_interrupted(
    stage: &Stage,
    report: &Report,
    mut seen: Seen,
) -> anyhow::Result<()> {
    // One for all rounds: a Ctrl-C that came between two of them would be lost.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        tokio::select! {
            interrupted = &mut interrupt => return Ok(interrupted?),
            () = anything_beyond(stage, seen.by_providers) => {}
        }
        let now = Seen::now(stage);
        for ((device, &from), &to) in stage.devices.iter().zip(&seen.at_devices).zip(&now.at_devices) {
            let arrived = device.arrivals(&stage.simulators);
            for Arrival { sealed, .. } in arrived.iter().take(to).skip(from) {
                report.arrival(device, &device.open(sealed))?;
            }
        }
        seen = now;
    }
}

/// Ends when one of the providers has delivered more (or has had nothing to do for a while).
async fn anything_beyond(stage: &Stage, seen: [u64; PROVIDERS.len()]) {
    let waits = PROVIDERS
        .into_iter()
        .zip(seen)
        .map(|(platform, before)| Box::pin(arrivals::more_than(&stage.simulators, platform, before)));
    let _ = select_all(waits).await;
}
