//! One connection to Redis, whatever its shape, made again whenever it is lost.
//!
//! ```text
//!             connected, takes writes, subscribed
//! connecting ----------------------> live ---> a call or a push says that it is broken, nothing was heard for 4 s, or
//!                                                Sentinels name another master
//!     ^  \-- failed: wait, at most 1 s                                 |
//!     \----------------------------------------------------------------/
//! ```
//!
//! A server counts as connected only once it has taken a write: one that loads its file, follows another or can't save
//! would refuse all that is asked of it.
//!
//! Calls are never queued for a connection that is not there: they fail at once, and their callers know what to do.
//! Everything goes over one multiplexed RESP3 connection (to each node of a Cluster), the subscription too: where it is
//! lost, so are news, which [`Event::Connected`] says.

use std::{
    future::pending,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures_util::FutureExt as _;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, Pipeline, ProtocolVersion,
    PushInfo, PushKind, RedisError, RedisFuture, RedisResult, ScriptInvocation, ServerErrorKind, Value,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClientBuilder,
    cluster_async::ClusterConnection,
};
use sovereign_relay_actors::ports::StoreError;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};

use super::url::{RedisUrl, Shape, tcp};

/// Between attempts to connect, doubled from the first to the last: short, because peers wait; not shorter, because
/// all replicas come at the same time.
const RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// A key that never is: to delete it tells whether a server takes writes, also one whose memory is full.
const PROBE: &str = "relay:probe";
/// Calls under way at the same time on one connection; more wait for their turn, at most [`Patience::call`].
const PIPELINE: usize = 1024;
/// Events that were not taken yet. Beyond, the connection is made anew, and with it everything is read again.
pub(crate) const EVENTS: usize = 8192;

/// How long Redis is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// A call takes no longer. A healthy server answers in a millisecond; a peer waits no longer for its `err`.
    pub(crate) call: Duration,
    /// A connection is made and subscribed within this.
    pub(crate) connect: Duration,
    /// A subscription on which nothing came for so long is dead: each replica publishes to itself every second.
    pub(crate) silence: Duration,
}

impl Patience {
    pub(crate) const USUAL: Self = Self {
        call: Duration::from_secs(2),
        connect: Duration::from_secs(3),
        silence: Duration::from_secs(4),
    };
}

/// A handle; clones are the same.
#[derive(Clone)]
pub(crate) struct Redis {
    url: RedisUrl,
    channel: Arc<str>,
    live: Arc<watch::Sender<Option<Live>>>,
}

/// What happens to the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// It was made, and hears the channel from now on. What was published before is lost.
    Connected,
    /// Somebody published this.
    Message(String),
}

/// A connection that works, as far as is known.
#[derive(Clone)]
struct Live {
    wire: Wire,
    broken: Arc<Broken>,
    heard: Arc<Notify>,
    /// Which server Sentinels named.
    master: Option<ConnectionAddr>,
}

/// Says that a connection is no good any more, and why where a call has found out.
#[derive(Default)]
struct Broken {
    found: Notify,
    cause: OnceLock<String>,
}

#[derive(Clone)]
enum Wire {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Redis {
    /// Nothing is connected before [`Redis::keep`].
    pub(crate) fn new(url: RedisUrl, channel: String) -> Self {
        Self {
            url,
            channel: channel.into(),
            live: Arc::new(watch::Sender::new(None)),
        }
    }

    /// Whether Redis is there.
    pub(crate) fn is_up(&self) -> bool {
        self.live.borrow().is_some()
    }

    /// Runs a script, which is sent along where the server doesn't know it.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let mut live = self.live()?;
        let outcome = timeout(self.url.patience.call, script.invoke_async(&mut live.wire)).await;
        live.judged(outcome.unwrap_or_else(|_| Err(too_slow())))
    }

