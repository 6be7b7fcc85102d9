use std::{sync::Mutex, time::Duration};

use futures_util::future::ready;
use sovereign_relay_actors::session::port::{ConnectionHash, Incarnation, News, Settings};
use sovereign_relay_protocol::signal::{frame::PeerState, session::EndToEnd};
use tokio::{sync::Notify, task::JoinSet, time::timeout};

use super::*;
use crate::{
    clock::SystemClock,
    entropy::SystemEntropy,
    store::{
        redis::kit::{Cluster, Server, Watched},
        sessions::contract::{Opened, Passing, session_store_contract},
    },
};

mod replicas;
mod servers;

session_store_contract!(fresh);

/// A store on a server whose time the test moves.
async fn fresh() -> Opened {
    let server = Server::start_frozen();
    let replica = Replica::start(&server).await;
    Opened {
        store: Arc::new(replica.store.clone()),
        time: Arc::new(Hand {
            server,
            _replica: replica,
        }),
    }
}

struct Hand {
    server: Server,
    _replica: Replica,
}

impl Passing for Hand {
    fn pass(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.server.pass(time);
        ready(()).boxed()
    }
}

/// A replica, and what it is told.
struct Replica {
    store: RedisSessions,
    told: Arc<Told>,
    running: JoinSet<()>,
}

/// What a registry would be told.
#[derive(Default)]
struct Told {
    news: Mutex<Vec<News>>,
    ended: Mutex<Vec<SessionId>>,
    writes_until: Mutex<Duration>,
    arrived: Notify,
}

impl Local for Told {
    fn hear(&self, news: News) {
        self.news.lock().unwrap().push(news);
        self.arrived.notify_one();
    }

    fn write_until(&self, moment: Duration) {
        *self.writes_until.lock().unwrap() = moment;
        self.arrived.notify_one();
    }

    fn end(&self, id: SessionId) -> BoxFuture<'_, ()> {
        self.ended.lock().unwrap().push(id);
        ready(()).boxed()
    }
}

impl Told {
    /// Waits until it is told this.
    async fn hears(&self, news: News) {
        let waiting = async {
            while !self.news.lock().unwrap().contains(&news) {
                self.arrived.notified().await;
            }
        };
        let waited = timeout(DEADLINE, waiting).await;
        assert!(waited.is_ok(), "in vain: {news:?}");
    }

    fn forget(&self) {
        self.news.lock().unwrap().clear();
    }
}

impl Replica {
    async fn start(server: &Server) -> Self {
        Self::start_at(&server.url()).await
    }

    async fn start_at(url: &str) -> Self {
        let store = RedisSessions::new(
            RedisUrl::parse(url).unwrap().patient(),
            SessionBounds::default(),
            SessionRules::default(),
            Arc::new(SystemClock::new()),
            &SystemEntropy,
        );
        let mut running = JoinSet::new();
        let told = Arc::new(Told::default());
        let (kept, local) = (store.clone(), told.clone());
        running.spawn(async move { kept.run(local.as_ref()).await });
        told.hears(News::Missed).await;
        told.forget();
        Self { store, told, running }
    }

    async fn make(&self) {
        let made = self.store.create(asked()).await.unwrap();
        assert!(matches!(made, Creation::Made(_)));
    }

    async fn bind(&self, slot: Slot, connection: u128, attempt: u64) -> Bound {
        let bind = Bind {
            slot,
            incarnation: Incarnation(1),
            connection: ConnectionHash(connection),
            attempt,
            last: 0,
        };
        self.store.bind(ID, bind).await.unwrap()
    }

    async fn append(&self, slot: Slot, epoch: u64, n: u64) -> Result<Appended, Gone> {
        self.store.append(ID, slot, epoch, n, Opaque::new("hello")).await
    }

    async fn read(&self, slot: Slot, epoch: u64) -> usize {
        let read = self.store.read(ID, slot, epoch, 0, usize::MAX);
        read.await.unwrap().entries.len()
    }

    /// Reads all that waits, and acknowledges it up to `seq`.
    async fn process(&self, slot: Slot, epoch: u64, seq: u64) {
        self.read(slot, epoch).await;
        let trimmed = self.store.trim(ID, slot, epoch, seq).await.unwrap();
        assert_eq!(trimmed, Trimmed::Trimmed);
    }

    /// From now on it beats when the test says so, and not once a second besides. It must be connected.
    fn beats_no_more(&mut self) {
        self.running.abort_all();
    }

    /// One beat, without waiting for it.
    async fn beats(&self) {
        let dead = self.store.0.renew().await.unwrap();
        self.store.0.bury(dead, self.told.as_ref());
    }
}

/// As long as Sentinels may take whose votes split, or who don't trust their clocks for half a minute.
const DEADLINE: Duration = Duration::from_secs(300);
const ID: SessionId = SessionId::from_bytes([7; 16]);
const INSTANCE: InstanceId = InstanceId::from_bytes([1; 16]);

fn asked() -> NewSession {
    NewSession {
        id: ID,
        incarnation: Incarnation(1),
        instance: INSTANCE,
        is_rendezvous: false,
        settings: Settings {
            e2e: EndToEnd::Optional,
            turn: false,
        },
        life: Duration::from_secs(120),
    }
}

/// Two replicas with a peer each, at the same server.
async fn pair(server: &Server) -> (Replica, u64, Replica, u64) {
    let (one, other) = (Replica::start(server).await, Replica::start(server).await);
    one.make().await;
    let a = one.bind(Slot::A, 1, 1).await.epoch;
    let b = other.bind(Slot::B, 2, 1).await.epoch;
    (one, a, other, b)
}

/// A session of its own number, which leads to any node of a Cluster.
fn numbered(number: u8) -> NewSession {
    NewSession {
        id: SessionId::from_bytes([number; 16]),
        ..asked()
    }
}

/// A connection for the test, which waits as long as it takes.
async fn connect(url: &str) -> redis::aio::MultiplexedConnection {
    let patient = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let client = redis::Client::open(url).unwrap();
    client
        .get_multiplexed_async_connection_with_config(&patient)
        .await
        .unwrap()
}

async fn keys(url: &str) -> Vec<(String, i64)> {
    let mut connection = connect(url).await;
    let names: Vec<String> = redis::cmd("KEYS")
        .arg("*")
        .query_async(&mut connection)
        .await
        .unwrap();
    let mut keys = Vec::new();
    for name in names {
        let left = redis::cmd("PTTL")
            .arg(&name)
            .query_async(&mut connection)
            .await
            .unwrap();
        keys.push((name, left));
    }
    keys
}

async fn command(url: &str, words: &[&str]) {
    let mut connection = connect(url).await;
    let (name, rest) = words.split_first().unwrap();
    redis::cmd(name)
        .arg(rest)
        .exec_async(&mut connection)
        .await
        .unwrap();
}
