//! What the simulated providers handed to devices: the sealed payload inside each provider's own envelope.

use std::time::Duration;

use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::Simulators;

/// Longer than any push may take.
const ARRIVAL_DEADLINE: Duration = Duration::from_secs(15);

/// One notification at a device.
pub struct Arrival {
    /// What Apple, Google or Microsoft saw.
    pub envelope: String,
    /// What is in it for the device.
    pub sealed: String,
}

/// How many notifications this device's provider has delivered to all devices so far.
pub fn delivered(simulators: &Simulators, platform: Platform) -> u64 {
    match platform {
        Platform::Ios | Platform::Macos => simulators.apns.inbox().total(),
        Platform::Android => simulators.fcm.inbox().total(),
        Platform::Windows => simulators.wns.inbox().total(),
    }
}

/// Waits until a provider has delivered more than `before`.
pub async fn more_than(simulators: &Simulators, platform: Platform, before: u64) -> bool {
    let wanted = usize::try_from(before).unwrap_or(usize::MAX).saturating_add(1);
    match platform {
        Platform::Ios | Platform::Macos => simulators
            .apns
            .inbox()
            .wait_for(wanted, ARRIVAL_DEADLINE)
            .await
            .is_ok(),
        Platform::Android => simulators
            .fcm
            .inbox()
            .wait_for(wanted, ARRIVAL_DEADLINE)
            .await
            .is_ok(),
        Platform::Windows => simulators
            .wns
            .inbox()
            .wait_for(wanted, ARRIVAL_DEADLINE)
            .await
            .is_ok(),
    }
}

/// Everything that arrived at the device which its provider calls `token`, oldest first.
pub fn at(simulators: &Simulators, platform: Platform, token: &str) -> Vec<Arrival> {
    match platform {
        Platform::Ios | Platform::Macos => at_apple(simulators, token),
        Platform::Android => at_android(simulators, token),
        Platform::Windows => at_windows(simulators, token),
    }
}

fn at_apple(simulators: &Simulators, token: &str) -> Vec<Arrival> {
    let mine = simulators
        .apns
        .inbox()
        .all()
        .into_iter()
        .filter(|delivery| delivery.token == token);
    mine.filter_map(|delivery| {
        let body: serde_json::Value = serde_json::from_str(&delivery.payload).ok()?;
        let sealed = body.get("encryptedPayload")?.as_str()?.to_owned();
        Some(Arrival {
            envelope: delivery.payload,
            sealed,
        })
    })
    .collect()
}

fn at_android(simulators: &Simulators, token: &str) -> Vec<Arrival> {
    let mine = simulators
        .fcm
        .inbox()
        .all()
        .into_iter()
        .filter(|delivery| delivery.token == token);
    mine.filter_map(|delivery| {
        let sealed = delivery.data.get("encryptedPayload")?.clone();
        Some(Arrival {
            envelope: delivery.body,
            sealed,
        })
    })
    .collect()
}

fn at_windows(simulators: &Simulators, token: &str) -> Vec<Arrival> {
    let mine = simulators
        .wns
        .inbox()
        .all()
        .into_iter()
        .filter(|delivery| token.ends_with(&delivery.channel));
    mine.map(|delivery| Arrival {
        envelope: delivery.body.clone(),
        sealed: delivery.body,
    })
    .collect()
}
