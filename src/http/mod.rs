//! The public side: routes, and the server that carries them.
//!
//! ```text
//! socket -> context (id, span, log line, panics) -> route -> extract (key, body, address) -> handler -> answer
//!                                                       \-> error (one form for everything that goes wrong)
//! ```
//!
//! Called by [`crate::app`]. A handler parses at the edge with `extract`, calls one part of the relay, and turns its
//! answer into a response; it decides nothing.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use actix_web::{
    HttpResponse, Resource, Route, guard,
    web::{self, Data, ServiceConfig},
};

pub(crate) mod batch;
pub(crate) mod capabilities;
pub(crate) mod context;
mod ending;
pub(crate) mod enroll;
pub(crate) mod error;
pub(crate) mod extract;
pub mod health;
pub mod openapi;
mod patience;
mod peers;
mod plain;
pub mod proxies;
pub(crate) mod push;
pub(crate) mod server;
pub mod services;
pub(crate) mod sessions;
pub(crate) mod signal;
mod unread;

#[cfg(test)]
pub(crate) mod tests;

use self::{context::Observer, error::ApiError, peers::Peers, server::Bound, services::Services};
use crate::{
    limit::BodyBounds,
    ws::upgrade::{self, Upgrades},
};

/// Times and sizes of the listeners.
#[derive(Clone, Copy, Debug)]
pub struct Tuning {
    /// How long a request's head may take: longer, and one machine with slow sockets holds every connection.
    pub head_time: Duration,
    /// How long a body may take. A batch of 4 MiB fits at 4 Mbit/s.
    pub body_time: Duration,
    /// How much memory bodies may take on the public side.
    pub bodies: BodyBounds,
    /// How long an idle connection is kept: longer than the 120 s after which the slowest of common proxies (Caddy)
    /// drops its own, so that it is the proxy that closes and never a request that meets a closing socket.
    pub keep_alive: Duration,
    /// What the kernel holds beyond.
    pub backlog: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            head_time: Duration::from_secs(10),
            body_time: Duration::from_secs(10),
            bodies: BodyBounds::default(),
            keep_alive: Duration::from_secs(130),
            backlog: 4096,
        }
    }
}

impl Tuning {
    /// The public listener's bounds.
    pub(crate) fn public(
        &self,
        workers: usize,
        (connections, per_address): (usize, usize),
        closing_time: Duration,
    ) -> ListenerLimits {
        ListenerLimits {
            workers,
            connections,
            per_address,
            backlog: self.backlog,
            head_time: self.head_time,
            keep_alive: self.keep_alive,
            closing_time,
        }
    }

    /// The admin listener's: one operator and one scraper.
    pub(crate) fn admin(&self) -> ListenerLimits {
        let closing_time = Duration::from_secs(1);
        ListenerLimits {
            backlog: 64,
            ..self.public(1, (64, 64), closing_time)
        }
    }
}

/// Bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenerLimits {
    /// Threads.
    pub(crate) workers: usize,
    /// Connections at the same time, over all workers; more wait in the kernel's queue.
    pub(crate) connections: usize,
    /// Of those, how many one peer may have that is no trusted proxy. The admin listener doesn't ask.
    pub(crate) per_address: usize,
    /// Connections that the kernel holds until a worker takes them.
    pub(crate) backlog: u32,
    /// How long a request's head may take.
    pub(crate) head_time: Duration,
    /// How long an idle connection is kept.
    pub(crate) keep_alive: Duration,
    /// How long connections may take to finish when the listener closes.
    pub(crate) closing_time: Duration,
}

/// Binds the public listener.
pub(crate) fn bind(
    address: SocketAddr,
    limits: ListenerLimits,
    services: Data<Services>,
    upgrades: Option<Arc<Upgrades>>,
) -> io::Result<Bound> {
    let observer = observer(&services, "public");
    let endpoint = upgrades.clone().map(Data::from);
    let peers = Peers::new(
        limits.per_address,
        services.proxies.clone(),
        services.authority.clone(),
    );
    server::bind(address, limits, observer, Some(peers), upgrades, move |config| {
        config.app_data(services.clone());
        if let Some(endpoint) = &endpoint {
            config.app_data(endpoint.clone());
        }
        routes(config);
    })
}

/// What the middleware needs, out of the services.
pub(crate) fn observer(services: &Services, listener: &'static str) -> Observer {
    Observer {
        clock: services.clock.clone(),
        entropy: services.entropy.clone(),
        lifecycle: services.lifecycle.clone(),
        listener,
    }
}

/// The public routes. A test holds them against the OpenAPI document.
fn routes(config: &mut ServiceConfig) {
    for (_, resource) in resources() {
        config.service(resource);
    }
}

/// Every path and what answers there. Nothing public is registered anywhere else.
fn resources() -> [(&'static str, Resource); 13] {
    let enrollment = web::delete().to(enroll::withdraw);
    let (one_session, session) = only(
        "GET, HEAD, DELETE",
        "/v1/signal/sessions/{id}",
        readable().to(sessions::show),
    );
    [
        post("/v1/enroll", web::post().to(enroll::enroll)),
        post("/v1/keys/rotate", web::post().to(enroll::rotate)),
        only("DELETE", "/v1/enrollment", enrollment),
        get("/v1/capabilities", readable().to(capabilities::capabilities)),
        post("/v1/push", web::post().to(push::push)),
        post("/v1/push/batch", web::post().to(batch::push_batch)),
        get(upgrade::PATH, readable().to(signal::refuse)),
        post("/v1/signal/sessions", web::post().to(sessions::create)),
        (one_session, session.route(web::delete().to(sessions::end))),
        get("/api/health", readable().to(health::api_health)),
        get("/livez", readable().to(health::livez)),
        get("/readyz", readable().to(health::readyz)),
        get("/openapi.json", readable().to(openapi::document)),
    ]
}

/// GET, and HEAD as the same without its body.
pub(crate) fn readable() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

pub(crate) fn get(path: &'static str, route: Route) -> (&'static str, Resource) {
    only("GET, HEAD", path, route)
}

pub(crate) fn post(path: &'static str, route: Route) -> (&'static str, Resource) {
    only("POST", path, route)
}

/// One path with one route; every other method is a 405 that names `allow`.
pub(crate) fn only(allow: &'static str, path: &'static str, route: Route) -> (&'static str, Resource) {
    let refuse = move || async move { Err::<HttpResponse, _>(ApiError::method_not_allowed(allow)) };
    (
        path,
        web::resource(path).route(route).default_service(web::to(refuse)),
    )
}

pub(crate) async fn no_route() -> Result<HttpResponse, ApiError> {
    Err(ApiError::no_route())
}
