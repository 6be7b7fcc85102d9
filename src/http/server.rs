//! A listener with routes inside the frame that every request has: ids, log lines, panics, 404.
//!
//! It is what actix-web's `HttpServer` builds, put together here because a WebSocket leaves HTTP after its upgrade
//! ([`crate::ws`]), for which `HttpServer` has no way.
//!
//! ```text
//! socket -> a place? -> HTTP --asks for a WebSocket--> a handshake of the endpoint? --yes--> WebSocket
//!                        ^----------------------------- the same without asking <----no
//! ```

use std::{cell::Cell, io, net::SocketAddr, rc::Rc, sync::Arc, time::Duration};

use actix_codec::Framed;
use actix_http::{HttpService, Protocol, Request, h1};
use actix_rt::net::TcpStream;
use actix_server::Server;
use actix_service::{
    IntoServiceFactory as _, Service, ServiceFactory as _, ServiceFactoryExt as _, apply_fn_factory,
    fn_factory, fn_service, map_config,
};
use actix_web::{
    App, Error,
    body::BoxBody,
    dev::{AppConfig, ServiceRequest, ServiceResponse},
    middleware::{Next, from_fn},
    web,
    web::ServiceConfig,
};
use tokio::{io::AsyncWriteExt as _, net::TcpSocket};

use super::{
    ListenerLimits,
    context::{self, Observer},
    ending::{self, Ending},
    no_route,
    patience::{Patience, Patient, Watch},
    peers::{Peer, Peers},
    plain,
};
use crate::ws::upgrade::{self, Upgraded, Upgrades};

/// How long a connection may go on lingering after an answer that ended it early. Long enough for the answer to
/// reach a client that is still sending.
const LINGER: Duration = Duration::from_secs(1);
/// How long a client may take to read the answers before its upgrade, and the upgrade's.
const HANDOVER: Duration = Duration::from_secs(5);

type Socket = Patient<TcpStream>;

tokio::task_local! {
    /// What the connection that is being served has become. The HTTP service has no other way to say it.
    static BECAME: Cell<Option<Became>>;
    /// Whether the connection that is being served has had its last answer. The HTTP service asks for it without saying
    /// for which connection.
    static ENDING: Ending;
}

/// What becomes of a connection on which a WebSocket was asked for.
enum Became {
    WebSocket(Upgraded),
    /// HTTP once more, from the same request on.
    Http(Socket),
}

/// A bound server that is about to run.
pub(crate) struct Bound {
    /// Runs while it is polled.
    pub(crate) server: Server,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

/// Binds a listener. Without `peers`, every peer is trusted; without `upgrades`, there are no WebSockets.
pub(crate) fn bind(
    address: SocketAddr,
    limits: ListenerLimits,
    observer: Observer,
    peers: Option<Arc<Peers>>,
    upgrades: Option<Arc<Upgrades>>,
    configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
) -> io::Result<Bound> {
    let listener = listen(address, limits.backlog)?;
    let address = listener.local_addr()?;
    let builder = Server::build();
    let stops = builder.graceful_shutdown_signal();
    let patience = Patience {
        head: limits.head_time,
        idle: limits.keep_alive,
    };
    let factory = move || {
        let (observer, upgrades, stops) = (observer.clone(), upgrades.clone(), stops.clone());
        let peers = peers.clone();
        let neighbours = peers.clone();
        let app = App::new()
            .default_service(web::to(no_route))
            .configure(configure.clone())
            .wrap(from_fn(move |request, next| {
                frame(observer.clone(), neighbours.clone(), request, next)
            }))
            .into_factory()
            .map_err(|error: Error| error.error_response());
        let app = apply_fn_factory(app, ending::serve);
        let service = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stops = stops.clone();
                ending_of_this().begins(async move { stops.notified().await })
            })
            .keep_alive(limits.keep_alive)
            .client_request_timeout(limits.head_time)
            .client_disconnect_timeout(LINGER)
            .local_addr(address)
            .on_connect_ext(|socket: &Socket, data| {
                data.insert(socket.watch());
                data.insert(ending_of_this());
            })
            .upgrade(fn_service(move |(request, framed)| {
                on_upgrade(upgrades.clone(), request, framed)
            }))
            .finish(map_config(app, |()| AppConfig::default()));
        fn_factory(move || {
            let made = service.new_service(());
            let peers = peers.clone();
            async move {
                let http = Rc::new(made.await?);
                Ok::<_, ()>(fn_service(move |socket| {
                    serve(http.clone(), socket, peers.clone(), patience)
                }))
            }
        })
    };
    let server = builder
        .workers(limits.workers)
        .max_concurrent_connections((limits.connections / limits.workers.max(1)).max(1))
        .shutdown_timeout(limits.closing_time.as_secs_f64().ceil() as u64)
        .disable_signals()
        .listen("http", listener, factory)?
        .run();
    Ok(Bound { server, address })
}