    /// Sends one command.
    pub(crate) async fn send<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let mut live = self.live()?;
        let outcome = timeout(self.url.patience.call, command.query_async(&mut live.wire)).await;
        live.judged(outcome.unwrap_or_else(|_| Err(too_slow())))
    }

    fn live(&self) -> Result<Live, StoreError> {
        let live = self.live.borrow().clone();
        live.ok_or_else(|| StoreError("redis is not connected".to_owned()))
    }

    /// Connects, and connects again, until it is dropped.
    pub(crate) async fn keep(&self, events: mpsc::Sender<Event>) {
        let mut wait = RETRY.0;
        let mut is_told = false;
        // Who kept it before may have left one.
        self.live.send_replace(None);
        loop {
            match timeout(self.url.patience.connect, self.connect(&events)).await {
                Ok(Ok(live)) => {
                    info!("redis is connected");
                    (wait, is_told) = (RETRY.0, false);
                    self.live.send_replace(Some(live.clone()));
                    if events.send(Event::Connected).await.is_ok() {
                        tokio::select! {
                            () = live.ends(self.url.patience.silence) => {}
                            () = self.moves(live.master.as_ref()) => info!("sentinels name another master"),
                        }
                    }
                    self.live.send_replace(None);
                    warn!(cause = live.broken.cause.get(), "the connection to redis is lost");
                }
                // Once for each outage; `/readyz` and a gauge say how long it lasts.
                Ok(Err(error)) if !is_told => {
                    is_told = true;
                    warn!(cause = shown(&error), "redis can't be reached or takes no writes");
                }
                Ok(Err(error)) => debug!(cause = shown(&error), "redis still can't be used"),
                Err(_) if !is_told => {
                    is_told = true;
                    warn!("redis does not answer");
                }
                Err(_) => debug!("redis still does not answer"),
            }
            sleep(wait).await;
            wait = (wait * 2).min(RETRY.1);
        }
    }

    async fn connect(&self, events: &mpsc::Sender<Event>) -> RedisResult<Live> {
        let (broken, heard) = (Arc::<Broken>::default(), Arc::new(Notify::new()));
        let listener = listener(events.clone(), broken.clone(), heard.clone());
        let (mut wire, master) = Wire::open(&self.url, listener).await?;
        redis::cmd("DEL").arg(PROBE).query_async::<()>(&mut wire).await?;
        wire.subscribe(&self.channel).await?;
        Ok(Live {
            wire,
            broken,
            heard,
            master,
        })
    }

    /// Waits until Sentinels name another master than this. Without Sentinels that never happens.
    async fn moves(&self, master: Option<&ConnectionAddr>) {
        match (&self.url.shape, master) {
            (Shape::Sentinel(sentinels), Some(master)) => {
                sentinels
                    .until_another_than(master, self.url.certificates())
                    .await;
            }
            (Shape::Single(_) | Shape::Sentinel(_) | Shape::Cluster(_), _) => pending().await,
        }
    }
}

impl Live {
    /// Waits until it is broken, or silent for so long.
    async fn ends(&self, silence: Duration) {
        let silent = async { while timeout(silence, self.heard.notified()).await.is_ok() {} };
        tokio::select! {
            () = self.broken.found.notified() => {}
            () = silent => {}
        }
    }

    fn judged<T>(&self, outcome: RedisResult<T>) -> Result<T, StoreError> {
        outcome.map_err(|error| {
            let shown = shown(&error);
            if breaks(&error) {
                // The first one knows best: what follows may be its consequence.
                let _ = self.broken.cause.set(shown.clone());
                self.broken.found.notify_one();
            }
            StoreError(shown)
        })
    }
}

/// Whether a connection is no good after this: it is gone, or leads to a server that is the master no longer, or that
/// can't save and takes no writes for that. (One whose memory is full still takes some.)
fn breaks(error: &RedisError) -> bool {
    let is_wrong_server = matches!(
        error.kind(),
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
    );
    is_wrong_server
        || error.code() == Some("MISCONF")
        || (error.is_unrecoverable_error() && !error.is_timeout())
}

/// What may be told of an error: its kind and what it means, or why bytes don't flow. Other words may quote what was sent.
fn shown(error: &RedisError) -> String {
    let why = match error.code() {
        Some(code) => format!("{} ({code})", meaning(code).unwrap_or(error.category())),
        None if error.is_io_error() => error.to_string(),
        None => error.category().to_owned(),
    };
    format!("redis: {why}")
}

