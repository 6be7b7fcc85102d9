//! Pushes through replicas that share Redis: one limit, one list of revocations, one memory of outcomes.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::SimulatorOptions;
use tokio::time::timeout;

use crate::support::{
    answer::{Answer, Instance},
    redis::Server,
    relay::{Relay, RelayOptions},
    until,
    world::World,
};

mod emptied;
mod faults;
mod limits;
mod outcomes;
mod secrets;

/// Upkeep tells the store once a minute what nobody told it at once.
const BEFORE_UPKEEP: Duration = Duration::from_secs(30);
const ADMIN_TOKEN: &str = "an-admin-token-that-all-replicas-have";

/// Replicas around one Redis, and the providers that all of them talk to.
struct Place {
    redis: Server,
    world: World,
    others: Vec<Relay>,
}

impl Place {
    async fn of(replicas: usize) -> Self {
        Self::with(replicas, RelayOptions::new()).await
    }

    async fn with(replicas: usize, options: RelayOptions) -> Self {
        let redis = Server::start();
        let options = options
            .with_grown_instances()
            .set("REDIS_URL", redis.url())
            .set("RELAY_ADMIN_TOKEN", ADMIN_TOKEN);
        let world = World::start_with(SimulatorOptions::default(), options.clone()).await;
        world.simulators.set_recording(true);
        let others = join_all((1..replicas).map(|_| world.another_relay(options.clone()))).await;
        let place = Self { redis, world, others };
        place.replicas().for_each(give_token);
        place
    }

    fn replicas(&self) -> impl Iterator<Item = &Relay> {
        std::iter::once(&self.world.relay).chain(&self.others)
    }

    /// Waits until each replica knows how many they are, by which it holds tokens in stock.
    async fn know_each_other(&self) {
        for relay in self.replicas() {
            until("it knows of the others", async || {
                relay.metric("relay_replicas", "").await == 1.0 + self.others.len() as f64
            })
            .await;
        }
    }

    /// The most that all together may let through where one alone may let through `alone`: that and a token or two. A
    /// replica that did not hear from Redis in time goes by its share besides, which is never more than the whole.
    async fn most(&self, alone: f64) -> f64 {
        let failed = self
            .replicas()
            .map(|relay| relay.metric("relay_limit_leases_failed_total", ""));
        let failed: f64 = join_all(failed).await.iter().sum();
        if failed > 0.0 { 2.0 * alone } else { 1.01 * alone }
    }

    /// One more, which starts with nothing in memory.
    async fn newcomer(&self) -> Relay {
        let options = RelayOptions::new()
            .with_grown_instances()
            .set("REDIS_URL", self.redis.url())
            .set("RELAY_ADMIN_TOKEN", ADMIN_TOKEN);
        let relay = self.world.another_relay(options).await;
        give_token(&relay);
        relay
    }

    fn push(&self) -> Value {
        self.world.device(Platform::Ios).push(&json!({}))
    }

