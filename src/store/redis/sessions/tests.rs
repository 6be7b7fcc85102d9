use std::time::Duration;

use futures_util::future::ready;
use sovereign_relay_actors::session::port::News;
use tokio::task::JoinSet;

use super::*;
use crate::{
    clock::SystemClock,
    entropy::SystemEntropy,
    store::{
        redis::kit::Server,
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

/// A replica without connections.
struct Replica {
    store: RedisSessions,
    _running: JoinSet<()>,
}

struct Nobody;

impl Local for Nobody {
    fn hear(&self, _: News) {}

    fn end(&self, _: SessionId) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

impl Replica {
    async fn start(server: &Server) -> Self {
        let store = RedisSessions::new(
            RedisUrl::parse(&server.url()).unwrap(),
            SessionBounds::default(),
            SessionRules::default(),
            Arc::new(SystemClock::new()),
            &SystemEntropy,
        );
        let mut running = JoinSet::new();
        let kept = store.clone();
        running.spawn(async move { kept.run(&Nobody).await });
        store.0.redis.connected().await;
        Self {
            store,
            _running: running,
        }
    }
}
