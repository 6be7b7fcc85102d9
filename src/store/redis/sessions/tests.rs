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
    _running: JoinSet<()>,
}

/// What a registry would be told.
#[derive(Default)]
struct Told {
    news: Mutex<Vec<News>>,
    ended: Mutex<Vec<SessionId>>,
    is_muted: AtomicBool,
    arrived: Notify,
}

impl Local for Told {
    fn hear(&self, news: News) {
        self.news.lock().unwrap().push(news);
        self.arrived.notify_one();
    }

    fn mute(&self, is_muted: bool) {
        self.is_muted.store(is_muted, Ordering::SeqCst);
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
            RedisUrl::parse(url).unwrap(),
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
        Self {
            store,
            told,
            _running: running,
        }
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
        read.await.unwrap().len()
    }

    /// One beat, without waiting for it.
    async fn beats(&self) {
        let dead = self.store.0.renew().await.unwrap();
        self.store.0.bury(dead, self.told.as_ref());
    }
}

const DEADLINE: Duration = Duration::from_secs(30);
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

async fn keys(url: &str) -> Vec<(String, i64)> {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
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
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let (name, rest) = words.split_first().unwrap();
    redis::cmd(name)
        .arg(rest)
        .exec_async(&mut connection)
        .await
        .unwrap();
}

#[tokio::test]
async fn what_happens_on_one_replica_is_heard_on_the_one_it_concerns() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    one.told.hears(News::Peer(ID, Slot::A)).await;
    one.append(Slot::A, a, 1).await.unwrap();
    other.told.hears(News::Mail(ID, Slot::B)).await;
    other.append(Slot::B, b, 1).await.unwrap();
    one.told.hears(News::Mail(ID, Slot::A)).await;

    let newer = other.bind(Slot::A, 1, 2).await.epoch;
    one.told.hears(News::Replaced(ID, Slot::A, newer)).await;
    assert!(matches!(one.append(Slot::A, a, 2).await, Err(Gone::Fenced)));
    assert_eq!(one.read(Slot::A, newer).await, 1);
}

#[tokio::test]
async fn peers_on_one_replica_publish_nothing() {
    let server = Server::start();
    let replica = Replica::start(&server).await;
    replica.make().await;
    let a = replica.bind(Slot::A, 1, 1).await.epoch;
    replica.bind(Slot::B, 2, 1).await;
    replica.append(Slot::A, a, 1).await.unwrap();
    replica
        .store
        .unbind(ID, Slot::A, a, Departure::Lost)
        .await
        .unwrap();
    // Published before the removal's own news, had there been any.
    assert!(replica.store.remove(ID, INSTANCE).await.unwrap());
    assert_eq!(*replica.told.news.lock().unwrap(), []);
    assert!(replica.told.ended.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_removal_waits_until_the_other_replica_is_silent() {
    let server = Server::start();
    let (one, _, other, b) = pair(&server).await;
    assert!(one.store.remove(ID, INSTANCE).await.unwrap());
    assert_eq!(*other.told.ended.lock().unwrap(), [ID]);
    assert!(matches!(other.append(Slot::B, b, 1).await, Err(Gone::NoSession)));
    assert_eq!(one.store.0.removals.len(), 0);
}

#[tokio::test]
async fn a_receiver_is_woken_again_until_it_took_everything() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    one.append(Slot::A, a, 1).await.unwrap();
    for _ in 0..2 {
        other.told.hears(News::Mail(ID, Slot::B)).await;
        other.told.forget();
        one.store.0.wake_again().await;
        one.store.0.wake_again().await;
    }
    other.told.hears(News::Mail(ID, Slot::B)).await;
    other.store.trim(ID, Slot::B, b, 1).await.unwrap();
    one.store.0.wake_again().await;
    one.store.0.wake_again().await;
    assert_eq!(one.store.0.unconfirmed.len(), 0);
}

#[tokio::test]
async fn a_replica_that_was_not_heard_of_for_5_s_is_dead_and_its_peers_are_away_until_it_is_heard_again() {
    let server = Server::start_frozen();
    let (one, _, other, b) = pair(&server).await;
    other.beats().await;
    let seen = async || one.store.peer(ID, Slot::A).await.unwrap();
    for (passes, state, changes_in) in [
        (4999, PeerState::Online, None),
        (1, PeerState::Away, Some(25_000)),
        (24_999, PeerState::Away, Some(1)),
        (1, PeerState::Left, None),
    ] {
        server.pass(Duration::from_millis(passes));
        one.beats().await;
        let presence = seen().await;
        let changes_in = changes_in.map(Duration::from_millis);
        assert_eq!(
            (presence.told.state, presence.changes_in),
            (state, changes_in),
            "{passes}"
        );
    }
    // It was only slow, and nobody took its slot.
    other.beats().await;
    one.beats().await;
    assert_eq!(seen().await.told.state, PeerState::Online);
    assert_eq!(other.append(Slot::B, b, 1).await.unwrap(), Appended::Stored);
}

#[tokio::test]
async fn bytes_are_counted_over_all_replicas() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    one.append(Slot::A, a, 1).await.unwrap();
    let bytes = one.store.mailbox_bytes();
    assert!(bytes > 0);
    one.beats().await;
    other.beats().await;
    assert_eq!(other.store.mailbox_bytes(), bytes);
    other.store.trim(ID, Slot::B, b, 1).await.unwrap();
    other.beats().await;
    one.beats().await;
    assert_eq!((one.store.mailbox_bytes(), other.store.mailbox_bytes()), (0, 0));
}

