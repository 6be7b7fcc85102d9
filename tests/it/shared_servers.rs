//! Replicas whose Redis changes under them: a master dies, or is superseded, and a copy takes over; the slots of a
//! Cluster move. What was acknowledged and had a copy arrives once and in order; what had none is never missed silently.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use sovereign_relay_simulator::{SimulatorOptions, Simulators};
use tempfile::TempDir;

use crate::support::{
    answer::Instance,
    grown::grown_instance,
    peer::{Dial, Peer},
    redis::{Server, Watched},
    relay::{Relay, RelayOptions},
    sessions::Made,
    talk::talk_through,
    until,
};

mod cluster;
mod failover;
mod lost;
mod pushes;
mod records;
mod valkey;

/// Sessions that talk at the same time.
const SESSIONS: usize = 6;
/// Messages that each session hears before something happens, and afterwards.
const SOME: usize = 10;

const ADMIN_TOKEN: &str = "an-admin-token-that-all-replicas-have";

/// How long Sentinels may take: some elections in which their votes split.
const ELECTIONS: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Two replicas, an instance of both, and the providers that they push to.
struct Replicas {
    relays: Vec<Relay>,
    instance: Instance,
    simulators: Simulators,
    options: RelayOptions,
    _ca_dir: TempDir,
}

impl Replicas {
    async fn of(redis_url: &str) -> Self {
        Self::with(
            redis_url,
            RelayOptions::new().set("RELAY_PUSHES_PER_MINUTE", "100000"),
        )
        .await
    }

    async fn with(redis_url: &str, options: RelayOptions) -> Self {
        let simulators = Simulators::start(SimulatorOptions::default()).await.unwrap();
        let ca_dir = TempDir::new().unwrap();
        let ca_file = simulators.write_ca(ca_dir.path()).unwrap();
        let options = options
            .with_grown_instances()
            .set("RELAY_ADMIN_TOKEN", ADMIN_TOKEN)
            .set("REDIS_URL", redis_url)
            .under(simulators.relay_environment(&ca_file));
        let relays = join_all([(); 2].map(|()| ready(options.clone()))).await;
        Self {
            relays,
            instance: grown_instance(),
            simulators,
            options,
            _ca_dir: ca_dir,
        }
    }

    /// One more, which starts with nothing in memory.
    async fn newcomer(&self) -> Relay {
        ready(self.options.clone()).await
    }

    /// Waits until all have left the last master for this one, each with the connection of its records and that of its
    /// sessions.
    async fn have_found(&self, master: &Server) {
        until("all have found it", async || {
            let channels = master.answer(&["PUBSUB", "CHANNELS", "relay:*"]);
            channels.lines().count() == 2 * self.relays.len()
        })
        .await;
        for relay in &self.relays {
            until("redis is there", async || !is_degraded(relay).await).await;
        }
    }

    async fn session(&self) -> Made {
        self.relays[0].open_session(&self.instance).await
    }

    fn urls(&self) -> [String; 2] {
        [0, 1].map(|relay| {
            let url: &String = &self.relays[relay].url;
            format!("{}/v1/signal", url.replacen("http", "ws", 1))
        })
    }

    /// The session as it is reached through one of the replicas.
    fn at(&self, relay: usize, session: &Made) -> Made {
        let [one, other] = self.urls();
        Made {
            url: if relay == 0 { one } else { other },
            ..session.clone()
        }
    }

    /// Peers of some sessions talk, and pushes are sent, while something happens, and afterwards: everything arrives,
    /// once and in order, and no session ends.
    async fn talk_while<T>(&self, event: impl AsyncFnOnce(&[Made]) -> T) -> T {
        let sessions = join_all([(); SESSIONS].map(|()| self.session())).await;
        let (heard, stop) = ([const { AtomicUsize::new(0) }; SESSIONS], AtomicBool::new(false));
        let pushed = [const { AtomicUsize::new(0) }; 2];
        let [one, other] = &self.urls();
        let talking = sessions
            .iter()
            .zip(&heard)
            .map(|(session, heard)| talk_through([one, other], session, heard, &stop));
        let happening = async {
            more(&heard, &pushed).await;
            let before = counts(&pushed);
            let outcome = event(&sessions).await;
            more(&heard, &pushed).await;
            stop.store(true, Ordering::SeqCst);
            (before, outcome)
        };
        let (_, pushes, (before, outcome)) =
            tokio::join!(join_all(talking), self.push_on(&pushed, &stop), happening);
        self.were_delivered_once(&pushes, &before).await;
        outcome
    }
}

