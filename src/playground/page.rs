//! Serves the playground's page, on which two browser tabs shake hands through the relay.
//!
//! [`super::run`] starts it beside the relay. It is the instance of the tour as far as the page is concerned: it makes
//! sessions over the relay's public API with a key that the page never sees. The page dials a [`Wire`] for each side,
//! which this listener cuts when asked. Its sources are in `web/page/`; what is embedded here is built from them.
//!
//! Invariant: only the page itself is answered. A request that names another host (DNS rebinding) or that another
//! site's page sends is as unknown as any wrong path.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use actix_web::{
    App, HttpResponse, HttpServer,
    dev::ServerHandle,
    guard::{self, Guard},
    http::header,
    middleware::DefaultHeaders,
    web::{self, Data, ServiceConfig},
};
use anyhow::Context as _;
use reqwest::StatusCode;
use serde_json::json;
use sovereign_relay_protocol::signal::id::{SessionId, Slot};
use tokio::task::JoinHandle;

use super::{
    stage::Stage,
    wire::{Disturbance, Wire},
};

/// What the page is made of: path, type, text.
const FILES: [(&str, &str, &str); 5] = [
    (
        "/",
        "text/html; charset=utf-8",
        include_str!("../../web/page/index.html"),
    ),
    (
        "/page.css",
        "text/css; charset=utf-8",
        include_str!("../../web/page/page.css"),
    ),
    (
        "/icon.svg",
        "image/svg+xml",
        include_str!("../../web/page/icon.svg"),
    ),
    (
        "/page.js",
        "text/javascript; charset=utf-8",
        include_str!("../../web/page/dist/page.js"),
    ),
    (
        "/sovereign-relay.js",
        "text/javascript; charset=utf-8",
        include_str!("../../web/dist/sovereign-relay.js"),
    ),
];
/// The longest that a session may live: a person wants to look around.
const SESSION_SECONDS: u32 = 600;
/// The button says so.
const REFUSAL: Duration = Duration::from_secs(5);

/// The page's listener and its wires.
pub(super) struct Page {
    /// Where a browser finds it.
    pub(super) url: String,
    server: ServerHandle,
    task: JoinHandle<io::Result<()>>,
}

/// What the handlers work with.
struct Backend {
    http: reqwest::Client,
    sessions_url: String,
    instance_key: String,
    wires: [Wire; 2],
}

impl Page {
    /// Serves the page on a free loopback port.
    pub(super) async fn start(stage: &Stage) -> anyhow::Result<Self> {
        let relay = stage.relay.public_addr;
        let wires = [Wire::start(relay).await?, Wire::start(relay).await?];
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).context("no port for the page")?;
        let address = listener.local_addr()?;
        let policy = policy(address, &wires);
        let backend = Data::from(Arc::new(Backend {
            http: stage.http.clone(),
            sessions_url: format!("{}/v1/signal/sessions", stage.url()),
            instance_key: stage.instance.instance_key.clone(),
            wires,
        }));
        let app = move || {
            App::new()
                .app_data(backend.clone())
                .wrap(headers(&policy))
                .configure(|services| routes(services, address))
        };
        let server = HttpServer::new(app)
            .workers(1)
            .disable_signals()
            .listen(listener)?
            .run();
        Ok(Self {
            url: format!("http://{address}/"),
            server: server.handle(),
            task: tokio::spawn(server),
        })
    }

    /// Stops it, and with it the wires.
    pub(super) async fn stop(self) {
        self.server.stop(false).await;
        let _ended = self.task.await;
    }
}

impl Backend {
    fn wire(&self, slot: Slot) -> &Wire {
        let [a, b] = &self.wires;
        match slot {
            Slot::A => a,
            Slot::B => b,
        }
    }
}