#[tokio::test]
async fn every_key_has_an_end_and_none_is_left_of_a_session_that_is_over() {
    let server = Server::start_frozen();
    let (one, a, other, b) = pair(&server).await;
    for n in 1..=3 {
        one.append(Slot::A, a, n).await.unwrap();
        other.append(Slot::B, b, n).await.unwrap();
    }
    one.beats().await;
    // A list that was empty is made anew.
    other.store.trim(ID, Slot::B, b, 3).await.unwrap();
    one.append(Slot::A, a, 4).await.unwrap();
    one.bind(Slot::A, 9, 1).await;
    let all = keys(&server.url()).await;
    assert_eq!(all.len(), 6, "{all:?}");
    assert!(all.iter().all(|(_, left)| *left > 0), "{all:?}");
    server.pass(Duration::from_secs(121));
    assert!(matches!(one.append(Slot::A, a, 5).await, Err(Gone::NoSession)));
    let left = keys(&server.url()).await;
    assert!(
        left.iter().all(|(name, _)| !name.contains(&ID.to_string())),
        "{left:?}"
    );
}

#[tokio::test]
async fn a_server_that_forgot_the_scripts_is_told_them_again() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    command(&server.url(), &["SCRIPT", "FLUSH"]).await;
    assert_eq!(one.append(Slot::A, a, 1).await.unwrap(), Appended::Stored);
    command(&server.url(), &["SCRIPT", "FLUSH"]).await;
    assert_eq!(other.read(Slot::B, b).await, 1);
}

#[tokio::test]
async fn while_the_server_is_away_nothing_is_known_and_after_its_restart_without_data_epochs_still_grow() {
    let mut server = Server::start();
    let (one, a, ..) = pair(&server).await;
    server.kill();
    let away = async || matches!(one.append(Slot::A, a, 1).await, Err(Gone::Unavailable(_)));
    assert!(away().await && away().await);
    assert!(one.store.create(asked()).await.is_err());
    assert!(matches!(
        one.store.peer(ID, Slot::A).await,
        Err(Gone::Unavailable(_))
    ));
    one.told.forget();
    server.restart();
    one.told.hears(News::Missed).await;
    assert!(matches!(one.append(Slot::A, a, 1).await, Err(Gone::NoSession)));
    one.make().await;
    assert!(matches!(one.append(Slot::A, a, 1).await, Err(Gone::Fenced)));
    assert!(one.bind(Slot::A, 1, 1).await.epoch > a);
}

#[tokio::test]
async fn a_connection_that_was_cut_is_made_again_and_says_that_news_were_missed() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    other.told.forget();
    command(
        &server.url(),
        &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"],
    )
    .await;
    command(&server.url(), &["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    for replica in [&one, &other] {
        replica.told.hears(News::Missed).await;
    }
    one.append(Slot::A, a, 1).await.unwrap();
    other.told.hears(News::Mail(ID, Slot::B)).await;
    assert_eq!(other.read(Slot::B, b).await, 1);
}

