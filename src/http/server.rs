//! A listener with routes inside the frame that every request has: ids, log lines, panics, 404.
//!
//! It is what actix-web's `HttpServer` builds, put together here because a WebSocket leaves HTTP after its upgrade
//! ([`crate::ws`]), for which `HttpServer` has no way.

use std::{io, net::SocketAddr, sync::Arc};

use actix_codec::Framed;
use actix_http::{HttpService, Request, h1};
use actix_rt::net::TcpStream;
use actix_server::Server;
use actix_service::{IntoServiceFactory as _, ServiceFactoryExt as _, fn_service, map_config};
use actix_web::{App, dev::AppConfig, middleware::from_fn, web, web::ServiceConfig};
use sovereign_relay_actors::ports::Entropy;
use tokio::net::TcpSocket;

use super::{
    ListenerLimits,
    context::{self, Observer},
    no_route,
};
use crate::ws::upgrade::{self, Upgrades};

/// How long a connection may go on lingering after an answer that ended it early. Long enough for the answer to
/// reach a client that is still sending.
const LINGER: std::time::Duration = std::time::Duration::from_secs(1);

/// A bound server that is about to run.
pub(crate) struct Bound {
    /// Runs while it is polled.
    pub(crate) server: Server,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

/// Binds a listener. Without `upgrades`, every WebSocket is refused as any unknown path.
pub(crate) fn bind(
    address: SocketAddr,
    limits: ListenerLimits,
    observer: Observer,
    upgrades: Option<Arc<Upgrades>>,
    configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
) -> io::Result<Bound> {
    let listener = listen(address, limits.backlog)?;
    let address = listener.local_addr()?;
    let builder = Server::build();
    let stops = builder.graceful_shutdown_signal();
    let factory = move || {
        let (observer, upgrades, stops) = (observer.clone(), upgrades.clone(), stops.clone());
        let entropy = observer.entropy.clone();
        let app = App::new()
            .configure(configure.clone())
            .default_service(web::to(no_route))
            .wrap(from_fn(move |request, next| {
                context::observe(observer.clone(), request, next)
            }))
            .into_factory()
            .map_err(|error: actix_web::Error| error.error_response());
        HttpService::build()
            .graceful_shutdown_signal(move || {
                let stops = stops.clone();
                async move { stops.notified().await }
            })
            .keep_alive(limits.keep_alive)
            .client_request_timeout(limits.head_time)
            .client_disconnect_timeout(LINGER)
            .tcp_nodelay(true)
            .local_addr(address)
            .upgrade(fn_service(move |(request, framed)| {
                on_upgrade(upgrades.clone(), entropy.clone(), request, framed)
            }))
            .finish(map_config(app, |()| AppConfig::default()))
            .tcp()
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

async fn on_upgrade(
    upgrades: Option<Arc<Upgrades>>,
    entropy: Arc<dyn Entropy>,
    request: Request,
    framed: Framed<TcpStream, h1::Codec>,
) -> Result<(), actix_http::Error> {
    upgrade::serve(upgrades, &*entropy, request, framed).await;
    Ok(())
}
