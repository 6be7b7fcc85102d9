//! A whole relay whose providers do what a test says.

use std::{collections::HashMap, path::Path, sync::Arc};

use futures_util::future::BoxFuture;
use serde_json::Value;
use sovereign_relay_actors::ports::{Delivery, Outcome, Providers, PushProvider, Scope};
use sovereign_relay_protocol::platform::{Environment, Platform};
use tokio::sync::{Semaphore, watch};

use crate::{
    app::{Ports, RunningRelay, StartError, start_with},
    config::{Config, Flags},
    http::tests::wire::{Answer, Request, exchange},
};

/// A provider that accepts everything, each push once the gate lets it through.
pub(super) struct FakeProvider {
    /// Pushes that have reached the provider.
    pub(super) reached: Semaphore,
    /// Pushes that may be answered.
    pub(super) gate: Semaphore,
    capacity: watch::Sender<usize>,
}

impl FakeProvider {
    fn new(open: usize) -> Arc<Self> {
        let capacity = watch::Sender::new(100);
        Arc::new(Self {
            reached: Semaphore::new(0),
            gate: Semaphore::new(open),
            capacity,
        })
    }
}

/// The port wants an owner of its own for each call.
struct Shared(Arc<FakeProvider>);

impl PushProvider for Shared {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn scope(&self, _platform: Platform) -> Option<Scope> {
        Some(Scope {
            name: Arc::from("fake"),
            generation: 0,
        })
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        self.0.capacity.subscribe()
    }

    fn deliver(&self, _delivery: Delivery) -> BoxFuture<'static, Outcome> {
        let fake = Arc::clone(&self.0);
        Box::pin(async move {
            fake.reached.add_permits(1);
            fake.gate.acquire().await.unwrap().forget();
            Outcome::Sent { message_id: None }
        })
    }
}

/// A relay in a directory of its own.
pub(super) struct Whole {
    pub(super) relay: RunningRelay,
    pub(super) provider: Arc<FakeProvider>,
    pub(super) directory: tempfile::TempDir,
}

impl Whole {
    /// Answers every push at once.
    pub(super) async fn start() -> Self {
        Self::start_with(1_000_000, &[]).await
    }

    /// Lets `open` pushes through.
    pub(super) async fn start_with(open: usize, settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let provider = FakeProvider::new(open);
        let relay = launch(directory.path(), &provider, settings).await.unwrap();
        Self {
            relay,
            provider,
            directory,
        }
    }

    /// Stops and starts again on the same directory.
    pub(super) async fn restart(self) -> Self {
        self.restart_with(&[]).await
    }

    pub(super) async fn restart_with(self, settings: &[(&str, &str)]) -> Self {
        self.relay.stop().await;
        let relay = launch(self.directory.path(), &self.provider, settings)
            .await
            .unwrap();
        Self { relay, ..self }
    }

    pub(super) async fn send(&self, request: Request) -> Answer {
        exchange(self.relay.public_addr, &request.into_bytes()).await
    }

    pub(super) async fn enroll(&self) -> (String, String) {
        let answer = self.send(Request::new("POST", "/v1/enroll")).await.json();
        let field = |name: &str| answer[name].as_str().unwrap().to_owned();
        (field("instanceId"), field("instanceKey"))
    }

    /// A call of the admin API with the node's own token.
    pub(super) async fn admin(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        let token = std::fs::read_to_string(self.directory.path().join("admin-token")).unwrap();
        let request = Request::new(method, &format!("/admin/v1{path}")).key(token.trim());
        let request = body.iter().fold(request, |request, body| request.json(body));
        exchange(self.relay.admin_addr, &request.into_bytes()).await
    }
}

pub(super) async fn launch(
    directory: &Path,
    provider: &Arc<FakeProvider>,
    settings: &[(&str, &str)],
) -> Result<RunningRelay, StartError> {
    let config = config(directory, settings);
    let shared = || Arc::new(Shared(provider.clone()));
    let providers = Providers {
        apns_production: shared(),
        apns_sandbox: shared(),
        fcm: shared(),
        wns: shared(),
        default_environment: Environment::Production,
        channel_rule: config.wns.channel_rule.clone(),
    };
    let ports = Ports {
        providers: Some(providers),
        ..Ports::default()
    };
    start_with(config, ports).await
}

/// Free ports, no grace, `directory`; `settings` come on top.
pub(super) fn config(directory: &Path, settings: &[(&str, &str)]) -> Config {
    let mut variables = HashMap::from([
        ("RELAY_LISTEN", "127.0.0.1:0"),
        ("RELAY_ADMIN_LISTEN", "127.0.0.1:0"),
        ("RELAY_DRAIN_GRACE", "0s"),
        ("RELAY_DATA_DIR", directory.to_str().unwrap()),
    ]);
    variables.extend(settings.iter().copied());
    let read = |name: &str| variables.get(name).map(|&value| value.to_owned());
    Config::load(&Flags::default(), &read).unwrap()
}
