//! Redis goes, comes back with and without what it had, and is locked.

use serde_json::json;

use super::{Place, SECRET, is_ready, readiness};
use crate::support::{
    peer::load,
    redis::{PASSWORD, Server},
    relay::{Relay, RelayOptions},
    until,
};

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

    // It comes back without data: the session is unknown, and new ones are made.
    place.redis.restart();
    assert_eq!(a.end().await, 4404);
    is_ready(relay).await;
    let session = relay.open_session(&place.instance).await;
    session.join("a", load(1)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_redis_refused_while_it_was_away_flows_afterwards_on_the_same_sockets() {
    const MESSAGES: u64 = 20;
    let mut place = Place::with(Server::start_kept(), 2, RelayOptions::new()).await;
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
        .set("RELAY_EXTRA_CA_FILE", redis.certificate().display().to_string());
    let relay = Relay::start(options).await;
    is_ready(&relay).await;
    let instance = relay.enroll().await;
    let session = relay.open_session(&instance).await;
    session.join("a", load(1)).await;
    assert!(!relay.log().contains(PASSWORD));

    let wrong = redis.url().replace(PASSWORD, "not-the-password");
    let options = RelayOptions::new()
        .set("REDIS_URL", wrong)
        .set("RELAY_EXTRA_CA_FILE", redis.certificate().display().to_string());
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
