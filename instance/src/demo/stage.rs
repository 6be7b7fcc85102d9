//! Starts the parts: simulated providers, a relay, a push service, the reference server with one user, and that user's
//! four devices and browser, all registered over HTTP.

use std::{net::SocketAddr, path::Path};

use anyhow::{Context as _, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sovereign_relay::{
    app::{self, RunningRelay},
    playground,
};
use sovereign_relay_protocol::{platform::Platform, redacted::Redacted};
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use super::devices::Device;
use crate::{
    clock::Clock,
    entropy::random_bytes,
    routes::SUBSCRIPTIONS_PATH,
    server::{
        serve::Running,
        settings::{RelaySettings, StoreSettings},
    },
    web_push::service::{Browser, PushService},
};

/// The user of the demo.
pub(super) const USER: &str = "ann";

/// Everything that is running.
pub(super) struct Stage {
    pub(super) simulators: Simulators,
    pub(super) push_service: PushService,
    pub(super) instance: Running,
    pub(super) session: Redacted,
    pub(super) devices: Vec<Device>,
    pub(super) browser: Browser,
    pub(super) http: reqwest::Client,
    relay: Relay,
    directory: TempDir,
}

/// The relay, and what its operator knows.
struct Relay {
    /// `None` while it is being replaced.
    running: Option<RunningRelay>,
    public: SocketAddr,
    admin: SocketAddr,
    admin_token: String,
    life: u32,
}

impl Stage {
    /// Starts all of it on free loopback ports.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let directory = TempDir::new().context("cannot make a temporary directory")?;
        let simulators = Simulators::start(SimulatorOptions::default()).await?;
        let push_service = PushService::start(Clock::system()).await?;
        let relay = Relay::start(&simulators, directory.path(), None, 1).await?;
        let instance = instance(directory.path(), relay.url()).await?;
        let session = instance
            .parts
            .accounts
            .add(USER, Clock::system().seconds())
            .await?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        let devices = Platform::ALL.map(|platform| Device::new(platform, &simulators));
        let devices = devices.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        for device in &devices {
            device.register(&instance.url, &session).await?;
        }
        let browser = subscribe(&http, &instance.url, &session, &push_service).await?;
        Ok(Self {
            simulators,
            push_service,
            instance,
            session,
            devices,
            browser,
            http,
            relay,
            directory,
        })
    }

    /// Where the relay is.
    pub(super) fn relay_url(&self) -> String {
        self.relay.url()
    }

    /// The relay's operator replaces its secret and all that it knew: at the same address there is another relay.
    pub(super) async fn replace_relay(&mut self) -> anyhow::Result<()> {
        // Its port is free once it has stopped.
        self.relay.stop().await;
        let (address, life) = (self.relay.public, self.relay.life + 1);
        self.relay = Relay::start(&self.simulators, self.directory.path(), Some(address), life).await?;
        Ok(())
    }

    /// The relay's operator shuts the instance out.
    pub(super) async fn revoke(&self, instance_id: &str) -> anyhow::Result<()> {
        let url = format!(
            "http://{}/admin/v1/instances/{instance_id}/revoke",
            self.relay.admin
        );
        let request = self
            .http
            .post(url)
            .bearer_auth(&self.relay.admin_token)
            .json(&json!({}));
        request.send().await?.error_for_status()?;
        Ok(())
    }

    /// What the user's app or script asks the instance.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let request = self.http.get(format!("{}{path}", self.instance.url));
        let answer = request.bearer_auth(self.session.expose()).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// The same, with a body.
    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        let request = self.http.post(format!("{}{path}", self.instance.url)).json(body);
        let answer = request.bearer_auth(self.session.expose()).send().await?;
        Ok(answer.error_for_status()?.json().await?)
    }

    /// Stops all of it, whoever calls others first.
    pub(super) async fn stop(mut self) {
        self.instance.stop().await;
        self.relay.stop().await;
        let _ended = self.push_service.stop().await;
        self.simulators.stop().await;
    }
}

impl Relay {
    /// A relay with a new secret and an empty memory, in front of the simulators.
    async fn start(
        simulators: &Simulators,
        directory: &Path,
        address: Option<SocketAddr>,
        life: u32,
    ) -> anyhow::Result<Self> {
        let admin_token = URL_SAFE_NO_PAD.encode(random_bytes::<32>());
        let listen = address.map_or_else(|| "127.0.0.1:0".to_owned(), |address| address.to_string());
        let data = directory.join(format!("relay-{life}"));
        let own = [
            ("RELAY_LISTEN", listen),
            ("RELAY_ADMIN_TOKEN", admin_token.clone()),
            ("RELAY_DATA_DIR", data.display().to_string()),
        ];
        let running = app::start(playground::relay_config(simulators, directory, &own)?).await?;
        let (public, admin) = (running.public_addr, running.admin_addr);
        Ok(Self {
            running: Some(running),
            public,
            admin,
            admin_token,
            life,
        })
    }

    fn url(&self) -> String {
        format!("http://{}", self.public)
    }

    async fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }
}

/// The reference server as an operator would start it, but for the simulators' addresses, which it must be told to trust.
async fn instance(directory: &Path, relay_url: String) -> anyhow::Result<Running> {
    let store = StoreSettings {
        data_dir: directory.join("instance"),
        database_url: None,
    };
    let relay = RelaySettings {
        relay_url: Some(relay_url),
        allow_test_endpoints: true,
        ..RelaySettings::default()
    };
    let started = Running::start(&store, &relay, SocketAddr::from(([127, 0, 0, 1], 0))).await;
    started.map_err(|error| anyhow!("the instance did not start: {error}"))
}

/// What the page in a browser does.
async fn subscribe(
    http: &reqwest::Client,
    instance_url: &str,
    session: &Redacted,
    push_service: &PushService,
) -> anyhow::Result<Browser> {
    let url = format!("{instance_url}{SUBSCRIPTIONS_PATH}");
    let shown = http.get(&url).bearer_auth(session.expose()).send().await?;
    let shown: Value = shown.error_for_status()?.json().await?;
    let key = shown
        .get("publicKey")
        .and_then(Value::as_str)
        .context("the instance has no key for browsers")?;
    let browser = push_service
        .browser(key)
        .context("the browser could not make a key")?;
    let request = http
        .post(&url)
        .bearer_auth(session.expose())
        .json(&browser.subscription());
    request.send().await?.error_for_status()?;
    Ok(browser)
}
