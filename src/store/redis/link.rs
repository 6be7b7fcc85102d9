//! The connection of everything but sessions: kept from the start on, before there is anybody to hear news.
//!
//! Records, limits and outcomes hear nothing that is published; they speak on a channel of their own once a second, so
//! that a connection that has fallen silent is noticed (`connection.rs`).

use std::time::Duration;

use redis::cmd;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{interval, timeout},
};

use super::{
    addresses::RedisAddresses,
    connection::{EVENTS, Redis},
    limits::RedisBudgets,
    records::RedisRecords,
    url::RedisUrl,
};
use crate::steady::steadily;

/// How often it speaks: four times before silence counts as loss.
const SPEAK: Duration = Duration::from_secs(1);
/// How often a start looks whether Redis is there.
const LOOK: Duration = Duration::from_millis(10);

/// A connection that lives as long as this.
pub struct RedisLink {
    redis: Redis,
    records: RedisRecords,
    replica: String,
    _tasks: JoinSet<()>,
}

impl RedisLink {
    /// Begins to connect. `replica`: tells this one from the others. Call it where the connection's tasks shall run.
    pub fn open(url: RedisUrl, replica: String) -> Self {
        let channel = format!("relay:link:{replica}");
        let redis = Redis::new(url, channel.clone());
        let mut tasks = JoinSet::new();
        let kept = redis.clone();
        tasks.spawn(steadily("the connection to redis", move || {
            keep(kept.clone(), channel.clone())
        }));
        Self {
            records: RedisRecords::new(redis.clone()),
            redis,
            replica,
            _tasks: tasks,
        }
    }

    /// Waits until Redis is there, so long at most; whether it is.
    pub async fn is_up_within(&self, patience: Duration) -> bool {
        let mut looks = interval(LOOK);
        let waiting = async {
            while !self.redis.is_up() {
                looks.tick().await;
            }
        };
        timeout(patience, waiting).await.is_ok()
    }

    /// Whether Redis is there.
    pub fn is_up(&self) -> bool {
        self.redis.is_up()
    }

    /// The store behind it, each time the same.
    pub fn records(&self) -> RedisRecords {
        self.records.clone()
    }

    /// The budgets behind it.
    pub fn budgets(&self) -> RedisBudgets {
        RedisBudgets::new(self.redis.clone())
    }

    /// Enrollment budgets of client addresses.
    pub fn addresses(&self) -> RedisAddresses {
        RedisAddresses::new(self.redis.clone())
    }

    /// Calls that are made elsewhere.
    pub(crate) fn redis(&self) -> &Redis {
        &self.redis
    }

    /// This replica's name among the others.
    pub fn replica(&self) -> &str {
        &self.replica
    }
}

async fn keep(redis: Redis, channel: String) {
    let (events, heard) = mpsc::channel(EVENTS);
    tokio::join!(redis.keep(events), ignore(heard), speak(&redis, &channel));
}

async fn ignore<T>(mut events: mpsc::Receiver<T>) {
    while events.recv().await.is_some() {}
}

async fn speak(redis: &Redis, channel: &str) {
    let mut turns = interval(SPEAK);
    let mut publish = cmd("PUBLISH");
    publish.arg(channel).arg("");
    loop {
        turns.tick().await;
        // Where it fails, the connection is being made anew.
        let _ = redis.send::<u64>(&publish).await;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use futures_util::StreamExt as _;
    use redis::Client;

    use super::*;
    use crate::store::redis::kit::Server;

    /// How long tests wait for Redis.
    pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

    /// A link that is up.
    pub(crate) async fn link(server: &Server) -> RedisLink {
        opened(RedisUrl::parse(&server.url()).unwrap().patient()).await
    }

    async fn opened(url: RedisUrl) -> RedisLink {
        let link = RedisLink::open(url, "test".to_owned());
        assert!(link.is_up_within(PATIENCE).await);
        link
    }

    /// Waits until a restarted server answers: the end of the old connection may not have been noticed yet.
    pub(crate) async fn is_back(link: &RedisLink) {
        let mut looks = interval(LOOK);
        let answering = async {
            while link.records().position().await.is_err() {
                looks.tick().await;
            }
        };
        timeout(PATIENCE, answering).await.expect("it comes back");
    }

    #[tokio::test]
    async fn it_is_kept_through_silence_and_made_again_after_a_restart() {
        let mut server = Server::start();
        let link = opened(RedisUrl::parse(&server.url()).unwrap()).await;
        let mut listener = Client::open(server.url())
            .unwrap()
            .get_async_pubsub()
            .await
            .unwrap();
        listener.subscribe("relay:link:test").await.unwrap();
        // One a second: longer than a silence may be.
        assert_eq!(listener.on_message().take(6).count().await, 6);
        assert!(link.is_up(), "what it says itself is heard");
        server.kill();
        assert!(link.records().position().await.is_err());
        server.restart();
        is_back(&link).await;
    }

    #[tokio::test]
    async fn a_server_that_takes_no_writes_is_away_until_it_does() {
        let server = Server::start();
        let link = link(&server).await;
        server.answer(&["REPLICAOF", "127.0.0.1", "1"]);
        assert!(link.records().position().await.is_err(), "it follows another");
        let mut looks = interval(LOOK);
        while link.is_up() {
            looks.tick().await;
        }
        let is_found_again = link.is_up_within(Duration::from_secs(2)).await;
        assert!(!is_found_again, "it can be reached, which is not enough");
        server.answer(&["REPLICAOF", "NO", "ONE"]);
        is_back(&link).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_start_does_not_wait_for_good() {
        let url = RedisUrl::parse("redis://127.0.0.1:1").unwrap();
        let link = RedisLink::open(url, "test".to_owned());
        assert!(!link.is_up_within(Duration::from_secs(1)).await);
    }
}
