//! A public listener on a free loopback port: real sockets, real keys, a real store in a temporary directory; the
//! instances' actors are a double that says what a test wants.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use actix_web::{dev::ServerHandle, web::Data};
use futures_util::future::BoxFuture;
use serde_json::Value;
use sovereign_relay_actors::{
    ports::{Delivery, Outcome, PushProvider, Providers, Scope},
    push::{Answered, Push, Refusal},
};
use sovereign_relay_protocol::{
    envelope::AlertTitles,
    id::InstanceId,
    platform::{Environment, Platform},
    push::PushAnswer,
    redacted::Redacted,
    token::ChannelRule,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
};

use crate::{
    auth::{Authority, EnrollmentMode, Secrets, authority::Parts},
    clock::SystemClock,
    entropy::SystemEntropy,
    http::{
        self, ListenerLimits,
        health::Facts,
        services::{Pushes, Services},
    },
    limit::AddressLimits,
    shutdown::{Lifecycle, Phase},
    store::embedded::{DataDir, EmbeddedStore},
};

/// Everything waits for its event at most this long.
const DEADLINE: Duration = Duration::from_secs(20);

type Script = Box<dyn Fn(&Push) -> Result<Answered, Refusal> + Send + Sync>;

/// Stands for the instances' actors.
pub(crate) struct FakePushes {
    script: Mutex<Script>,
    pub(crate) seen: Mutex<Vec<(InstanceId, Push)>>,
    pub(crate) refreshed: Mutex<Vec<InstanceId>>,
}

impl FakePushes {
    fn new() -> Arc<Self> {
        let script: Script = Box::new(|_| Ok(sent()));
        Arc::new(Self { script: Mutex::new(script), seen: Mutex::default(), refreshed: Mutex::default() })
    }

    /// Answers by `script` from now on.
    pub(crate) fn answer(&self, script: impl Fn(&Push) -> Result<Answered, Refusal> + Send + Sync + 'static) {
        *self.script.lock().unwrap() = Box::new(script);
    }

    /// The last push that arrived.
    pub(crate) fn last(&self) -> Push {
        self.seen.lock().unwrap().last().expect("a push arrived").1.clone()
    }
}

impl Pushes for FakePushes {
    fn push(&self, instance: InstanceId, push: Push) -> BoxFuture<'_, Result<Answered, Refusal>> {
        let answer = (self.script.lock().unwrap())(&push);
        self.seen.lock().unwrap().push((instance, push));
        Box::pin(async move { answer })
    }

    fn refresh(&self, instance: InstanceId) -> BoxFuture<'_, ()> {
        self.refreshed.lock().unwrap().push(instance);
        Box::pin(async {})
    }
}

pub(crate) fn sent() -> Answered {
    Answered { answer: PushAnswer::sent(None), replayed: false }
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
        self.configured.then(|| Scope { name: Arc::from("fake"), generation: 0 })
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
    pub(crate) trusted: Vec<&'static str>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mode: EnrollmentMode::Open,
            secret: Some("an enrollment secret of 32 bytes and more"),
            body_time: Duration::from_secs(10),
            trusted: vec!["127.0.0.0/8"],
        }
    }
}

/// A running listener. Dropped, it closes.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    pub(crate) pushes: Arc<FakePushes>,
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
        let services = Data::new(services(&setup, directory.path(), &pushes, &lifecycle).await);
        let bound = http::bind("127.0.0.1:0".parse().unwrap(), listener_limits(), services.clone()).unwrap();
        let handle = bound.server.handle();
        actix_web::rt::spawn(bound.server);
        Self { address: bound.address, pushes, services, lifecycle, handle, _directory: directory }
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
    pushes: &Arc<FakePushes>,
    lifecycle: &Lifecycle,
) -> Services {
    let entropy = Arc::new(SystemEntropy);
    let store = EmbeddedStore::open(DataDir::open(directory).unwrap()).unwrap();
    let secrets = setup.secret.map(|secret| Secrets::new(Redacted::new(secret), Vec::new()).unwrap());
    let parts = Parts { store: Arc::new(store), secrets, mode: setup.mode, entropy: entropy.clone() };
    Services {
        clock: Arc::new(SystemClock::new()),
        entropy,
        authority: Arc::new(Authority::open(parts).await.unwrap()),
        pushes: pushes.clone(),
        addresses: Arc::new(AddressLimits::new()),
        providers: providers(),
        titles: AlertTitles::default(),
        per_minute: 600,
        lifecycle: lifecycle.clone(),
        facts: Box::new(|| Facts { enrollment_secret: true, any_platform: true, store_works: true, ..Facts::default() }),
        trusted_proxies: setup.trusted.iter().map(|net| net.parse().unwrap()).collect(),
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

/// One request, as bytes.
pub(crate) struct Request {
    head: String,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self { head: format!("{method} {path} HTTP/1.1\r\nHost: relay\r\n"), body: Vec::new() }
    }

    /// A push with a body of the deployed runtime's form, without a key.
    pub(crate) fn push() -> Self {
        Self::new("POST", "/v1/push").json(&message())
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.header("Authorization", &format!("Bearer {key}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", &body.to_string())
    }

    pub(crate) fn body(self, content_type: &str, body: &str) -> Self {
        let mut request = self.header("Content-Type", content_type).header("Content-Length", &body.len().to_string());
        request.body = body.as_bytes().to_vec();
        request
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.head).into_bytes();
        bytes.extend(self.body);
        bytes
    }
}

pub(crate) fn message() -> Value {
    serde_json::json!({"deviceToken": "token", "platform": "android", "encryptedPayload": "c2VhbGVk"})
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Checks that this is an error of the one form, and gives its code.
    pub(crate) fn error(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        assert!(self.header("x-request-id").is_some(), "{self:?}");
        let body = self.json();
        assert_eq!(body.as_object().unwrap().len(), 2, "{self:?}");
        assert!(body["message"].as_str().unwrap().len() > 10, "{self:?}");
        body["error"].as_str().unwrap().to_owned()
    }

    /// Status and code.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.error())
    }
}

/// Sends all bytes on a fresh connection and reads one answer.
pub(crate) async fn exchange(address: SocketAddr, request: &[u8]) -> Answer {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // The relay may answer and close before it has read everything.
    let _ = socket.write_all(request).await;
    read_answer(&mut socket, request.starts_with(b"HEAD")).await
}

/// Reads one answer off an open connection.
pub(crate) async fn read_answer(socket: &mut TcpStream, without_body: bool) -> Answer {
    tokio::time::timeout(DEADLINE, read(socket, without_body)).await.expect("an answer before the deadline")
}

async fn read(socket: &mut TcpStream, without_body: bool) -> Answer {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(socket, &mut bytes).await;
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, n)| n.parse().unwrap());
    let wanted = head_end + if without_body { 0 } else { length };
    while bytes.len() < wanted {
        more(socket, &mut bytes).await;
    }
    Answer { status, headers, body: bytes[head_end..].to_vec() }
}

async fn more(socket: &mut TcpStream, bytes: &mut Vec<u8>) {
    let read = socket.read_buf(bytes).await.unwrap();
    assert!(read > 0, "the connection ended inside an answer: {:?}", String::from_utf8_lossy(bytes));
}