    /// What the operator does, at the first replica.
    async fn admin(&self, instance: &Instance, what: &str, body: Value) {
        let path = format!("/admin/v1/instances/{}/{what}", instance.id);
        let answer = self.world.relay.admin(Method::POST, &path, Some(body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Waits until every replica answers with this word.
    async fn all_answer(&self, instance: &Instance, word: &str) {
        join_all(
            self.replicas()
                .map(|relay| answers(relay, instance, self.push(), word)),
        )
        .await;
    }

    /// Waits until every replica has heard of all that the operator did so far: they hear of it in its order.
    async fn all_hear(&self) {
        let last = self.world.relay.enroll().await;
        self.admin(&last, "revoke", json!({})).await;
        self.all_answer(&last, "revoked").await;
    }
}

/// The kit's admin calls read it where a single node keeps its own.
fn give_token(relay: &Relay) {
    std::fs::write(relay.data_dir().join("admin-token"), ADMIN_TOKEN).unwrap();
}

async fn answers(relay: &Relay, instance: &Instance, push: Value, word: &str) {
    until(word, async || relay.push(instance, &push).await.word() == word).await;
}

async fn keyed(relay: &Relay, instance: &Instance, push: &Value, key: &str) -> Answer {
    let request = relay.push_request(instance, push);
    Answer::from(request.header("idempotency-key", key)).await
}

fn is_replayed(answer: &Answer) -> bool {
    answer.headers.contains_key("idempotent-replayed")
}

async fn readiness(relay: &Relay) -> Answer {
    relay.get("/readyz").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_at_one_replica_holds_at_all() {
    let place = Place::of(3).await;
    let instance = place.world.relay.enroll().await;
    place.all_answer(&instance, "sent").await;
    place.admin(&instance, "revoke", json!({})).await;
    place.all_answer(&instance, "revoked").await;
    let newcomer = place.newcomer().await;
    assert_eq!(newcomer.push(&instance, &place.push()).await.word(), "revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_and_a_rotation_at_one_replica_hold_at_all() {
    let place = Place::of(2).await;
    let (first, second) = (place.world.relay.enroll().await, place.others[0].enroll().await);
    let rotation = place.others[0]
        .request(Method::POST, "/v1/keys/rotate")
        .bearer_auth(&first.key)
        .json(&json!({ "graceSeconds": 0 }));
    let rotated = Answer::from(rotation).await;
    let fresh = Instance {
        key: rotated.body["instanceKey"].as_str().unwrap().to_owned(),
        ..first.clone()
    };
    let withdrawal = place.others[0].request(Method::DELETE, "/v1/enrollment");
    let withdrawn = withdrawal.bearer_auth(&second.key).send().await.unwrap();
    assert_eq!(withdrawn.status(), 204);
    for gone in [&first, &second] {
        place.all_answer(gone, "revoked").await;
    }
    place.all_answer(&fresh, "sent").await;
}

/// A lost answer to a rotation can be asked for again, by the old key and at any replica, until the new one is used.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_that_was_used_at_one_replica_is_handed_out_by_none() {
    let place = Place::of(2).await;
    let old = place.world.relay.enroll().await;
    let rotate = async |relay: &Relay| {
        let rotation = relay
            .request(Method::POST, "/v1/keys/rotate")
            .bearer_auth(&old.key);
        Answer::from(rotation.json(&json!({ "graceSeconds": 0 }))).await
    };
    let new = rotate(&place.world.relay).await.body["instanceKey"].clone();
    until("the other replica hands it out", async || {
        rotate(&place.others[0]).await.body["instanceKey"] == new
    })
    .await;
    let new = Instance {
        key: new.as_str().unwrap().to_owned(),
        ..old.clone()
    };
    assert_eq!(place.world.relay.push(&new, &place.push()).await.word(), "sent");
    let told = until("it no longer does", async || {
        rotate(&place.others[0]).await.word() == "revoked"
    });
    timeout(BEFORE_UPKEEP, told).await.expect("it is told at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspension_and_its_end_reach_all_replicas() {
    let place = Place::of(3).await;
    let instance = place.world.relay.enroll().await;
    place.all_answer(&instance, "sent").await;
    place
        .admin(&instance, "suspend", json!({ "reason": "spam" }))
        .await;
    place.all_answer(&instance, "suspended").await;
    place.admin(&instance, "resume", json!({})).await;
    place.all_answer(&instance, "sent").await;
}

#[tokio::test]
async fn replicas_know_the_same_instances_groups_and_invites() {
    let place = Place::with(2, RelayOptions::new().set("RELAY_ENROLLMENT", "invite")).await;
    let made = place
        .world
        .relay
        .admin(
            Method::POST,
            "/admin/v1/invites",
            Some(json!({ "ttlSeconds": 600 })),
        )
        .await;
    let invite = made.body["invite"].as_str().unwrap_or_else(|| panic!("{made:?}"));
    let enroll = |relay: &Relay| Answer::from(relay.request(Method::POST, "/v1/enroll").bearer_auth(invite));
    let enrolled = enroll(&place.others[0]).await;
    assert_eq!(enrolled.status, 200, "{enrolled:?}");
    assert_eq!(enroll(&place.world.relay).await.word(), "unauthorized", "used up");
    let path = format!(
        "/admin/v1/instances/{}",
        enrolled.body["instanceId"].as_str().unwrap()
    );
    for relay in place.replicas() {
        assert_eq!(relay.admin(Method::GET, &path, None).await.status, 200);
    }
}

#[tokio::test]
async fn without_an_enrollment_secret_replicas_say_so_and_make_none_of_their_own() {
    let redis = Server::start();
    let relay = Relay::start(RelayOptions::new().set("REDIS_URL", redis.url())).await;
    let enrolled = Answer::from(relay.request(Method::POST, "/v1/enroll")).await;
    assert_eq!(
        (enrolled.status.as_u16(), enrolled.word()),
        (503, "not_configured")
    );
    let ready = readiness(&relay).await;
    assert_eq!((ready.status.as_u16(), ready.word()), (503, "not_configured"));
    assert!(
        ready.body["reasons"].to_string().contains("enrollment secret"),
        "{ready:?}"
    );
    assert_eq!(
        std::fs::read_dir(relay.data_dir()).unwrap().count(),
        0,
        "nothing is kept here"
    );
    give_token(&relay);
    let admin = relay.admin(Method::GET, "/admin/v1/instances", None).await;
    assert_eq!(
        (admin.status.as_u16(), admin.word()),
        (503, "not_configured"),
        "no token, no admin API"
    );
}
