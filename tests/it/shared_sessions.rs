//! Sessions that replicas share in Redis, each replica a process: peers meet whatever replica each of them reaches.
//!
//! | promise, over replicas | where |
//! |---|---|
//! | peers talk and see each other come and go; a peer that hops keeps its order; one that comes later gets what waits for it; a session that ends, ends everywhere | [`talk`] |
//! | a newer connection takes over, the older one can't come back and its death disturbs nobody; page loads are bounded, resumes are not shut out | [`takeovers`] |
//! | who drops is away, and gets at another replica what came meanwhile, once; a killed replica's peers too | [`absence`] |
//! | connections that are cut at any moment lose and repeat nothing | [`cuts`] |
//! | a replica that stops sends its peers to the others, and nothing is lost | [`stop`] |
//! | instances meet while the enrollment secret is changed | [`secrets`] |
//! | Redis away, back, emptied, behind TLS | [`redis_trouble`] |

use futures_util::future::join_all;
use serde_json::Value;

use crate::support::{
    answer::Instance,
    peer::{Dial, Peer},
    redis::Server,
    relay::{Relay, RelayOptions},
    sessions::Made,
    until,
};

mod absence;
mod cuts;
mod redis_trouble;
mod secrets;
mod stop;
mod takeovers;
mod talk;

const SECRET: &str = "one secret for all replicas, 40 bytes ..";
const REPLACED: u16 = 4409;
const OVER: u16 = 4410;

/// Replicas around one Redis, an instance, and a session.
struct Place {
    redis: Server,
    replicas: Vec<Relay>,
    instance: Instance,
    session: Made,
}

impl Place {
    async fn of(replicas: usize) -> Self {
        Self::with(Server::start(), replicas, RelayOptions::new()).await
    }

    async fn with(redis: Server, replicas: usize, options: RelayOptions) -> Self {
        let replicas = join_all((0..replicas).map(|_| replica(&redis, options.clone()))).await;
        let instance = replicas[0].enroll().await;
        let session = replicas[0].open_session(&instance).await;
        Self {
            redis,
            replicas,
            instance,
            session,
        }
    }

    /// A peer at one of the replicas.
    async fn join(&self, replica: usize, slot: &str, dial: Dial) -> (Peer, Value) {
        self.at(replica).join(slot, dial).await
    }

    /// The session as it is reached through one of the replicas.
    fn at(&self, replica: usize) -> Made {
        through(&self.replicas[replica], &self.session)
    }
}

/// A session as it is reached through a replica.
fn through(replica: &Relay, session: &Made) -> Made {
    let url = replica.url.replacen("http", "ws", 1);
    Made {
        url: format!("{url}/v1/signal"),
        ..session.clone()
    }
}

/// A relay that has Redis.
async fn replica(redis: &Server, options: RelayOptions) -> Relay {
    let options = options
        .set("RELAY_ENROLLMENT_SECRET", SECRET)
        .set("REDIS_URL", redis.url());
    let relay = Relay::start(options).await;
    is_ready(&relay).await;
    relay
}

async fn is_ready(relay: &Relay) {
    until("redis is there", async || {
        !readiness(relay).await.contains("redis")
    })
    .await;
}

async fn readiness(relay: &Relay) -> String {
    let answer = relay
        .request(reqwest::Method::GET, "/readyz")
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    answer.text().await.unwrap()
}