/// A relay that has Redis.
async fn ready(options: RelayOptions) -> Relay {
    let relay = Relay::start(options).await;
    // The kit's admin calls read it where a single node keeps its own.
    std::fs::write(relay.data_dir().join("admin-token"), ADMIN_TOKEN).unwrap();
    until("redis is there", async || !is_degraded(&relay).await).await;
    relay
}

/// Waits until each session has heard some messages more, and each replica has sent some pushes more.
async fn more(heard: &[AtomicUsize], pushed: &[AtomicUsize]) {
    let now = || [counts(heard), counts(pushed)].concat();
    let then = now();
    until("all go on", async || {
        now().iter().zip(&then).all(|(now, then)| *now >= then + SOME)
    })
    .await;
}

fn counts(counters: &[AtomicUsize]) -> Vec<usize> {
    let counts = counters.iter().map(|counter| counter.load(Ordering::SeqCst));
    counts.collect()
}

/// Whether a relay says that Redis is away.
async fn is_degraded(relay: &Relay) -> bool {
    relay.get("/readyz").await.body.to_string().contains("redis")
}

/// Waits until all copies have what the master has.
fn copied(watched: &Watched) {
    let replicas = watched.replicas.len().to_string();
    // Copies take all writes in their order, so one more is the last that they take.
    let lines = format!("SET marker 1\nWAIT {replicas} 60000\n");
    let answers = watched.master.answers(&lines);
    assert!(answers.ends_with(&format!("{replicas}\n")), "{answers}");
}

/// A server that is about to die takes no writes any more, and its copies have all that it took. (A process that dies
/// anywhere may have answered what it has not sent to a copy yet, a few microseconds later.)
async fn falls_silent(master: &Server, copies: impl Iterator<Item = &Server> + Clone) {
    master.answer(&["CLIENT", "PAUSE", "600000", "WRITE"]);
    until("the copies have all", async || {
        let written = offset(master, "master_repl_offset:");
        copies
            .clone()
            .all(|copy| offset(copy, "slave_read_repl_offset:") == written)
    })
    .await;
}

/// How far a server has come with what is replicated.
fn offset(server: &Server, field: &str) -> u64 {
    let told = server.answer(&["INFO", "replication"]);
    let offset = told.lines().find_map(|line| line.strip_prefix(field));
    offset.expect("an offset").parse().unwrap()
}

/// Cuts the copies off, so that the master has writes to itself.
fn cut_off(watched: &Watched) {
    watched.replicas.iter().for_each(Server::freeze);
    watched.master.answer(&["CLIENT", "KILL", "TYPE", "replica"]);
    watched
        .master
        .until("connected_slaves:0", &["INFO", "replication"]);
}

/// The master dies with what only it has, and a copy takes over.
async fn die(watched: &mut Watched) {
    watched.master.kill();
    watched.replicas.iter().for_each(Server::thaw);
    moved(watched).await;
}

/// Waits until Sentinels name another master. When their votes split, they vote again after twelve seconds.
async fn moved(watched: &Watched) {
    let moved = async || loop {
        if watched.has_moved() {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
    let waited = tokio::time::timeout(ELECTIONS, moved()).await;
    assert!(waited.is_ok(), "no other master");
}

/// Two peers, one at each replica.
async fn pair(replicas: &Replicas, session: &Made, a: Dial, b: Dial) -> [Peer; 2] {
    let (a, _) = replicas.at(0, session).join("a", a).await;
    let (b, _) = replicas.at(1, session).join("b", b).await;
    [a, b]
}

/// Sends a message until it is stored.
async fn send_until_stored(peer: &mut Peer, n: u64) {
    loop {
        peer.message(n, &n.to_string()).await;
        loop {
            let frame = peer.next().await;
            if frame["t"] == "ack" && frame["n"] == n {
                return;
            } else if frame["t"] == "err" {
                assert_eq!((&frame["code"], &frame["n"]), (&"unavailable".into(), &n.into()));
                break;
            }
        }
        // No sooner than it was asked for.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// The next message that a peer gets is this.
async fn hears(peer: &mut Peer, seq: u64) {
    let message = peer.next_of("msg").await;
    assert_eq!(
        (&message["seq"], &message["d"]),
        (&seq.into(), &seq.to_string().into())
    );
}
