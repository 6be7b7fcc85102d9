//! Registration routes, in the shapes that deployed apps use: a host mounts them, apps and browsers register here.
//!
//! ```text
//! request -> gate (not forged, signed in: the host's Authenticate) -> body (JSON, 16 KiB) -> parse -> pace -> store
//! ```
//! [`devices`] and [`subscriptions`] hold the routes, [`error`] all refusals. Every answer is JSON, also 401, 404, 405,
//! 413 and 415 below the two paths. Invariants: nothing is stored that was not parsed; a user sees and changes their own
//! devices alone; neither tokens nor keys nor endpoints are logged or given out.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use actix_web::{App, HttpRequest, HttpServer};
//! use sovereign_instance::{
//!     clock::Clock,
//!     routes::{Authenticate, AuthenticationError, Registration, mount},
//!     store::Store,
//!     user::User,
//! };
//!
//! struct Sessions;
//!
//! impl Authenticate for Sessions {
//!     async fn authenticate(&self, request: &HttpRequest) -> Result<User, AuthenticationError> {
//!         // Look the session up in your own tables, and compare `Origin` with your own.
//!         # let _ = request;
//!         Err(AuthenticationError::Unauthenticated)
//!     }
//! }
//!
//! # async fn example(store: Store) -> std::io::Result<()> {
//! let relay = Arc::new(|| Some("https://relay.example".to_owned()));
//! let registration = Arc::new(Registration::new(store, relay, Clock::system()));
//! let app = move || App::new().configure(mount(registration.clone(), Arc::new(Sessions)));
//! HttpServer::new(app).bind(("127.0.0.1", 8080))?.run().await
//! # }
//! ```

mod authenticate;
pub(crate) mod body_time;
mod devices;
mod error;
mod gate;
mod pace;
mod subscriptions;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use actix_web::{
    Error, HttpResponse, Scope,
    body::BoxBody,
    dev::{ServiceFactory, ServiceRequest, ServiceResponse},
    http::header,
    middleware::{DefaultHeaders, from_fn},
    web::{self, Data, JsonConfig, ServiceConfig},
};
use serde_json::json;
use sovereign_relay_protocol::token::ChannelRule;

pub use self::authenticate::{Authenticate, AuthenticationError};
pub(crate) use self::error::ApiError;
#[cfg(feature = "server")]
pub(crate) use self::gate::Caller;
use self::pace::Pace;
use crate::{clock::Clock, store::Store, user::User, web_push::Addresses};

/// Where apps look for the routes of native devices.
pub const DEVICES_PATH: &str = "/api/account/push-device-token";
/// Where pages look for the routes of browsers.
pub const SUBSCRIPTIONS_PATH: &str = "/api/account/push-subscription";

/// A registration is a few hundred bytes; the longest tokens have 4 KiB.
const BODY_BYTES: usize = 16 * 1024;

/// How many registrations a user may have, at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegistrationLimits {
    /// Native devices. One more takes the place of the one that was unused longest.
    pub devices_per_user: u32,
    /// Browsers, alike.
    pub subscriptions_per_user: u32,
}

impl Default for RegistrationLimits {
    /// More than a person owns, and few enough that one user can't make a notification cost thousands of pushes.
    fn default() -> Self {
        Self {
            devices_per_user: 50,
            subscriptions_per_user: 50,
        }
    }
}

/// The relay that devices are registered with now; `None` while native push is off.
pub type CurrentRelay = Arc<dyn Fn() -> Option<String> + Send + Sync>;

/// What the routes work with. One for the whole process: the pace is counted here.
pub struct Registration {
    store: Store,
    relay: CurrentRelay,
    web_push_key: Option<String>,
    channels: Vec<ChannelRule>,
    addresses: Addresses,
    limits: RegistrationLimits,
    clock: Clock,
    pace: Mutex<Pace>,
}

impl Registration {
    /// With the default limits, without Web Push, and for the hosts of the real push services alone.
    pub fn new(store: Store, relay: CurrentRelay, clock: Clock) -> Self {
        Self {
            store,
            relay,
            web_push_key: None,
            channels: vec![ChannelRule::default()],
            addresses: Addresses::Public,
            limits: RegistrationLimits::default(),
            clock,
            pace: Mutex::default(),
        }
    }

    /// Takes browsers, too. `key` is the public half of the server's VAPID key.
    pub fn with_web_push(mut self, key: String) -> Self {
        self.web_push_key = Some(key);
        self
    }

    /// With other limits.
    pub fn with_limits(mut self, limits: RegistrationLimits) -> Self {
        self.limits = limits;
        self
    }

    /// For simulators: channels and endpoints may be on this machine and without TLS.
    pub fn with_test_endpoints(mut self) -> Self {
        self.channels.push(ChannelRule {
            host_suffix: "localhost".to_owned(),
            allow_test_endpoints: true,
        });
        self.addresses = Addresses::PublicAndLoopback;
        self
    }

    /// One of the user's registrations a while; bodies are parsed before, so a mistaken app is told its mistake.
    fn take_turn(&self, user: &User) -> Result<(), ApiError> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = pace.take(user, self.clock.now().0);
        turn.map_err(|retry_after| ApiError::RateLimited { retry_after })
    }
}

/// Mounts the routes: `App::new().configure(mount(registration, authenticate))`, also in a scope of the host's.
/// Nothing but the two paths is touched.
pub fn mount<A: Authenticate>(
    registration: Arc<Registration>,
    authenticate: Arc<A>,
) -> impl FnOnce(&mut ServiceConfig) + Clone {
    move |services| {
        for scope in [devices_scope(), subscriptions_scope()] {
            let scope = scope
                .app_data(Data::from(registration.clone()))
                .app_data(json_config());
            services.service(framed(scope, authenticate.clone()));
        }
    }
}

/// What the answers of a scope have in common: the gate, and JSON also where there is nothing.
pub(crate) fn framed<A: Authenticate>(
    scope: Scope,
    authenticate: Arc<A>,
) -> Scope<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<BoxBody>,
        Error = Error,
        InitError = (),
    >,
> {
    let gate = from_fn(move |request: ServiceRequest, next| gate::pass(authenticate.clone(), request, next));
    scope
        .default_service(web::to(|| refuse(ApiError::NotFound)))
        .wrap(from_fn(body_time::limit))
        .wrap(gate)
        .wrap(DefaultHeaders::new().add((header::CACHE_CONTROL, "no-store")))
}

fn devices_scope() -> Scope {
    let all = web::resource("")
        .route(web::get().to(devices::list))
        .route(web::post().to(devices::register))
        .default_service(web::to(|| refuse(ApiError::MethodNotAllowed("GET, POST"))));
    let one = web::resource("/{id}")
        .route(web::delete().to(devices::remove))
        .default_service(web::to(|| refuse(ApiError::MethodNotAllowed("DELETE"))));
    web::scope(DEVICES_PATH).service(all).service(one)
}

fn subscriptions_scope() -> Scope {
    let all = web::resource("")
        .route(web::get().to(subscriptions::show))
        .route(web::post().to(subscriptions::subscribe))
        .route(web::delete().to(subscriptions::unsubscribe))
        .default_service(web::to(|| {
            refuse(ApiError::MethodNotAllowed("GET, POST, DELETE"))
        }));
    web::scope(SUBSCRIPTIONS_PATH).service(all)
}

fn json_config() -> JsonConfig {
    JsonConfig::default()
        .limit(BODY_BYTES)
        .error_handler(|error, _| ApiError::from(error).into())
}

async fn refuse(error: ApiError) -> Result<HttpResponse, ApiError> {
    Err(error)
}

fn ok() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "ok": true }))
}
