//! Replicas around one Redis are killed, one after the other, in the middle of handshakes. What is said here of a few
//! sessions and kills, `loadtest signal chaos` measures with many; the front and the peers are the same.

use futures_util::future::join_all;
use serde_json::json;
use sovereign_relay_client::{
    signal::{
        invitation::{Invitation, new_secret},
        session::{Options, Session},
    },
    trust::Trust,
};
use std::time::Duration;
use tokio::{sync::watch, task::JoinSet, time::timeout};

use self::{
    front::Front,
    handshake::{Course, Seen, now, shake},
};
use crate::support::{
    DEADLINE,
    redis::Server,
    relay::{Relay, RelayOptions},
    until,
};

#[path = "../../loadtest/src/signal/chaos/front.rs"]
mod front;
#[allow(dead_code, reason = "only the load generator looks at times")]
#[path = "../../loadtest/src/signal/chaos/handshake.rs"]
mod handshake;

const SECRET: &str = "one secret for all replicas, 40 bytes ..";
const REPLICAS: usize = 3;
const SESSIONS: usize = 24;
/// Often enough that a kill comes between a message and its acknowledgement.
const EVERY: Duration = Duration::from_millis(200);

/// Replicas, and the front before them.
struct Place {
    redis: Server,
    replicas: Vec<Relay>,
    front: Front,
}

impl Place {
    async fn start() -> Self {
        let redis = Server::start_kept();
        let replicas = join_all((0..REPLICAS).map(|_| replica(&redis))).await;
        let front = Front::start().await.unwrap();
        let place = Self {
            redis,
            replicas,
            front,
        };
        place.show();
        place
    }

    fn show(&self) {
        let places = self.replicas.iter().map(|replica| {
            let address = replica.url.strip_prefix("http://").unwrap();
            address.parse().unwrap()
        });
        self.front.stands_before(places.collect());
    }

    /// Sessions, with both peers in each.
    async fn join(&self) -> Vec<[Session; 2]> {
        let (relay, options) = (&self.replicas[0], Options::new(Trust::system().unwrap()));
        let instance = relay.enroll().await;
        let join = async || {
            let (made, secret) = (
                relay.session(&instance, json!({ "ttlSeconds": 600 })).await,
                new_secret(),
            );
            let invitation = |slot| Invitation {
                url: self.front.url(),
                ..made.invitation(slot, &secret)
            };
            let (a, b) = tokio::join!(
                Session::connect(invitation("a"), &options),
                Session::connect(invitation("b"), &options)
            );
            [a.unwrap(), b.unwrap()]
        };
        join_all((0..SESSIONS).map(|_| join())).await
    }

    /// kill -9, and a new one in its place.
    async fn replace(&mut self, number: usize) {
        self.replicas.remove(number).kill().await;
        let replica = replica(&self.redis).await;
        self.replicas.insert(number, replica);
        self.show();
    }

    async fn all_are_back(&self) {
        until("every peer has found another replica", async || {
            let welcomed = self
                .replicas
                .iter()
                .map(|replica| replica.metric("relay_signal_welcomed_sockets", ""));
            join_all(welcomed).await.iter().sum::<f64>() >= (2 * SESSIONS) as f64
        })
        .await;
    }
}

async fn replica(redis: &Server) -> Relay {
    let options = RelayOptions::new()
        .set("RELAY_ENROLLMENT_SECRET", SECRET)
        .set("REDIS_URL", redis.url());
    Relay::start(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_complete_and_each_message_comes_once_and_in_order_though_every_replica_is_killed() {
    let mut place = Place::start().await;
    let peers = place.join().await;
    let (over, is_over) = watch::channel(false);
    let course = Course {
        every: EVERY,
        is_over,
        began: now(),
    };
    let mut handshakes = JoinSet::new();
    for pair in peers {
        let course = course.clone();
        handshakes.spawn(async move { shake(pair, &course).await });
    }
    for number in 0..REPLICAS {
        place.all_are_back().await;
        place.replace(number).await;
    }
    place.all_are_back().await;
    over.send_replace(true);
    let ended = timeout(DEADLINE, handshakes.join_all()).await;
    let ended: Vec<_> = ended.expect("all complete").into_iter().collect();
    let seen: Vec<Seen> = ended.into_iter().flat_map(|pair| pair.unwrap()).collect();
    assert_eq!(seen.len(), 2 * SESSIONS);
    let losses: usize = seen.iter().map(|seen| seen.until_welcome.len()).sum();
    assert!(
        losses >= 2 * SESSIONS / REPLICAS,
        "the killed replicas had connections: {losses}"
    );
}