/// Nothing from elsewhere, nothing inline, no other socket than the two wires.
fn policy(address: SocketAddr, wires: &[Wire; 2]) -> String {
    let [a, b] = wires.each_ref().map(|wire| wire.address);
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src http://{address} ws://{a} ws://{b}; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn headers(policy: &str) -> DefaultHeaders {
    DefaultHeaders::new()
        .add((header::CONTENT_SECURITY_POLICY, policy))
        .add((header::REFERRER_POLICY, "no-referrer"))
        .add((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .add((header::CACHE_CONTROL, "no-store"))
        .add(("cross-origin-opener-policy", "same-origin"))
}

fn routes(services: &mut ServiceConfig, address: SocketAddr) {
    for (path, kind, text) in FILES {
        let answer = move || async move { HttpResponse::Ok().content_type(kind).body(text) };
        services.route(path, web::get().guard(own_host(address)).to(answer));
    }
    services
        .route("/wires", web::get().guard(own_host(address)).to(show_wires))
        .route("/sessions", own_post(address).to(make_session))
        .route("/sessions/{id}/end", own_post(address).to(end_session))
        .route("/wires/{slot}/cut", own_post(address).to(cut))
        .route("/wires/refuse", own_post(address).to(refuse));
}

/// Addressed to this listener by its address.
fn own_host(address: SocketAddr) -> impl Guard {
    let host = address.to_string();
    guard::fn_guard(move |context| {
        let named = context.head().headers().get(header::HOST);
        named.is_some_and(|named| named.as_bytes() == host.as_bytes())
    })
}

/// Sent by a page of this listener: a browser names the origin of every POST.
fn own_post(address: SocketAddr) -> actix_web::Route {
    let origin = format!("http://{address}");
    web::post()
        .guard(own_host(address))
        .guard(guard::fn_guard(move |context| {
            let named = context.head().headers().get(header::ORIGIN);
            named.is_some_and(|named| named.as_bytes() == origin.as_bytes())
        }))
}

/// What each side dials.
async fn show_wires(backend: Data<Backend>) -> HttpResponse {
    let url = |slot| format!("ws://{}/v1/signal", backend.wire(slot).address);
    HttpResponse::Ok().json(json!({ "a": url(Slot::A), "b": url(Slot::B) }))
}

/// Passes the relay's answer on as it is.
async fn make_session(backend: Data<Backend>) -> HttpResponse {
    let request = backend
        .http
        .post(&backend.sessions_url)
        .bearer_auth(&backend.instance_key)
        .json(&json!({ "ttlSeconds": SESSION_SECONDS }));
    let answered = async {
        let response = request.send().await?;
        let status = response.status();
        Ok::<_, reqwest::Error>((status, response.json::<serde_json::Value>().await?))
    };
    match answered.await {
        Ok((status, body)) if status.is_success() => HttpResponse::Created().json(body),
        Ok((_, body)) => HttpResponse::BadGateway().json(body),
        Err(_) => HttpResponse::BadGateway().json(json!({ "message": "the relay did not answer" })),
    }
}

/// One that is over already is ended, too.
async fn end_session(backend: Data<Backend>, id: web::Path<SessionId>) -> HttpResponse {
    let request = backend
        .http
        .delete(format!("{}/{id}", backend.sessions_url))
        .bearer_auth(&backend.instance_key);
    match request.send().await.map(|response| response.status()) {
        Ok(StatusCode::NO_CONTENT | StatusCode::NOT_FOUND) => HttpResponse::NoContent().finish(),
        Ok(_) | Err(_) => HttpResponse::BadGateway().finish(),
    }
}

async fn cut(backend: Data<Backend>, slot: web::Path<Slot>) -> HttpResponse {
    backend.wire(*slot).disturb(Disturbance::Cut);
    HttpResponse::NoContent().finish()
}

async fn refuse(backend: Data<Backend>) -> HttpResponse {
    for wire in &backend.wires {
        wire.disturb(Disturbance::Refuse(REFUSAL));
    }
    HttpResponse::NoContent().finish()
}
