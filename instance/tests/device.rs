//! Apps' registration client, `sovereign-device`, against the routes that a host mounts: the two ends understand each
//! other, also where one says no.

#![allow(
    clippy::unwrap_used,
    reason = "a test binary has no users, and a helper that fails fails its test"
)]

use std::{
    net::TcpListener,
    sync::{Arc, Mutex},
};

use actix_web::{
    App, HttpRequest, HttpServer,
    dev::ServerHandle,
    http::header::{AUTHORIZATION, COOKIE},
};
use sovereign_device::{
    DeviceToken, Keys,
    instance::{CallError, Instance, Session, Trust},
};
use sovereign_instance::{
    clock::Clock,
    routes::{Authenticate, AuthenticationError, Registration, mount},
    store::Store,
    user::User,
};
use sovereign_relay_protocol::{platform::Platform, redacted::Redacted};
use tempfile::TempDir;

const RELAY: &str = "https://relay.example";

/// A user's session is their name, in a cookie or as a bearer token.
struct Names;

impl Authenticate for Names {
    async fn authenticate(&self, request: &HttpRequest) -> Result<User, AuthenticationError> {
        let header = |name| request.headers().get(name)?.to_str().ok();
        let cookie = header(COOKIE).and_then(|text| text.strip_prefix("name="));
        let bearer = || header(AUTHORIZATION).and_then(|text| text.strip_prefix("Bearer "));
        match cookie.or_else(bearer) {
            None | Some("stranger") => Err(AuthenticationError::Unauthenticated),
            Some("unknown") => Err(AuthenticationError::Unavailable("sessions are away".into())),
            Some(name) => Ok(User::new(name)),
        }
    }
}

struct Host {
    store: Store,
    base: String,
    relay: Arc<Mutex<Option<String>>>,
    server: ServerHandle,
    _directory: TempDir,
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.server.stop(false));
    }
}

impl Host {
    async fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("instance.sqlite");
        let store = Store::connect(&format!("sqlite:{}", file.display()))
            .await
            .unwrap();
        let relay = Arc::new(Mutex::new(Some(RELAY.to_owned())));
        let current = relay.clone();
        let current = Arc::new(move || current.lock().unwrap().clone());
        let registration = Arc::new(Registration::new(store.clone(), current, Clock::system()));
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let app = move || App::new().configure(mount(registration.clone(), Arc::new(Names)));
        let server = HttpServer::new(app).workers(1).disable_signals();
        let server = server.listen(listener).unwrap().run();
        let handle = server.handle();
        actix_web::rt::spawn(server);
        Self {
            store,
            base,
            relay,
            server: handle,
            _directory: directory,
        }
    }

    fn instance(&self, session: Session) -> Instance {
        let trust = Trust {
            plain_loopback: true,
            ..Trust::default()
        };
        Instance::new(&self.base, session, trust).unwrap()
    }
}

fn cookie(name: &str) -> Session {
    Session::Cookie(Redacted::new(format!("name={name}")))
}

fn bearer(name: &str) -> Session {
    Session::Bearer(Redacted::new(name))
}

fn keys() -> Keys {
    Keys::open_or_make(sovereign_device::Store::memory()).unwrap()
}

#[actix_web::test]
async fn devices_of_all_platforms_register_are_listed_and_are_revoked() {
    let host = Host::start().await;
    let (instance, keys) = (host.instance(cookie("alice")), keys());
    let tokens = [
        DeviceToken::ios(&[0xAB; 32]).unwrap(),
        DeviceToken::android("fcm:token").unwrap(),
        DeviceToken::macos(&[0xCD; 32]).unwrap(),
        DeviceToken::windows("https://db5.notify.windows.com/?token=A%2fB").unwrap(),
    ];
    for token in &tokens {
        instance.register(token, &keys).await.unwrap();
        // At the next start, too.
        instance.register(token, &keys).await.unwrap();
    }

    let kept = host.store.devices_of(&User::new("alice")).await.unwrap();
    for token in &tokens {
        let device = kept
            .iter()
            .find(|device| device.platform == token.platform())
            .unwrap();
        assert_eq!(
            (device.token.expose(), &device.public_key),
            (token.expose(), &keys.public_key())
        );
    }
    let known = instance.registrations().await.unwrap();
    assert!(known.relay_enabled && known.devices.len() == 4 && kept.len() == 4);
    assert!(
        known
            .devices
            .iter()
            .all(|device| device.created_at.is_some() && device.last_used_at.is_none())
    );
    let ios = known
        .devices
        .iter()
        .find(|device| device.platform == Some(Platform::Ios))
        .unwrap();

    assert!(
        !host.instance(bearer("bob")).revoke(&ios.id).await.unwrap(),
        "another's"
    );
    assert!(host.instance(bearer("alice")).revoke(&ios.id).await.unwrap());
    assert!(!instance.revoke(&ios.id).await.unwrap());
    assert!(!instance.revoke("no id").await.unwrap());
    assert_eq!(instance.registrations().await.unwrap().devices.len(), 3);
}

#[actix_web::test]
async fn each_no_of_the_routes_is_the_clients_own() {
    let host = Host::start().await;
    let (token, keys) = (DeviceToken::android("t").unwrap(), keys());
    let stranger = host.instance(bearer("stranger")).register(&token, &keys).await;
    assert!(
        matches!(stranger, Err(CallError::Unauthenticated)),
        "{stranger:?}"
    );
    let unknown = host
        .instance(bearer("unknown"))
        .register(&token, &keys)
        .await
        .unwrap_err();
    assert!(
        unknown.is_retryable(),
        "nobody is signed out, and push is not off: {unknown}"
    );

    *host.relay.lock().unwrap() = None;
    let alice = host.instance(bearer("alice"));
    let off = alice.register(&token, &keys).await;
    assert!(matches!(off, Err(CallError::PushOff)), "{off:?}");
    assert!(!alice.registrations().await.unwrap().relay_enabled);
}
