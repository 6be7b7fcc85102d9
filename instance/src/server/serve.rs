//! `serve`: registration, sending and the page on one listener, until it is told to stop.
//!
//! ```text
//! start: database -> parts -> worker, follower -> listener
//! stop:  listener closes, requests under way end -> worker and follower end -> database closes
//! ```
//! SIGTERM or SIGINT stops in this order; a second one ends the process at once. What was not delivered by then is in the
//! outbox.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use actix_web::{
    App, HttpServer,
    dev::{Server, ServerHandle},
    middleware::from_fn,
    web::{self, Data},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};
use tracing::{error, info};

use super::{
    Context, api,
    exit::CommandError,
    output, page,
    parts::{self, Parts},
    settings::{ListenSettings, LogFormat, RelaySettings, StoreSettings},
};
use crate::{config::RelayChoice, relay::Relays, routes, store::Store};

/// One for each CPU would be many for an instance that serves a household.
const WORKERS: usize = 2;
/// How long a request under way may take once the server stops.
const STOP_SECONDS: u64 = 10;
/// Connections at a time. Apps make one at a time and close it.
const CONNECTIONS: usize = 1024;
/// A client that has not sent its head by then is cut.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How soon the word of `relay set` and `relay off` holds.
const FOLLOW: Duration = Duration::from_secs(5);

/// `serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    listen: ListenSettings,
    #[command(flatten)]
    relay: RelaySettings,
}

/// Serves until it is told to stop.
pub(crate) async fn run(args: Args, context: &Context) -> Result<(), CommandError> {
    init_logging(&args.listen)?;
    let mut signals = StopSignals::subscribe()?;
    let mut running = Running::start(&context.store, &args.relay, args.listen.listen).await?;
    output::tell(&format!("Sovereign instance at {}", running.url));
    tokio::select! {
        () = running.listener_failed() => return Err(CommandError::failed("the listener ended by itself")),
        signal = signals.next() => info!(signal, "stopping"),
    }
    tokio::select! {
        () = running.stop() => Ok(()),
        signal = signals.next() => Err(CommandError::failed(format!("{signal} came while stopping: ended at once"))),
    }
}

/// A server that serves until it is told otherwise.
pub(crate) struct Running {
    /// Where it listens.
    pub(crate) url: String,
    pub(crate) parts: Arc<Parts>,
    handle: ServerHandle,
    serving: JoinHandle<io::Result<()>>,
    stop: watch::Sender<bool>,
    worker: JoinHandle<()>,
    follower: JoinSet<()>,
}

impl Running {
    /// Opens the database, and listens once everything behind the listener works.
    pub(crate) async fn start(
        store: &StoreSettings,
        relay: &RelaySettings,
        address: SocketAddr,
    ) -> Result<Self, CommandError> {
        let configured = relay.choice()?;
        let parts = Arc::new(Parts::open(store, relay).await?);
        let (server, url) = listen(&parts, address)?;
        let (stop, stopped) = watch::channel(false);
        let mut follower = JoinSet::new();
        follower.spawn(follow(parts.store.clone(), parts.relays.clone(), configured));
        info!(%url, relay = parts.relays.current(), "serving");
        Ok(Self {
            url,
            handle: server.handle(),
            serving: tokio::spawn(server),
            stop,
            worker: tokio::spawn(parts.fan_out.clone().run(told_to_stop(stopped))),
            follower,
            parts,
        })
    }

    /// Stops from the outside in. What was not delivered by then is in the outbox.
    pub(crate) async fn stop(mut self) {
        self.handle.stop(true).await;
        self.stop.send_replace(true);
        if self.worker.await.is_err() {
            error!("the worker ended by itself");
        }
        self.follower.shutdown().await;
        self.parts.store.close().await;
        info!("stopped");
    }

    /// Returns when the listener ends, which nobody asked for.
    async fn listener_failed(&mut self) {
        let ended = (&mut self.serving).await;
        error!(?ended, "the listener ended");
    }
}

async fn told_to_stop(mut stopped: watch::Receiver<bool>) {
    // A sender that is gone has nothing more to say either.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

fn listen(parts: &Arc<Parts>, address: SocketAddr) -> Result<(Server, String), CommandError> {
    let refused = |error: io::Error| CommandError::failed(format!("{address}: {error}"));
    let listener = TcpListener::bind(address).map_err(refused)?;
    let url = format!("http://{}", listener.local_addr().map_err(refused)?);
    let parts = parts.clone();
    let app = move || {
        let accounts = Arc::new(parts.accounts.clone());
        App::new()
            .app_data(Data::from(parts.clone()))
            .wrap(from_fn(api::log_request))
            .wrap(page::headers())
            .configure(routes::mount(parts.registration.clone(), accounts.clone()))
            .configure(api::mount(accounts))
            .configure(page::mount)
            .default_service(web::to(api::nothing_here))
    };
    let server = HttpServer::new(app)
        .workers(WORKERS)
        .max_connections(CONNECTIONS)
        .client_request_timeout(HEAD_TIME)
        .shutdown_timeout(STOP_SECONDS)
        .disable_signals()
        .listen(listener)
        .map_err(refused)?
        .run();
    Ok((server, url))
}

/// Takes over which relay is used when a command has set it. While the database is away, nothing changes.
async fn follow(store: Store, relays: Arc<Relays>, configured: RelayChoice) {
    let mut turns = interval(FOLLOW);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turns.tick().await;
        match parts::choice(&store, &configured).await {
            Ok(choice) => relays.choose(choice),
            Err(error) => error!(%error, "the choice of the relay can't be read"),
        }
    }
}

fn init_logging(settings: &ListenSettings) -> Result<(), CommandError> {
    let filter = tracing_subscriber::EnvFilter::try_new(&settings.log)
        .map_err(|error| CommandError::usage(format!("SOVEREIGN_LOG: {error}")))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would say on standard error that standard error can't be written, and panic: a full disk ends no server.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    let set = match settings.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    set.map_err(CommandError::failed)
}

/// Subscribed once, so that none is missed between two waits.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn subscribe() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
