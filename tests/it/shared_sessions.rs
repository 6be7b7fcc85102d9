//! Sessions that replicas share in Redis: peers meet whatever replica each of them reaches.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{
    answer::Instance,
    peer::{Peer, load, resume},
    redis::{PASSWORD, Server},
    relay::{Relay, RelayOptions},
    sessions::Made,
    until,
};

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
        Self::with(Server::start(), replicas).await
    }

    async fn with(redis: Server, replicas: usize) -> Self {
        let replicas = join_all((0..replicas).map(|_| replica(&redis))).await;
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
    async fn join(&self, replica: usize, slot: &str, dial: crate::support::peer::Dial) -> (Peer, Value) {
        self.at(replica).join(slot, dial).await
    }

    /// The session as it is reached through one of the replicas.
    fn at(&self, replica: usize) -> Made {
        let url = self.replicas[replica].url.replacen("http", "ws", 1);
        Made {
            url: format!("{url}/v1/signal"),
            ..self.session.clone()
        }
    }
}

/// A relay that has Redis.
async fn replica(redis: &Server) -> Relay {
    let options = RelayOptions::new()
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

#[tokio::test(flavor = "multi_thread")]
async fn peers_on_two_replicas_talk_and_see_each_other_come_and_go() {
    let place = Place::of(2).await;
    let (mut a, welcome) = place.join(0, "a", load(1)).await;
    assert_eq!(welcome["peer"]["state"], "absent");
    a.message(1, "before b was there").await;
    a.stored(1).await;
    let (mut b, welcome) = place.join(1, "b", load(2)).await;
    assert_eq!(welcome["peer"], json!({ "state": "online", "gen": 1 }));
    assert_eq!(b.next_of("msg").await["d"], "before b was there");
    assert_eq!(a.next_of("peer").await["state"], "online");

    b.ack(1).await;
    b.message(1, "an answer").await;
    assert_eq!(a.next_of("msg").await["d"], "an answer");
    a.message(2, "and more").await;
    assert_eq!(b.next_of("msg").await["d"], "and more");

    b.send(json!({ "t": "bye" })).await;
    assert_eq!(a.next_of("peer").await["state"], "left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_on_another_replica_closes_the_old_connection_and_the_peer_sees_nothing_of_it() {
    let place = Place::of(2).await;
    let (mut old, _) = place.join(0, "a", load(1)).await;
    let (mut b, _) = place.join(0, "b", load(2)).await;
    let (mut new, welcome) = place.join(1, "a", resume(1, 2, 0)).await;
    assert_eq!(welcome["gen"], 1);
    assert_eq!(old.end().await, REPLACED);
    let frames = b.so_far().await;
    assert!(
        frames
            .iter()
            .all(|frame| frame["t"] != "peer" || frame["state"] == "online"),
        "{frames:?}"
    );
    new.message(1, "still here").await;
    assert_eq!(b.next_of("msg").await["d"], "still here");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_peer_that_hops_between_three_replicas_arrive_in_order() {
    const MESSAGES: u64 = 50;
    let place = Place::of(3).await;
    let (mut b, _) = place.join(0, "b", load(2)).await;
    let mut expected = 1;
    for n in 1..=MESSAGES {
        let replica = usize::try_from(n).unwrap() % 3;
        let (mut a, welcome) = place.join(replica, "a", resume(1, n, 0)).await;
        assert_eq!(welcome["next"], n);
        a.message(n, &n.to_string()).await;
        // Every other one is cut off before it can hear that its message was stored.
        if n % 2 == 0 {
            a.stored(n).await;
        } else {
            let message = b.next_of("msg").await;
            assert_eq!(
                (&message["seq"], &message["d"]),
                (&json!(expected), &json!(expected.to_string()))
            );
            expected += 1;
        }
        drop(a);
        while expected <= n {
            let message = b.next_of("msg").await;
            assert_eq!(
                (&message["seq"], &message["d"]),
                (&json!(expected), &json!(expected.to_string()))
            );
            expected += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_deleted_on_one_replica_is_over_on_the_other() {
    let place = Place::of(2).await;
    let (mut b, _) = place.join(1, "b", load(2)).await;
    let deleted = place.replicas[0]
        .delete_session(&place.instance, &place.session)
        .await;
    assert_eq!(deleted.status, 204);
    assert_eq!(b.end().await, OVER);
    assert_eq!(place.at(1).refusal("b", resume(2, 2, 0)).await, 4404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_whose_replica_is_killed_is_away_until_it_resumes_elsewhere_and_nothing_is_lost() {
    let mut place = Place::of(2).await;
    let (mut b, _) = place.join(0, "b", load(2)).await;
    let (mut a, _) = place.join(1, "a", load(1)).await;
    a.message(1, "stored").await;
    a.stored(1).await;
    assert_eq!(b.next_of("msg").await["d"], "stored");
    // The other replica has lived long enough to judge.
    place.replicas.pop().unwrap().kill().await;
    while b.next_of("peer").await["state"] != "away" {}
    b.message(1, "while away").await;
    b.stored(1).await;
    let (mut a, welcome) = place.join(0, "a", resume(1, 2, 0)).await;
    assert_eq!(welcome["next"], 2);
    assert_eq!(a.next_of("msg").await["d"], "while away");
    assert_eq!(b.next_of("peer").await["state"], "online");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_redis_is_away_nothing_is_acknowledged_and_sessions_are_refused_but_the_relay_is_ready() {
    let mut place = Place::of(1).await;
    let (mut a, _) = place.join(0, "a", load(1)).await;
    place.redis.kill();
    let relay = &place.replicas[0];
    until("degraded", async || readiness(relay).await.contains("redis")).await;
    a.message(1, "not now").await;
    let refused = a.next().await;
    assert_eq!(
        (&refused["t"], &refused["code"], &refused["n"]),
        (&json!("err"), &json!("unavailable"), &json!(1))
    );
    let request = relay.session_request(&place.instance, &json!({}));
    assert_eq!(request.send().await.unwrap().status(), 503);

    // It comes back without data: the session is over, and new ones are made.
    place.redis.restart();
    assert!(matches!(a.end().await, 4404 | OVER));
    is_ready(relay).await;
    let session = relay.open_session(&place.instance).await;
    session.join("a", load(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_redis_refused_while_it_was_away_flows_afterwards_on_the_same_sockets() {
    const MESSAGES: u64 = 20;
    let mut place = Place::with(Server::start_kept(), 2).await;
    let (mut a, _) = place.join(0, "a", load(1)).await;
    let (mut b, _) = place.join(1, "b", load(2)).await;
    a.message(1, "1").await;
    a.stored(1).await;
    assert_eq!(b.next_of("msg").await["d"], "1");
    place.redis.kill();
    a.messages(2..=MESSAGES).await;
    let refused = a.next_of("err").await;
    assert_eq!(
        (&refused["code"], &refused["n"]),
        (&json!("unavailable"), &json!(2))
    );
    for replica in &place.replicas {
        until("degraded", async || readiness(replica).await.contains("redis")).await;
    }
    place.redis.restart();
    for replica in &place.replicas {
        is_ready(replica).await;
    }
    // What the relay asks for: again from the one that was refused.
    a.messages(2..=MESSAGES).await;
    a.stored(MESSAGES).await;
    for n in 2..=MESSAGES {
        let message = b.next_of("msg").await;
        assert_eq!(
            (&message["seq"], &message["d"]),
            (&json!(n), &json!(n.to_string()))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_redis_is_reached_by_tls_and_its_password_is_in_no_log() {
    let redis = Server::start_locked();
    let options = RelayOptions::new()
        .set("RELAY_ENROLLMENT_SECRET", SECRET)
        .set("REDIS_URL", redis.url())
        .set("RELAY_LOG", "debug")
        .set("SSL_CERT_FILE", redis.certificate().display().to_string());
    let relay = Relay::start(options).await;
    is_ready(&relay).await;
    let instance = relay.enroll().await;
    let session = relay.open_session(&instance).await;
    session.join("a", load(1)).await;
    assert!(!relay.log().contains(PASSWORD));

    let wrong = redis.url().replace(PASSWORD, "not-the-password");
    let options = RelayOptions::new()
        .set("REDIS_URL", wrong)
        .set("SSL_CERT_FILE", redis.certificate().display().to_string());
    let log = Relay::try_start(options)
        .await
        .err()
        .expect("it does not start")
        .log;
    assert!(
        log.contains("redis can't be reached") && log.contains("WRONGPASS"),
        "{log}"
    );
    assert!(!log.contains("not-the-password"), "{log}");
}
