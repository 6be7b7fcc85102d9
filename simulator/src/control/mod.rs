//! The simulators over HTTP, so that a person or a program in any language can command the binary.
//!
//! Plain HTTP/1.1 on loopback, JSON both ways; errors are `{"error": "..."}`. The routes are [`ROUTES`], which the
//! program's help and every 404 show.
//!
//! A behaviour is `{"delayMs"?, "deliver"?, "ending"}`, an ending one of `{"kind": "accept"}`,
//! `{"kind": "answer", "status", "headers"?, "body"?, "bare"?, "pace"?}`, `{"kind": "never"}`,
//! `{"kind": "resetStream", "code"}`, `{"kind": "killConnection"}`, `{"kind": "killBeforeReading"}`: the JSON of
//! [`crate::Behaviour`]. A device that is gone, once:
//!
//! ```text
//! curl -d '{"times":1,"behaviour":{"ending":{"kind":"answer","status":410,
//!   "body":"{\"reason\":\"Unregistered\",\"timestamp\":1800000000000}"}}}' http://127.0.0.1:4110/apns/script
//! ```
//!
//! A rule may name a device, or a connection by its number, from 1 in the order of their coming. A front end of APNs that
//! has lost what is behind it, while other connections are well: `{"connection": 1, "behaviour": {"ending": {"kind":
//! "resetStream", "code": 7}}}`.
//!
//! Requests whose `Host` is no loopback name are refused, so that a web page can't reach it through a name of its own.

mod routes;

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use crate::{Simulators, error::SimulatorError};

/// What there is; `{provider}` is `apns`, `apns-sandbox`, `fcm` or `wns`.
pub const ROUTES: [&str; 18] = [
    "GET /environment: the relay's environment, {\"NAME\": \"value\"}",
    "POST /clock {\"advanceSeconds\": 3600}: JWTs and OAuth tokens age",
    "POST /{provider}/devices: a fresh device or channel, {\"device\": \"...\"}",
    "GET /{provider}/inbox: what devices got, {\"total\", \"dropped\", \"items\"}",
    "DELETE /{provider}/inbox: forgets it",
    "GET /{provider}/requests: every notification request and its answer",
    "DELETE /{provider}/requests: forgets them",
    "GET /{provider}/stats: counters",
    "POST /{provider}/script {\"device\"?, \"connection\"?, \"times\"?, \"behaviour\"}: a rule for requests to come",
    "DELETE /{provider}/script: clears all rules",
    "POST /{provider}/blackhole {\"open\"?: true, \"new\"?: true}: open connections, or new ones too, freeze; each word \
     holds until it is said to be false",
    "POST /{provider}/refuse {\"refuse\": true}: dialing fails, or works again with false",
    "POST /{provider}/kill: cuts the open connections",
    "POST /apns/goaway {\"reason\": \"Shutdown\", \"lastStreamId\"?}: also apns-sandbox",
    "POST /apns/stream-limit {\"limit\": 10}: also apns-sandbox",
    "POST /fcm/expire-tokens: bearer tokens are worthless from now on; also wns",
    "POST /fcm/oauth-script: a rule for the token endpoint; also wns",
    "DELETE /fcm/oauth-script: clears them",
];

/// Largest command: a behaviour with a large body in it.
const MAX_COMMAND_BYTES: usize = 1024 * 1024;
/// Connections at the same time: a person, a browser and some scripts.
const MAX_CONNECTIONS: usize = 64;

/// The running control server. Dropping it ends it.
#[derive(Debug)]
pub struct Control {
    port: u16,
    task: JoinHandle<()>,
}

impl Control {
    /// Binds `port` on loopback; 0 lets the system choose. `environment` is what `GET /environment` shows.
    pub async fn start(
        port: u16,
        simulators: Arc<Simulators>,
        environment: Vec<(String, String)>,
    ) -> Result<Self, SimulatorError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        let context = Arc::new(Context {
            simulators,
            environment,
        });
        Ok(Self {
            port,
            task: tokio::spawn(accept(listener, context)),
        })
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends and joins it.
    pub async fn stop(mut self) {
        self.task.abort();
        // Aborted is what was asked for.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Pause after a failed accept, so that a lasting error doesn't spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What requests are answered from.
struct Context {
    simulators: Arc<Simulators>,
    environment: Vec<(String, String)>,
}

/// An answer: a status, and JSON unless it is 204.
type Answer = (StatusCode, Value);

fn failure(status: StatusCode, message: &str) -> Answer {
    (status, json!({ "error": message }))
}

async fn accept(listener: TcpListener, context: Arc<Context>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => _ = connections.spawn(serve(stream, Arc::clone(&context))),
                Err(error) => {
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, context: Arc<Context>) {
    let service = service_fn(|request| answer(Arc::clone(&context), request));
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "control connection ended");
    }
}

async fn answer(
    context: Arc<Context>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, http::Error> {
    let (status, body) = decide(&context, request).await;
    let response = Response::builder().status(status);
    if status == StatusCode::NO_CONTENT {
        return response.body(Full::default());
    }
    response
        .header("content-type", "application/json")
        .body(Full::from(body.to_string()))
}

async fn decide(context: &Context, request: Request<Incoming>) -> Answer {
    if !is_loopback(request.headers().get("host")) {
        return failure(StatusCode::FORBIDDEN, "ask for localhost or a loopback address");
    }
    let (head, body) = request.into_parts();
    match Limited::new(body, MAX_COMMAND_BYTES).collect().await {
        Ok(body) => routes::route(context, &head, &body.to_bytes()).await,
        Err(_) => failure(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large or was cut"),
    }
}

fn is_loopback(host: Option<&http::HeaderValue>) -> bool {
    let authority = host.and_then(|host| http::uri::Authority::try_from(host.as_bytes()).ok());
    authority.is_some_and(|authority| matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]"))
}