#[tokio::test]
async fn in_a_cluster_sessions_lie_on_all_nodes_and_replicas_hear_each_other() {
    let cluster = Cluster::start();
    let one = Replica::start_at(&cluster.url()).await;
    let other = Replica::start_at(&cluster.url()).await;
    for number in 0..12 {
        let new = numbered(number);
        let made = one.store.create(new).await.unwrap();
        assert!(matches!(made, Creation::Made(_)));
        let bind = |slot, connection| Bind {
            slot,
            incarnation: Incarnation(1),
            connection: ConnectionHash(connection),
            attempt: 1,
            last: 0,
        };
        let a = one.store.bind(new.id, bind(Slot::A, 1)).await.unwrap().epoch;
        let b = other.store.bind(new.id, bind(Slot::B, 2)).await.unwrap().epoch;
        let appended = one
            .store
            .append(new.id, Slot::A, a, 1, Opaque::new("hello"))
            .await;
        assert_eq!(appended.unwrap(), Appended::Stored);
        other.told.hears(News::Mail(new.id, Slot::B)).await;
        assert_eq!(
            other.store.read(new.id, Slot::B, b, 0, 99).await.unwrap().len(),
            1
        );
    }
    for node in cluster.nodes() {
        let sessions = keys(&node.url()).await;
        assert!(
            sessions
                .iter()
                .any(|(name, left)| name.contains("session:") && *left > 0)
        );
    }
    assert!(other.store.remove(numbered(3).id, INSTANCE).await.unwrap());
    assert_eq!(*one.told.ended.lock().unwrap(), [numbered(3).id]);
}

#[tokio::test]
async fn when_the_master_dies_sentinels_lead_to_the_next_one_with_all_that_it_had() {
    let mut watched = Watched::start();
    let one = Replica::start_at(&watched.url()).await;
    one.make().await;
    let a = one.bind(Slot::A, 1, 1).await.epoch;
    assert_eq!(one.append(Slot::A, a, 1).await.unwrap(), Appended::Stored);
    command(&watched.master.url(), &["WAIT", "1", "30000"]).await;
    one.told.forget();
    watched.master.kill();
    assert!(matches!(
        one.append(Slot::A, a, 2).await,
        Err(Gone::Unavailable(_))
    ));
    one.told.hears(News::Missed).await;
    assert_eq!(one.append(Slot::A, a, 2).await.unwrap(), Appended::Stored);
    let b = one.bind(Slot::B, 2, 1).await.epoch;
    assert_eq!(one.read(Slot::B, b).await, 2);
}

#[tokio::test]
async fn a_replica_that_may_be_thought_dead_writes_no_message_until_it_is_heard_again() {
    let mut server = Server::start();
    let one = Replica::start(&server).await;
    one.beats().await;
    let muted = async |is_muted| {
        let waiting = async {
            while one.told.is_muted.load(Ordering::SeqCst) != is_muted {
                one.told.arrived.notified().await;
            }
        };
        timeout(DEADLINE, waiting).await.expect("in vain");
    };
    muted(false).await;
    server.kill();
    muted(true).await;
    server.restart();
    muted(false).await;
}

#[tokio::test]
async fn when_two_replicas_store_for_one_slot_during_a_takeover_no_number_is_missing_or_given_twice() {
    let server = Server::start();
    let (one, a, other, b) = pair(&server).await;
    let old = async {
        for n in 1.. {
            match one.append(Slot::A, a, n).await {
                Ok(appended) => assert_eq!(appended, Appended::Stored),
                Err(gone) => return assert!(matches!(gone, Gone::Fenced)),
            }
        }
    };
    let new = async {
        for _ in 0..10 {
            other.read(Slot::B, b).await;
        }
        let bound = other.bind(Slot::A, 1, 2).await;
        for n in bound.next..bound.next + 10 {
            assert_eq!(
                other.append(Slot::A, bound.epoch, n).await.unwrap(),
                Appended::Stored
            );
        }
        bound.next + 10
    };
    let ((), next) = tokio::join!(old, new);
    let read = other.store.read(ID, Slot::B, b, 0, usize::MAX).await.unwrap();
    let seqs: Vec<u64> = read.iter().map(|entry| entry.seq).collect();
    assert_eq!(seqs, (1..next).collect::<Vec<_>>());
}
