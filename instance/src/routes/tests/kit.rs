//! A host that mounts the routes, and what apps and browsers send to it.

use std::{
    net::TcpListener,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, dev::ServerHandle, web};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sovereign_relay_protocol::{seal::DeviceKey, time::UnixMillis};
use tempfile::TempDir;

use crate::{
    clock::Clock,
    routes::{Authenticate, AuthenticationError, Registration, mount},
    store::Store,
    user::User,
};

pub(super) const DEVICES: &str = "/api/account/push-device-token";
pub(super) const SUBSCRIPTIONS: &str = "/api/account/push-subscription";
pub(super) const RELAY: &str = "https://relay.example";
pub(super) const WEB_PUSH_KEY: &str = "the-public-half";
/// Seconds at which every test begins.
pub(super) const START: u64 = 1_900_000_000;

/// Who asks is in a header; `nobody-knows` is when the host's sessions are away.
struct HeaderSessions;

impl Authenticate for HeaderSessions {
    async fn authenticate(&self, request: &HttpRequest) -> Result<User, AuthenticationError> {
        match request
            .headers()
            .get("x-user")
            .and_then(|name| name.to_str().ok())
        {
            None => Err(AuthenticationError::Unauthenticated),
            Some("nobody-knows") => Err(AuthenticationError::Unavailable("sessions are away".into())),
            Some(name) => Ok(User::new(name)),
        }
    }
}

/// The host. Its server ends with it.
pub(super) struct Host {
    pub(super) store: Store,
    pub(super) url: String,
    relay: Arc<Mutex<Option<String>>>,
    millis: Arc<AtomicU64>,
    http: reqwest::Client,
    server: ServerHandle,
    _directory: Option<TempDir>,
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

impl Host {
    pub(super) async fn start() -> Self {
        Self::start_with(|registration| registration.with_web_push(WEB_PUSH_KEY.to_owned())).await
    }

    pub(super) async fn start_with(adjust: impl FnOnce(Registration) -> Registration) -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("instance.sqlite");
        let store = Store::connect(&format!("sqlite:{}", file.display()))
            .await
            .unwrap();
        Self::mounted(store, Some(directory), adjust)
    }

    /// Another process on the same database.
    pub(super) fn beside(host: &Self, adjust: impl FnOnce(Registration) -> Registration) -> Self {
        Self::mounted(host.store.clone(), None, adjust)
    }

    fn mounted(
        store: Store,
        directory: Option<TempDir>,
        adjust: impl FnOnce(Registration) -> Registration,
    ) -> Self {
        let relay = Arc::new(Mutex::new(Some(RELAY.to_owned())));
        let millis = Arc::new(AtomicU64::new(START * 1000));
        let (now, current) = (millis.clone(), relay.clone());
        let registration = Registration::new(
            store.clone(),
            Arc::new(move || current.lock().unwrap().clone()),
            Clock::new(move || UnixMillis(now.load(Ordering::SeqCst))),
        );
        let (registration, sessions) = (Arc::new(adjust(registration)), Arc::new(HeaderSessions));
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = move || {
            App::new()
                .configure(mount(registration.clone(), sessions.clone()))
                .route("/api/account/other", web::get().to(HttpResponse::NoContent))
        };
        let server = HttpServer::new(app)
            .workers(1)
            .disable_signals()
            .listen(listener)
            .unwrap()
            .run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self {
            store,
            url,
            relay,
            millis,
            http,
            server: handle,
            _directory: directory,
        }
    }

    pub(super) fn turn_relay(&self, relay: Option<&str>) {
        *self.relay.lock().unwrap() = relay.map(str::to_owned);
    }

    pub(super) fn pass_seconds(&self, seconds: u64) {
        self.millis.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    pub(super) fn now(&self) -> u64 {
        self.millis.load(Ordering::SeqCst) / 1000
    }

    pub(super) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub(super) async fn get(&self, user: &str, path: &str) -> Value {
        let (status, body) = answer(self.request(Method::GET, path).header("x-user", user)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }

    pub(super) async fn post(&self, user: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        answer(self.request(Method::POST, path).header("x-user", user).json(body)).await
    }

    pub(super) async fn delete(&self, user: &str, path: &str) -> (StatusCode, Value) {
        answer(self.request(Method::DELETE, path).header("x-user", user)).await
    }

    /// Posts what must be taken.
    pub(super) async fn register(&self, user: &str, path: &str, body: &Value) {
        assert_eq!(
            self.post(user, path, body).await,
            (StatusCode::OK, json!({ "ok": true }))
        );
    }

    /// The user's devices as their app lists them.
    pub(super) async fn devices(&self, user: &str) -> Vec<Value> {
        self.get(user, DEVICES).await["devices"]
            .as_array()
            .unwrap()
            .clone()
    }
}

/// Status and body; every body of the routes is JSON.
pub(super) async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let response = request.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["cache-control"], "no-store");
    (response.status(), response.json().await.unwrap())
}

/// A public key; each number has its own.
pub(super) fn public_key(number: u8) -> String {
    DeviceKey::from_scalar(&[number; 32])
        .unwrap()
        .public_key()
        .to_base64()
}

/// What an app on an iPhone sends.
pub(super) fn iphone(number: u8) -> Value {
    json!({ "platform": "ios", "deviceToken": format!("{number:02x}").repeat(32), "publicKey": public_key(number) })
}

/// What a page sends.
pub(super) fn browser(number: u8) -> Value {
    use base64::{
        Engine as _,
        engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
    };
    let point = STANDARD.decode(public_key(number)).unwrap();
    json!({
        "endpoint": format!("https://push.example/send/{number}"),
        "expirationTime": null,
        "keys": { "p256dh": URL_SAFE_NO_PAD.encode(point), "auth": URL_SAFE_NO_PAD.encode([number; 16]) },
    })
}
