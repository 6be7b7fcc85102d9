//! A public listener on a free loopback port: real sockets, real keys, a real store in a temporary directory; the
//! instances' actors are a double that says what a test wants.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix_web::{dev::ServerHandle, web::Data};
use futures_util::future::BoxFuture;
use sovereign_relay_actors::{
    instance::signal::{Admitted, SessionRefusal, TurnFor},
    ports::{Delivery, Outcome, Providers, PushProvider, Scope},
    push::{Answered, Push, Refusal},
    session::{registry::Sessions, rules::SessionRules},
};
use sovereign_relay_protocol::{
    capabilities::Durability,
    envelope::AlertTitles,
    id::InstanceId,
    platform::{Environment, Platform},
    push::PushAnswer,
    redacted::Redacted,
    token::ChannelRule,
};
use tokio::sync::watch;

pub(crate) use super::wire::{Answer, Request, exchange, message, read_answer};

use crate::{
    auth::{Authority, Secrets, authority::Parts},
    clock::SystemClock,
    config::EnrollmentMode,
    entropy::SystemEntropy,
    http::{
        self, ListenerLimits,
        health::{Facts, Told},
        proxies::TrustedProxies,
        services::{Pushes, Services},
    },
    limit::{AddressLimits, BodyBounds, BodyBudget, Permits},
    shutdown::{Lifecycle, Phase},
    signaling::Signaling,
    store::{
        embedded::{DataDir, EmbeddedStore},
        sessions::{SessionBounds, memory::MemorySessions},
    },
};

type Script = Box<dyn Fn(&Push) -> Result<Answered, Refusal> + Send + Sync>;

/// Stands for the instances' actors.
pub(crate) struct FakePushes {
    script: Mutex<Script>,
    pub(crate) seen: Mutex<Vec<(InstanceId, Push)>>,
    pub(crate) refreshed: Mutex<Vec<InstanceId>>,
    under_way: AtomicUsize,
    /// Most pushes that were under way at the same time.
    pub(crate) most_under_way: AtomicUsize,
}

impl FakePushes {
    fn new() -> Arc<Self> {
        let script: Script = Box::new(|_| Ok(sent()));
        Arc::new(Self {
            script: Mutex::new(script),
            seen: Mutex::default(),
            refreshed: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most_under_way: AtomicUsize::new(0),
        })
    }

    /// Answers by `script` from now on.
    pub(crate) fn answer(&self, script: impl Fn(&Push) -> Result<Answered, Refusal> + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// The last push that arrived.
    pub(crate) fn last(&self) -> Push {
        self.seen
            .lock()
            .unwrap()
            .last()
            .expect("a push arrived")
            .1
            .clone()
    }
}

impl Pushes for FakePushes {
    fn push(&self, instance: InstanceId, push: Push) -> BoxFuture<'_, Result<Answered, Refusal>> {
        let answer = (self.script.lock().unwrap())(&push);
        self.seen.lock().unwrap().push((instance, push));
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_under_way.fetch_max(under_way, Ordering::SeqCst);
        Box::pin(async move {
            // Others get a chance to begin before this one ends.
            tokio::task::yield_now().await;
            self.under_way.fetch_sub(1, Ordering::SeqCst);
            answer
        })
    }

    fn refresh(&self, instance: InstanceId) -> BoxFuture<'_, ()> {
        self.refreshed.lock().unwrap().push(instance);
        Box::pin(async {})
    }

    fn per_minute(&self) -> u32 {
        600
    }
}

pub(crate) fn sent() -> Answered {
    Answered {
        answer: PushAnswer::sent(None),
        replayed: false,
    }
}

/// Says what instances may do in signaling.
pub(crate) struct FakePermits {
    /// The next answers; `None` = admitted.
    pub(crate) refusal: Mutex<Option<SessionRefusal>>,
    /// What was asked.
    pub(crate) asked: Mutex<Vec<(InstanceId, TurnFor)>>,
}

impl Permits for FakePermits {
    fn admit_session(
        &self,
        instance: InstanceId,
        turn: TurnFor,
    ) -> BoxFuture<'_, Result<Admitted, SessionRefusal>> {
        self.asked.lock().unwrap().push((instance, turn));
        let refusal = *self.refusal.lock().unwrap();
        let admitted = Admitted {
            turn: turn == TurnFor::All,
        };
        Box::pin(async move { refusal.map_or(Ok(admitted), Err) })
    }
}

/// A provider that is asked for its scope only.
struct FakeProvider {
    configured: bool,
}

impl PushProvider for FakeProvider {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn scope(&self, _platform: Platform) -> Option<Scope> {
        self.configured.then(|| Scope {
            name: Arc::from("fake"),
            generation: 0,
        })
    }

    fn capacity(&self) -> watch::Receiver<usize> {
        watch::channel(1).1
    }

    fn deliver(&self, _delivery: Delivery) -> BoxFuture<'static, Outcome> {
        Box::pin(async { Outcome::Unreachable })
    }
}