/// Of the connection that the HTTP service is about to serve.
fn ending_of_this() -> Ending {
    ENDING.try_with(Ending::clone).unwrap_or_else(|_| Ending::new())
}

/// What is around every request. Its connection is not idle meanwhile.
async fn frame(
    observer: Observer,
    neighbours: Option<Arc<Peers>>,
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let _served = request.request().conn_data::<Watch>().map(Watch::serve);
    if let Some(peers) = neighbours {
        peers.notice(&request);
    }
    context::observe(observer, request, next).await
}

fn listen(address: SocketAddr, backlog: u32) -> io::Result<std::net::TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restart finds the connections of its predecessor still winding down.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)?.into_std()
}

/// Serves a connection that has a place: HTTP, and then what it has become, if it has left HTTP. It counts as one of the
/// listener's, and keeps its place, to its end.
///
/// HTTP has a box of its own that is gone before a WebSocket begins: its state is large, and actix-server keeps room for
/// what is returned here twice.
async fn serve<S>(
    http: Rc<S>,
    socket: TcpStream,
    peers: Option<Arc<Peers>>,
    patience: Patience,
) -> Result<(), S::Error>
where
    S: Service<(Socket, Protocol, Option<SocketAddr>), Response = ()>,
{
    let Some((_peer, from)) = admit(peers, &socket) else {
        return Ok(());
    };
    // Without it small answers wait for the peer's acknowledgement. A socket that refuses is about to end.
    let _ = socket.set_nodelay(true);
    let mut became = Some(Became::Http(Patient::new(socket, patience)));
    while let Some(Became::Http(socket)) = became {
        let served = ENDING.sync_scope(Ending::new(), || http.call((socket, Protocol::Http1, Some(from))));
        became = Box::pin(BECAME.scope(Cell::new(None), async move {
            served.await?;
            Ok(BECAME.with(Cell::take))
        }))
        .await?;
    }
    if let Some(Became::WebSocket(upgraded)) = became {
        upgraded.converse().await;
    }
    Ok(())
}

/// Whose connection it is, and from where, if it may stay. One that is gone already has no address.
fn admit(peers: Option<Arc<Peers>>, socket: &TcpStream) -> Option<(Peer, SocketAddr)> {
    let from = socket.peer_addr().ok()?;
    let peer = peers.map_or(Some(Peer::TRUSTED), |peers| peers.admit(from))?;
    Some((peer, from))
}

async fn on_upgrade(
    upgrades: Option<Arc<Upgrades>>,
    request: Request,
    framed: Framed<Socket, h1::Codec>,
) -> Result<(), actix_http::Error> {
    let becoming = become_of(upgrades, &request, framed);
    let became = tokio::time::timeout(HANDOVER, becoming)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    match became {
        Ok(became) => BECAME.with(|place| place.set(Some(became))),
        Err(error) => tracing::debug!(%error, "a client went away before its upgrade was answered"),
    }
    Ok(())
}

async fn become_of(
    upgrades: Option<Arc<Upgrades>>,
    request: &Request,
    framed: Framed<Socket, h1::Codec>,
) -> io::Result<Became> {
    if let Some(upgrades) = upgrades.filter(|upgrades| upgrades.takes(request)) {
        let framed = framed.into_map_io(Patient::into_socket);
        let upgraded = upgrade::accept(upgrades, request, framed).await?;
        return Ok(Became::WebSocket(upgraded));
    }
    let mut parts = framed.into_parts();
    parts.io.write_all(&parts.write_buf).await?;
    let mut unread = plain::head(request);
    unread.extend_from_slice(&parts.read_buf);
    Ok(Became::Http(parts.io.again(unread)))
}
