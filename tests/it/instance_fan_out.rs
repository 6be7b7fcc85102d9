//! An instance's fan-out is killed in the middle, twice. What is said here of a few hundred devices,
//! `loadtest instance --kills` measures with ten thousand; the process that is killed does the same.
//!
//! The test starts itself as that process: [`CHILD`] in the environment says so.

use std::{collections::HashMap, env, process::Stdio, time::Duration};

use sovereign_instance::{
    store::{NewDevice, Store},
    user::User,
};
use sovereign_relay_protocol::{platform::Platform, redacted::Redacted};
use sovereign_relay_simulator::Behaviour;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::support::{device::Device, until, world::World};

#[path = "../../loadtest/src/fan_out/work.rs"]
mod work;

const TEST: &str =
    "instance_fan_out::a_fan_out_that_is_killed_twice_and_goes_on_reaches_each_device_exactly_once";
const CHILD: &str = "SOVEREIGN_RELAY_FAN_OUT_CHILD";
/// More than are sent at once.
const DEVICES: usize = 600;
/// Deliveries after which it is killed: in the first batch, and after that.
const KILLED_AT: [u64; 2] = [100, 300];
/// Of a push, so that a batch takes a while.
const ANSWER_AFTER: Duration = Duration::from_millis(300);
/// Seconds from one process's clock to the next one's: the dead one's lease is over.
const LEASE: u64 = 301;
/// When the devices were registered.
const REGISTERED_AT: u64 = 1_700_000_000;

struct Place {
    world: World,
    device: Device,
    store: Store,
    database: String,
    _directory: TempDir,
}

impl Place {
    /// The relay's operator has raised the instance's limit.
    async fn start() -> Self {
        let world = World::start().await;
        let directory = TempDir::new().unwrap();
        let database = format!("sqlite:{}", directory.path().join("push.db").display());
        let store = Store::connect(&database).await.unwrap();
        let (relay, instance) = (&world.relay, world.relay.enroll().await);
        relay
            .cli(&["instances", "limit", &instance.id, "1000000"])
            .await
            .done();
        let row = work::enrolled(&relay.url, &instance.id, &instance.key, REGISTERED_AT);
        store.put_relay(&row).await.unwrap();
        Self {
            device: world.device(Platform::Android),
            world,
            store,
            database,
            _directory: directory,
        }
    }

    /// All have the key of one, which opens what any of them got.
    async fn register(&self) {
        for _ in 0..DEVICES {
            let device = NewDevice {
                user: User::new(work::USER),
                platform: Platform::Android,
                token: Redacted::new(self.world.address(Platform::Android)),
                public_key: self.device.public_key(),
                relay_url: self.world.relay.url.clone(),
                environment: None,
            };
            let registered = self.store.register_device(&device, u32::MAX, REGISTERED_AT);
            assert!(registered.await.unwrap().removed.is_empty());
        }
    }

    fn process(&self, sends: bool, ahead: u64) -> Child {
        let work = format!("{sends} {ahead} {} {}", self.world.relay.url, self.database);
        Command::new(env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(CHILD, work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    fn delivered(&self) -> u64 {
        self.world.simulators.fcm.inbox().total()
    }
}

async fn work(text: &str) {
    let words: Vec<&str> = text.splitn(4, ' ').collect();
    let [sends, ahead, relay, database] = words[..] else {
        panic!("{text}");
    };
    let work = work::Work::open(database, relay, ahead.parse().unwrap())
        .await
        .unwrap();
    work.finish(sends == "true").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_out_that_is_killed_twice_and_goes_on_reaches_each_device_exactly_once() {
    if let Ok(text) = env::var(CHILD) {
        return work(&text).await;
    }
    let place = Place::start().await;
    place.register().await;
    let script = place.world.simulators.fcm.script();
    script.always(Behaviour::accept().after(ANSWER_AFTER));
    let (mut sends, mut ahead) = (true, 0);
    for enough in KILLED_AT {
        let mut process = place.process(sends, ahead);
        until("some have it", async || place.delivered() >= enough).await;
        process.kill().await.unwrap();
        assert!(place.store.next_due().await.unwrap().is_some(), "not all have it");
        (sends, ahead) = (false, ahead + LEASE);
    }
    script.clear();
    let ended = place.process(sends, ahead).wait().await.unwrap();
    assert!(ended.success());
    assert_eq!(place.store.next_due().await.unwrap(), None);
    let mut times: HashMap<String, u32> = HashMap::new();
    for one in place.world.simulators.fcm.inbox().all() {
        let opened = place.device.open(&one.data["encryptedPayload"]);
        assert_eq!(opened, work::content());
        *times.entry(one.token).or_default() += 1;
    }
    assert_eq!(times.len(), DEVICES, "none is lost");
    assert!(
        times.values().all(|times| *times == 1),
        "none is doubled: {times:?}"
    );
}