/// What an administrator has to mend.
fn meaning(code: &str) -> Option<&'static str> {
    Some(match code {
        "WRONGPASS" => "user or password in REDIS_URL is wrong",
        "NOAUTH" => "it wants a password, and REDIS_URL has none",
        "NOPERM" => "its user may not do this, ACL LOG says what",
        "OOM" => "it is full, maxmemory is reached",
        "MISCONF" => "it can't write to its disk",
        "NOREPLICAS" => "fewer copies are connected than min-replicas-to-write asks for",
        _ => return None,
    })
}

fn too_slow() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

/// Takes in what the server sends by itself. Called on the connection's own task, so it never waits.
fn listener(
    events: mpsc::Sender<Event>,
    broken: Arc<Broken>,
    heard: Arc<Notify>,
) -> impl Fn(PushInfo) -> Result<(), ()> + Clone + Send + Sync + 'static {
    move |push| {
        match push.kind {
            PushKind::Disconnection | PushKind::Unsubscribe => broken.found.notify_one(),
            PushKind::Message => {
                heard.notify_one();
                if let Some(text) = message(&push.data)
                    && events.try_send(Event::Message(text)).is_err()
                {
                    broken.found.notify_one();
                }
            }
            // Nothing else was asked for.
            _ => {}
        }
        Ok(())
    }
}

/// The text of a published message; its channel is the only one.
fn message(data: &[Value]) -> Option<String> {
    match data {
        [_, Value::BulkString(text)] => String::from_utf8(text.clone()).ok(),
        _ => None,
    }
}

impl Wire {
    async fn open(
        url: &RedisUrl,
        listener: impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static,
    ) -> RedisResult<(Self, Option<ConnectionAddr>)> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(url.patience.connect))
            .set_response_timeout(Some(url.patience.call))
            .set_pipeline_buffer_size(PIPELINE);
        let certificates = url.certificates();
        match &url.shape {
            Shape::Single(info) => {
                let client = match certificates {
                    Some(certificates) => Client::build_with_tls(info.clone(), certificates)?,
                    None => Client::open(info.clone())?,
                };
                Ok((Self::single(&client, config, listener).await?, None))
            }
            Shape::Sentinel(sentinels) => {
                let client = sentinels.master(certificates).await?;
                let master = client.get_connection_info().addr().clone();
                Ok((Self::single(&client, config, listener).await?, Some(master)))
            }
            Shape::Cluster(nodes) => {
                let mut builder = ClusterClientBuilder::new(nodes.clone())
                    .use_protocol(ProtocolVersion::RESP3)
                    .tcp_settings(tcp())
                    .connection_timeout(url.patience.connect)
                    .response_timeout(url.patience.call)
                    .push_sender(listener);
                if let Some(certificates) = certificates {
                    builder = builder.certs(certificates);
                }
                Ok((
                    Self::Cluster(builder.build()?.get_async_connection().await?),
                    None,
                ))
            }
        }
    }

    async fn single(
        client: &Client,
        config: AsyncConnectionConfig,
        listener: impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static,
    ) -> RedisResult<Self> {
        let config = config.set_push_sender(listener);
        let connected = client.get_multiplexed_async_connection_with_config(&config);
        Ok(Self::Single(connected.await?))
    }

    async fn subscribe(&mut self, channel: &str) -> RedisResult<()> {
        match self {
            Self::Single(wire) => wire.subscribe(channel).await,
            Self::Cluster(wire) => wire.subscribe(channel).await,
        }
    }
}

impl ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::Single(wire) => wire.req_packed_command(command),
            Self::Cluster(wire) => wire.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::Single(wire) => wire.req_packed_commands(pipeline, offset, count),
            Self::Cluster(wire) => wire.req_packed_commands(pipeline, offset, count).boxed(),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::Single(wire) => wire.get_db(),
            Self::Cluster(wire) => wire.get_db(),
        }
    }
}
