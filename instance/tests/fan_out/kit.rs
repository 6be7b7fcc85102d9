//! An instance, its relay and everybody behind them.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use actix_web::rt::System;
use serde_json::Value;
use sovereign_instance::{
    clock::Clock,
    config::{Limits, RelayChoice},
    fan_out::FanOut,
    notification::Notification,
    relay::{Identity, Relays},
    store::{LogEntry, NewDevice, NewSubscription, Outcome, Store},
    user::User,
    web_push::{Addresses, Contact, Settings, VapidKey, WebPush, service::PushService},
};
use sovereign_relay::{
    app,
    config::{Config, Flags},
};
use sovereign_relay_client::{
    protocol::{platform::Platform, redacted::Redacted, seal, time::UnixMillis},
    trust::Trust,
};
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;
use tokio::sync::oneshot;
use uuid::Uuid;

#[path = "../../../src/store/redis/kit/place.rs"]
mod place;

/// For events that come at once, on a machine that may be busy.
pub const DEADLINE: Duration = Duration::from_secs(60);
const ADMIN_TOKEN: &str = "admin-token-of-the-test-0123456789";

pub fn user() -> User {
    User::new("ada")
}

/// The system's time, put forward by the test.
#[derive(Clone, Default)]
pub struct Ahead(Arc<AtomicU64>);

impl Ahead {
    pub fn clock(&self) -> Clock {
        let ahead = Arc::clone(&self.0);
        Clock::new(move || UnixMillis(unix_millis() + ahead.load(Ordering::SeqCst) * 1000))
    }

