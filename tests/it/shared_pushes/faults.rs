//! Redis dies and comes back, replicas stop and are given new keys.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use sovereign_relay_simulator::ApnsKey;
use tokio::task::JoinSet;

use super::*;
use crate::support::{DEADLINE, grown::grown_instance};

fn is_degraded(ready: &Answer) -> bool {
    ready.status == 200
        && ready.body["status"] == "degraded"
        && ready.body["reasons"].to_string().contains("store")
}

/// Pushes are held up now and then, by this machine or until a connection is known to be lost, but not as a rule.
fn are_prompt(mut took: Vec<Duration>) {
    took.sort_unstable();
    assert!(took[took.len() / 2] < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_redis_is_away_pushes_go_on_known_revocations_hold_and_readiness_says_degraded() {
    let mut place = Place::of(2).await;
    let (instance, revoked) = (place.world.relay.enroll().await, place.world.relay.enroll().await);
    place.admin(&revoked, "revoke", json!({})).await;
    place.all_answer(&revoked, "revoked").await;
    place.all_answer(&instance, "sent").await;
    place.redis.kill();
    for relay in place.replicas() {
        let mut took = Vec::new();
        for _ in 0..10 {
            let began = Instant::now();
            assert_eq!(relay.push(&instance, &place.push()).await.word(), "sent");
            took.push(began.elapsed());
        }
        are_prompt(took);
        assert_eq!(relay.push(&revoked, &place.push()).await.word(), "revoked");
        until("degraded", async || is_degraded(&readiness(relay).await)).await;
        let enrolled = Answer::from(relay.request(Method::POST, "/v1/enroll")).await;
        assert_eq!(
            (enrolled.status.as_u16(), enrolled.word()),
            (503, "overloaded"),
            "{enrolled:?}"
        );
        assert!(enrolled.retry_after() >= 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_hangs_holds_no_push_up_for_long() {
    let place = Place::of(2).await;
    let instance = place.world.relay.enroll().await;
    place.all_answer(&instance, "sent").await;
    let url = place.redis.administrators_url();
    let hung = std::process::Command::new("redis-cli")
        .args(["-u", &url, "client", "pause", "20000", "all"])
        .output()
        .unwrap();
    assert!(hung.status.success(), "{hung:?}");
    for relay in place.replicas() {
        let mut took = Vec::new();
        // As many as a lease holds, so that it runs out and the next one does not come.
        for number in 0..30 {
            let push = relay.push_request(&instance, &place.push());
            let began = Instant::now();
            let answer = Answer::from(push.header("idempotency-key", format!("key-{number}"))).await;
            assert_eq!(answer.word(), "sent", "{answer:?}");
            took.push(began.elapsed());
        }
        are_prompt(took);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_comes_back_empty_is_told_the_revocations_again() {
    let mut place = Place::of(2).await;
    let (revoked, other) = (place.world.relay.enroll().await, grown_instance());
    place.admin(&revoked, "revoke", json!({})).await;
    place.all_answer(&revoked, "revoked").await;
    place.redis.restart();
    // Each by the connection of its records and that of its sessions; before that they may not know that it was away.
    until("all have found it", async || {
        let channels = place.redis.answer(&["PUBSUB", "CHANNELS", "relay:*"]);
        channels.lines().count() == 2 * place.replicas().count()
    })
    .await;
    for relay in place.replicas() {
        until("ready again", async || {
            readiness(relay).await.body["status"] == "ready"
        })
        .await;
    }
    let newcomer = place.newcomer().await;
    answers(&newcomer, &revoked, place.push(), "revoked").await;
    // And what happens from now on is followed by all of them again.
    place.admin(&other, "revoke", json!({})).await;
    place.all_answer(&other, "revoked").await;
    answers(&newcomer, &other, place.push(), "revoked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_redis_is_away_each_replica_lets_an_instance_have_its_share() {
    let mut place = Place::of(2).await;
    place.world.simulators.set_recording(false);
    let instance = grown_instance();
    place.all_answer(&instance, "sent").await;
    place.know_each_other().await;
    place.redis.kill();
    let message = |number: u64| json!({ "deviceToken": format!("{number:064x}"), "platform": "ios", "encryptedPayload": "sealed" });
    let messages: Vec<_> = (0..450).map(message).collect();
    let began = Instant::now();
    for relay in place.replicas() {
        let answer = relay.batch(&instance, &messages).await;
        let results = answer.body["results"].as_array().unwrap();
        let sent = results.iter().filter(|result| result["result"] == "sent").count();
        // With what it had in stock, and half of what came back meanwhile.
        let most = 340.0 + began.elapsed().as_secs_f64() * 5.0;
        assert!(
            sent >= 280 && sent as f64 <= most,
            "half of 600: {sent} of {most}"
        );
    }
}

#[tokio::test]
async fn a_replica_does_not_start_on_no_word_of_what_is_revoked() {
    let mut redis = Server::start();
    redis.kill();
    let options = RelayOptions::new()
        .with_grown_instances()
        .set("REDIS_URL", redis.url());
    let failure = Relay::try_start(options).await.err().expect("it does not start");
    assert_eq!(failure.code, Some(1), "{}", failure.log);
    assert!(failure.log.contains("REDIS_URL"), "{}", failure.log);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_replicas_stops_under_load_and_no_push_is_lost_or_doubled() {
    let place = Place::with(3, RelayOptions::new().set("RELAY_DRAIN_GRACE", "1s")).await;
    let instance = grown_instance();
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for caller in 0..12_u64 {
        let relays: Vec<_> = place.replicas().map(Relay::caller).collect();
        let (instance, is_over) = (instance.clone(), is_over.clone());
        callers.spawn(async move {
            let mut told = Vec::new();
            for round in 0..200_u64 {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                let token = format!("{:064x}", caller * 1000 + round);
                let push = json!({
                    "deviceToken": token, "platform": "ios", "encryptedPayload": "sealed",
                    "idempotencyKey": token,
                });
                // As a client behind a balancer does: what is refused, or not answered, is tried at the next one.
                for relay in relays
                    .iter()
                    .cycle()
                    .skip(usize::try_from(round).unwrap())
                    .take(4)
                {
                    let Ok(answer) = relay.try_push(&instance, &push).await else {
                        continue;
                    };
                    match answer.word() {
                        "sent" => {
                            told.push(token);
                            break;
                        }
                        "draining" => {}
                        "rate_limited" => break,
                        word => panic!("{word}: {answer:?}"),
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            told
        });
    }
    place
        .world
        .simulators
        .apns
        .inbox()
        .wait_for(60, DEADLINE)
        .await
        .unwrap();
    let Place {
        world,
        mut others,
        redis: _redis,
    } = place;
    let stopping = others.remove(0);
    stopping.terminate();
    let (status, log) = stopping.ended().await;
    assert!(
        status.success() && !log.contains("not everything ended in time"),
        "{log}"
    );
    is_over.store(true, Ordering::SeqCst);
    let mut told: Vec<String> = callers.join_all().await.into_iter().flatten().collect();
    let mut delivered: Vec<String> = world
        .simulators
        .apns
        .inbox()
        .all()
        .into_iter()
        .map(|delivery| delivery.token)
        .collect();
    told.sort();
    delivered.sort();
    assert_eq!(told, delivered);
}

fn write_key(path: &std::path::Path, key: &ApnsKey) {
    let text = format!(
        "apns_key = \"\"\"\n{}\"\"\"\napns_key_id = \"{}\"\nrelay_pushes_per_minute = 100000\n",
        key.pem, key.key_id
    );
    std::fs::write(path, text).unwrap();
}

/// Whether the last pushes of each replica were signed with this key.
fn signed_with(world: &World, key: &ApnsKey) -> bool {
    let deliveries = world.simulators.apns.inbox().all();
    let last = deliveries.iter().rev().take(20);
    let kids = last.map(|delivery| jsonwebtoken::decode_header(&delivery.jwt).unwrap().kid);
    let kids: Vec<_> = kids.collect();
    kids.len() == 20 && kids.iter().all(|kid| kid.as_ref() == Some(&key.key_id))
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_take_over_new_credentials_while_pushes_go_on_and_none_is_lost() {
    let (redis, world) = (Server::start(), World::start().await);
    let (folder, instance) = (tempfile::TempDir::new().unwrap(), grown_instance());
    let config = folder.path().join("relay.toml");
    let (old, new) = (
        world.simulators.apns.key(),
        world.simulators.apns.new_key().unwrap(),
    );
    write_key(&config, &old);
    let options = RelayOptions::new()
        .with_grown_instances()
        .set("REDIS_URL", redis.url())
        .set("RELAY_CONFIG", config.to_str().unwrap())
        .without("APNS_KEY")
        .without("APNS_KEY_ID");
    let replicas = join_all((0..3).map(|_| world.another_relay(options.clone()))).await;
    let is_over = AtomicBool::new(false);
    let pushing = join_all(replicas.iter().map(|relay| async {
        while !is_over.load(Ordering::SeqCst) {
            let push = world.device(Platform::Ios).push(&json!({}));
            let answer = relay.push(&instance, &push).await;
            assert_eq!(answer.word(), "sent", "{answer:?}");
        }
    }));
    let changing = async {
        until("the old key is in use", async || signed_with(&world, &old)).await;
        write_key(&config, &new);
        replicas.iter().for_each(Relay::hang_up);
        until("the new key is in use", async || signed_with(&world, &new)).await;
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(pushing, changing);
    let signed: std::collections::HashSet<_> = world
        .simulators
        .apns
        .inbox()
        .all()
        .into_iter()
        .map(|delivery| delivery.jwt)
        .collect();
    assert!(
        signed.len() <= 4,
        "a JWT of each key, and of a slot that began meanwhile"
    );
}
