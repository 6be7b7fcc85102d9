//! Everything that a fan-out needs around it: providers, a relay, a database with the user's devices, an enrolled
//! instance whose limit its relay's operator has raised.

use std::{collections::HashMap, time::Duration};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use sovereign_instance::{
    store::{NewDevice, Store},
    user::User,
};
use sovereign_relay_client::{http::Relay, trust::Trust};
use sovereign_relay_protocol::{
    enroll::EnrollRequest,
    platform::Platform,
    redacted::Redacted,
    seal::{self, DeviceKey},
};
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use super::{child::Start, work};
use crate::{
    instance::{random, unix_seconds},
    process::RelayProcess,
};

/// More than any run sends in a minute.
const PUSHES_PER_MINUTE: &str = "10000000";
/// How long ago the devices were registered.
const AGO: Duration = Duration::from_secs(3600);

/// Ends with its owner.
pub(super) struct Place {
    pub(super) simulators: Simulators,
    pub(super) store: Store,
    devices: usize,
    key: DeviceKey,
    database: String,
    relay: RelayProcess,
    _directory: TempDir,
}

impl Place {
    /// With a user of `devices` devices, in SQLite unless there is another `database`.
    pub(super) async fn start(devices: usize, database: Option<&str>) -> anyhow::Result<Self> {
        let simulators = Simulators::start(SimulatorOptions {
            inbox_capacity: devices.saturating_mul(2),
            ..SimulatorOptions::default()
        })
        .await?;
        let directory = tempfile::tempdir()?;
        let environment = simulators.relay_environment(&simulators.write_ca(directory.path())?);
        let relay = RelayProcess::start(&environment, directory.path()).await?;
        let sqlite = || format!("sqlite:{}", directory.path().join("push.db").display());
        let database = database.map_or_else(sqlite, str::to_owned);
        let place = Self {
            store: Store::connect(&database).await?,
            key: DeviceKey::generate(random)?,
            simulators,
            devices,
            database,
            relay,
            _directory: directory,
        };
        place.enroll().await?;
        place.register().await?;
        Ok(place)
    }

    /// The arguments that make this program the fan-out's process.
    pub(super) fn fan_out(&self, start: Start, ahead: u64) -> Vec<String> {
        let start = match start {
            Start::Send => "send",
            Start::Resume => "resume",
        };
        let ahead = ahead.to_string();
        let own = ["--start", start, "--ahead", &ahead].map(str::to_owned);
        [self.arguments("fan-out"), own.to_vec()].concat()
    }

    /// The arguments that make this program the bare loop's process.
    pub(super) fn bare(&self) -> Vec<String> {
        self.arguments("bare")
    }

    /// Notifications that have come to devices.
    pub(super) fn delivered(&self) -> u64 {
        self.simulators.apns.inbox().total() + self.simulators.fcm.inbox().total()
    }

    /// Devices that have got nothing yet, if none got more than one.
    pub(super) fn left(&self) -> u64 {
        (self.devices as u64).saturating_sub(self.delivered())
    }

    /// Whether each device has got the notification exactly once, and can open it.
    pub(super) fn each_has_one(&self) -> anyhow::Result<()> {
        let mut times: HashMap<String, u32> = HashMap::new();
        let apns = self.simulators.apns.inbox().all().into_iter();
        let apns = apns.map(|one| (one.token, in_apns(&one.payload)));
        let fcm = self.simulators.fcm.inbox().all().into_iter();
        let fcm = fcm.map(|one| (one.token, one.data.get("encryptedPayload").cloned()));
        for (token, sealed) in apns.chain(fcm) {
            let opened = seal::open(&sealed.context("nothing sealed")?, &self.key)?;
            let opened: Value = serde_json::from_str(&opened)?;
            ensure!(opened == work::content(), "another notification");
            *times.entry(token).or_default() += 1;
        }
        let doubled = times.values().filter(|times| **times > 1).count();
        let lost = self.devices.saturating_sub(times.len());
        ensure!(
            doubled + lost == 0,
            "{lost} devices got nothing, {doubled} more than one"
        );
        Ok(())
    }

    pub(super) async fn stop(self) {
        self.store.close().await;
        self.simulators.stop().await;
    }

    fn arguments(&self, part: &str) -> Vec<String> {
        let arguments = [
            "instance-part",
            part,
            "--database",
            &self.database,
            "--relay",
            &self.relay.url,
        ];
        arguments.map(str::to_owned).to_vec()
    }

    async fn enroll(&self) -> anyhow::Result<()> {
        let relay = Relay::new(&self.relay.url, &Trust::system()?)?;
        let enrollment = relay.enroll(&EnrollRequest::default(), None).await?;
        let id = enrollment.instance_id.to_string();
        self.relay
            .operator(&["instances", "limit", &id, PUSHES_PER_MINUTE])
            .await?;
        let key = enrollment.instance_key.expose();
        let row = work::enrolled(&self.relay.url, &id, key, unix_seconds());
        Ok(self.store.put_relay(&row).await?)
    }

    /// All have one key: the sender does for each what it would do for another, and the receiver can open all.
    async fn register(&self) -> anyhow::Result<()> {
        for number in 0..self.devices {
            let (platform, token) = match number % 2 {
                0 => (Platform::Ios, self.simulators.apns.new_token()),
                _ => (Platform::Android, self.simulators.fcm.new_token()),
            };
            let device = NewDevice {
                user: User::new(work::USER),
                platform,
                token: Redacted::new(token),
                public_key: self.key.public_key().to_base64(),
                relay_url: self.relay.url.clone(),
                environment: None,
            };
            let at = unix_seconds() - AGO.as_secs();
            self.store.register_device(&device, u32::MAX, at).await?;
        }
        Ok(())
    }
}

fn in_apns(payload: &str) -> Option<String> {
    let payload: Value = serde_json::from_str(payload).ok()?;
    payload.get("encryptedPayload")?.as_str().map(str::to_owned)
}