/// What a test may want otherwise.
pub(crate) struct Setup {
    pub(crate) mode: EnrollmentMode,
    pub(crate) secret: Option<&'static str>,
    pub(crate) body_time: Duration,
    pub(crate) bodies: BodyBounds,
    pub(crate) trusted: Vec<&'static str>,
    pub(crate) listener: ListenerLimits,
    pub(crate) public_url: Option<&'static str>,
    pub(crate) bounds: SessionBounds,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: EnrollmentMode::Open,
            secret: Some("an enrollment secret of 32 bytes and more"),
            body_time: Duration::from_secs(10),
            bodies: BodyBounds::default(),
            trusted: vec!["127.0.0.0/8"],
            listener: listener_limits(),
            public_url: None,
            bounds: SessionBounds::default(),
        }
    }
}

/// A running listener. Dropped, it closes.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    pub(crate) pushes: Arc<FakePushes>,
    pub(crate) permits: Arc<FakePermits>,
    pub(crate) services: Data<Services>,
    pub(crate) lifecycle: Lifecycle,
    handle: ServerHandle,
    _directory: tempfile::TempDir,
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
    }
}

pub(crate) fn listener_limits() -> ListenerLimits {
    ListenerLimits {
        workers: 1,
        connections: 64,
        per_address: 64,
        backlog: 64,
        head_time: Duration::from_secs(10),
        keep_alive: Duration::from_secs(10),
        closing_time: Duration::from_secs(10),
    }
}

impl Relay {
    pub(crate) async fn start() -> Self {
        Self::start_as(Setup::default()).await
    }

    pub(crate) async fn start_as(setup: Setup) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let pushes = FakePushes::new();
        let lifecycle = Lifecycle::default();
        lifecycle.advance(Phase::Serving);
        let permits = Arc::new(FakePermits {
            refusal: Mutex::default(),
            asked: Mutex::default(),
        });
        let services = services(&setup, directory.path(), (&pushes, &permits), &lifecycle).await;
        let services = Data::new(services);
        let bound = http::bind(
            "127.0.0.1:0".parse().unwrap(),
            setup.listener,
            services.clone(),
            None,
        )
        .unwrap();
        let handle = bound.server.handle();
        actix_web::rt::spawn(bound.server);
        Self {
            address: bound.address,
            pushes,
            permits,
            services,
            lifecycle,
            handle,
            _directory: directory,
        }
    }

    pub(crate) async fn send(&self, request: Request) -> Answer {
        exchange(self.address, request.into_bytes().as_slice()).await
    }

    /// Enrolls and gives the key.
    pub(crate) async fn enroll(&self) -> String {
        let answer = self.send(Request::new("POST", "/v1/enroll")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["instanceKey"].as_str().unwrap().to_owned()
    }
}

async fn services(
    setup: &Setup,
    directory: &std::path::Path,
    (pushes, permits): (&Arc<FakePushes>, &Arc<FakePermits>),
    lifecycle: &Lifecycle,
) -> Services {
    let clock = Arc::new(SystemClock::new());
    let entropy = Arc::new(SystemEntropy);
    let store = EmbeddedStore::open(DataDir::open(directory).unwrap()).unwrap();
    let secrets = setup
        .secret
        .map(|secret| Secrets::new(Redacted::new(secret), Vec::new()).unwrap());
    let parts = Parts {
        store: Arc::new(store),
        secrets,
        mode: setup.mode,
        entropy: entropy.clone(),
    };
    let authority = Arc::new(Authority::open(parts).await.unwrap());
    let rules = SessionRules::default();
    let store = Arc::new(MemorySessions::new(setup.bounds, rules, clock.clone()));
    let signaling = Signaling {
        durability: Durability::Memory,
        sessions: Sessions::start(1, store.clone(), rules, clock.clone()),
        store,
        permits: permits.clone(),
        turn_for: TurnFor::All,
        authority: authority.clone(),
        entropy: entropy.clone(),
        public_url: setup.public_url.map(|url| url.parse().unwrap()),
    };
    Services {
        clock,
        entropy,
        authority,
        pushes: pushes.clone(),
        signaling,
        addresses: Arc::new(AddressLimits::new()),
        bodies: BodyBudget::new(setup.bodies),
        providers: providers(),
        titles: AlertTitles::default(),
        lifecycle: lifecycle.clone(),
        facts: Box::new(|| Facts {
            enrollment_secret: true,
            any_platform: true,
            store_works: true,
            ..Facts::default()
        }),
        told: Told::default(),
        proxies: Arc::new(TrustedProxies::new(
            setup.trusted.iter().map(|net| net.parse().unwrap()).collect(),
        )),
        body_time: setup.body_time,
    }
}

/// FCM and production have credentials, the others have none.
fn providers() -> Providers {
    let fake = |configured| Arc::new(FakeProvider { configured });
    Providers {
        apns_production: fake(true),
        apns_sandbox: fake(false),
        fcm: fake(true),
        wns: fake(false),
        default_environment: Environment::Production,
        channel_rule: ChannelRule::default(),
    }
}