    pub fn by(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

pub fn seconds() -> u64 {
    unix_millis() / 1000
}

/// A whole relay on a thread of its own; stopped when dropped.
pub struct Relay {
    pub address: SocketAddr,
    admin: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub async fn start(simulators: &Simulators, directory: &Path, more: &[(&str, &str)]) -> Self {
        let ca_file = simulators.write_ca(directory).unwrap();
        let mut environment = simulators.relay_environment(&ca_file);
        let data_dir = directory.display().to_string();
        let own = [
            ("RELAY_LISTEN", "127.0.0.1:0"),
            ("RELAY_ADMIN_LISTEN", "127.0.0.1:0"),
            ("RELAY_ADMIN_TOKEN", ADMIN_TOKEN),
            ("RELAY_DRAIN_GRACE", "0s"),
            ("RELAY_DATA_DIR", &data_dir),
        ];
        for (name, value) in own.iter().chain(more) {
            environment.retain(|(known, _)| known != name);
            environment.push(((*name).to_owned(), (*value).to_owned()));
        }
        let find = move |wanted: &str| {
            let found = environment.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        let config = Config::load(&Flags::default(), &find).unwrap();
        let (started, addresses) = oneshot::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(|| {
            System::new().block_on(async {
                let relay = app::start(config).await.unwrap();
                started.send((relay.public_addr, relay.admin_addr)).unwrap();
                let _ = stopped.await;
                relay.stop().await;
            });
        });
        let (address, admin) = addresses.await.expect("the relay starts");
        Self {
            address,
            admin,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What its operator does to an instance.
    pub async fn operator(&self, instance: &str, what: &str, body: Value) {
        let url = format!("http://{}/admin/v1/instances/{instance}/{what}", self.admin);
        let request = reqwest::Client::new().post(url).bearer_auth(ADMIN_TOKEN);
        let answer = request.json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{:?}", answer.text().await);
    }

    /// Returns when it has ended.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        let thread = self.thread.take().unwrap();
        tokio::task::spawn_blocking(|| thread.join().unwrap())
            .await
            .unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok(), "the relay panicked");
        }
    }
}

/// A native device.
pub struct Device {
    pub id: Uuid,
    pub platform: Platform,
    pub token: String,
    key: seal::DeviceKey,
}

impl Device {
    pub fn new(platform: Platform, simulators: &Simulators) -> Self {
        let token = match platform {
            Platform::Ios | Platform::Macos => simulators.apns.new_token(),
            Platform::Android => simulators.fcm.new_token(),
            Platform::Windows => simulators.wns.new_channel(),
        };
        Self {
            id: Uuid::nil(),
            platform,
            token,
            key: seal::DeviceKey::generate(|bytes| getrandom::fill(bytes).unwrap()).unwrap(),
        }
    }

    pub fn open(&self, sealed: &str) -> Value {
        serde_json::from_str(&seal::open(sealed, &self.key).unwrap()).unwrap()
    }

    pub fn public_key(&self) -> String {
        self.key.public_key().to_base64()
    }

    /// As the same app would register it after a reinstallation: with another key.
    pub fn with_another_key(&self) -> Self {
        Self {
            id: self.id,
            platform: self.platform,
            token: self.token.clone(),
            key: seal::DeviceKey::generate(|bytes| getrandom::fill(bytes).unwrap()).unwrap(),
        }
    }
}

/// One instance process: everything but the database is its own.
pub struct Instance {
    pub store: Store,
    pub relays: Arc<Relays>,
    pub fan_out: Arc<FanOut>,
    pub vapid: String,
}

impl Instance {
    pub async fn open(database: &str, choice: RelayChoice, clock: &Clock, limits: Limits) -> Self {
        let store = Store::connect(database).await.unwrap();
        let trust = Trust::system().unwrap();
        let relays = Relays::new(store.clone(), choice, trust, Identity::default());
        let relays = Arc::new(relays.with_clock(clock.clone()));
        let key = VapidKey::generate().unwrap();
        let contact = Contact::parse("mailto:admin@instance.example").unwrap();
        let settings = Settings {
            addresses: Addresses::PublicAndLoopback,
            ..Settings::default()
        };
        let web = Arc::new(WebPush::new(&key, contact, &settings).unwrap());
        let fan_out = FanOut::new(store.clone(), Arc::clone(&relays), web, limits);
        Self {
            fan_out: Arc::new(fan_out.with_clock(clock.clone())),
            vapid: key.public_key(),
            store,
            relays,
        }
    }

    pub async fn register(&self, device: &Device, relay_url: &str, now: u64) -> Uuid {
        let new = NewDevice {
            user: user(),
            platform: device.platform,
            token: Redacted::new(device.token.clone()),
            public_key: device.public_key(),
            relay_url: relay_url.to_owned(),
            environment: None,
        };
        self.store.register_device(&new, 100_000, now).await.unwrap().id
    }

    /// The log's outcomes and reasons, the oldest first.
    pub async fn log(&self) -> Vec<(Outcome, String)> {
        let mut log = self.store.log_of(&user(), 1000).await.unwrap();
        log.reverse();
        let entry = |entry: LogEntry| (entry.outcome, entry.reason.as_str().to_owned());
        log.into_iter().map(entry).collect()
    }

    /// Rows of the outbox.
    pub async fn waiting(&self) -> u64 {
        self.store.outbox_counts(0).await.unwrap().rows
    }

    pub async fn enrolled_as(&self, relay_url: &str) -> String {
        let row = self.store.relay(relay_url).await.unwrap().unwrap();
        row.instance_id.unwrap()
    }
}

pub struct World {
    pub simulators: Simulators,
    pub relay: Option<Relay>,
    pub relay_url: String,
    pub instance: Instance,
    pub push_service: PushService,
    pub ahead: Ahead,
    pub directory: TempDir,
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(Limits::default(), &[]).await
    }

    pub async fn start_with(limits: Limits, relay_settings: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
        // It can come back there.
        let place = place::own_place().to_string();
        let settings = [&[("RELAY_LISTEN", place.as_str())], relay_settings].concat();
        let relay = Relay::start(&simulators, directory.path(), &settings).await;
        let ahead = Ahead::default();
        let clock = ahead.clock();
        let choice = relay.url().parse().unwrap();
        let instance = Instance::open(&database(directory.path()), choice, &clock, limits).await;
        Self {
            relay_url: relay.url(),
            relay: Some(relay),
            push_service: PushService::start(clock).await.unwrap(),
            simulators,
            instance,
            ahead,
            directory,
        }
    }

    pub fn database(&self) -> String {
        database(self.directory.path())
    }

    /// A registered device; it was registered a while ago.
    pub async fn device(&self, platform: Platform) -> Device {
        let mut device = Device::new(platform, &self.simulators);
        device.id = self
            .instance
            .register(&device, &self.relay_url, seconds() - 1000)
            .await;
        device
    }

    pub async fn browser(&self) -> sovereign_instance::web_push::service::Browser {
        let browser = self.push_service.browser(&self.instance.vapid).unwrap();
        let new = NewSubscription {
            user: user(),
            endpoint: Redacted::new(browser.endpoint()),
            p256dh: browser.p256dh(),
            auth: Redacted::new(browser.auth()),
        };
        let store = &self.instance.store;
        store.subscribe(&new, 100, seconds() - 1000).await.unwrap();
        browser
    }

    /// The relay is away ...
    pub async fn stop_relay(&mut self) {
        self.relay.take().unwrap().stop().await;
    }

    /// ... and back at the same place, with some settings changed.
    pub async fn start_relay(&mut self, more: &[(&str, &str)]) {
        let place = self.relay_url.trim_start_matches("http://").to_owned();
        let settings = [&[("RELAY_LISTEN", place.as_str())], more].concat();
        self.relay = Some(Relay::start(&self.simulators, self.directory.path(), &settings).await);
    }

    pub fn relay(&self) -> &Relay {
        self.relay.as_ref().unwrap()
    }

    /// What the simulators' devices have got so far, by token.
    pub fn arrived(&self) -> Vec<(String, String)> {
        let apns = self.simulators.apns.inbox().all().into_iter();
        let apns = apns.map(|one| (one.token.clone(), apns_payload(&one.payload)));
        let fcm = self.simulators.fcm.inbox().all().into_iter();
        let fcm = fcm.map(|one| (one.token.clone(), one.data["encryptedPayload"].clone()));
        let wns = self.simulators.wns.inbox().all().into_iter();
        let wns = wns.map(|one| (one.channel.clone(), one.body.clone()));
        apns.chain(fcm).chain(wns).collect()
    }

    /// The one notification that a device has got, opened.
    pub fn opened_by(&self, device: &Device) -> Value {
        let arrived = self.arrived();
        let mut for_it = arrived
            .iter()
            .filter(|(token, _)| same_device(token, &device.token));
        let (_, sealed) = for_it.next().expect("it got one");
        assert!(for_it.next().is_none(), "and no other");
        device.open(sealed)
    }
}

fn apns_payload(payload: &str) -> String {
    let payload: Value = serde_json::from_str(payload).unwrap();
    payload["encryptedPayload"].as_str().unwrap().to_owned()
}

fn same_device(arrived: &str, token: &str) -> bool {
    arrived == token || token.contains(&format!("token={arrived}"))
}

fn database(directory: &Path) -> String {
    format!("sqlite:{}", directory.join("push.db").display())
}

pub fn notification(body: &str) -> Notification {
    Notification::new("Title", body)
}

/// Looks until it is so.
pub async fn until(what: &str, holds: impl Fn() -> bool) {
    let looks = async {
        let mut looks = tokio::time::interval(Duration::from_millis(5));
        while !holds() {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, looks).await;
    assert!(waited.is_ok(), "{what}");
}
