//! A master dies with records and limits that only it had.
//!
//! Revocations come back, from the memory of any relay. The rest is as the copy has it: a suspension, a limit or its end,
//! a record, an outcome under an idempotency key that was written since is gone. An instance may push once more what it
//! had pushed since, at most one minute's budget.

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use super::{
    pushes::{fresh_message, fresh_push},
    *,
};
use crate::support::answer::Answer;

const PER_MINUTE: u32 = 600;

impl Replicas {
    /// What the operator says to one of the replicas.
    async fn say(&self, relay: usize, instance: &Instance, what: &str, body: Value) {
        let path = format!("/admin/v1/instances/{}/{what}", instance.id);
        let answer = self.relays[relay].admin(Method::POST, &path, Some(body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Waits until all replicas answer with this word.
    async fn all_answer(&self, instance: &Instance, word: &str) {
        join_all(self.relays.iter().map(|relay| answers(relay, instance, word))).await;
    }

    /// How many of these a replica may send.
    async fn sends(&self, relay: usize, count: usize) -> u32 {
        let messages: Vec<_> = (0..count).map(|_| fresh_message()).collect();
        let answer = self.relays[relay].batch(&self.instance, &messages).await;
        let results = answer.body["results"].as_array().unwrap();
        let sent = results.iter().filter(|result| result["result"] == "sent");
        u32::try_from(sent.count()).unwrap()
    }

    /// Sends at all replicas until they have refused some.
    async fn sends_all(&self) -> u32 {
        let all = join_all([0, 1].map(|relay| self.sends(relay, 400))).await;
        all.into_iter().sum()
    }

    /// By how much they may exceed a limit together: by a token or two. One that did not hear from Redis in time goes
    /// by its share besides, which is never more than the whole.
    async fn beyond(&self) -> f64 {
        let failed = self
            .relays
            .iter()
            .map(|relay| relay.metric("relay_limit_leases_failed_total", ""));
        let failed: f64 = join_all(failed).await.iter().sum();
        if failed > 0.0 { 2.0 } else { 1.01 }
    }
}

async fn answers(relay: &Relay, instance: &Instance, word: &str) {
    until(word, async || {
        relay.push(instance, &fresh_message()).await.word() == word
    })
    .await;
}

async fn operator_limit(relay: &Relay, instance: &Instance) -> Value {
    let path = format!("/admin/v1/instances/{}", instance.id);
    relay.admin(Method::GET, &path, None).await.body["perMinute"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn revocations_that_a_failover_lost_are_written_back_by_a_relay_that_only_heard_of_them() {
    let mut watched = Watched::start();
    let mut replicas = Replicas::of(&watched.url()).await;
    let revoked = grown_instance();
    replicas.all_answer(&revoked, "sent").await;
    copied(&watched);
    cut_off(&watched);
    replicas.say(0, &revoked, "revoke", json!({})).await;
    replicas.all_answer(&revoked, "revoked").await;
    replicas.relays.remove(0).kill().await;
    die(&mut watched).await;

    let newcomer = replicas.newcomer().await;
    answers(&newcomer, &revoked, "revoked").await;
    replicas.all_answer(&revoked, "revoked").await;
    answers(&newcomer, &replicas.instance, "sent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn suspensions_and_limits_are_after_a_failover_as_the_copy_has_them_at_all_replicas() {
    let mut watched = Watched::start();
    let replicas = Replicas::of(&watched.url()).await;
    let enrolled = join_all([(); 3].map(|()| replicas.relays[0].enroll())).await;
    let [kept, lifted, lost] = &enrolled[..] else {
        unreachable!()
    };
    for suspended in [kept, lifted] {
        replicas
            .say(0, suspended, "suspend", json!({ "reason": "spam" }))
            .await;
    }
    replicas.say(0, kept, "limit", json!({ "perMinute": 30 })).await;
    replicas.all_answer(lifted, "suspended").await;
    copied(&watched);
    cut_off(&watched);
    replicas.say(0, lifted, "resume", json!({})).await;
    replicas.say(0, lost, "limit", json!({ "perMinute": 30 })).await;
    replicas
        .say(0, lost, "suspend", json!({ "reason": "spam" }))
        .await;
    replicas.all_answer(lifted, "sent").await;
    replicas.all_answer(lost, "suspended").await;
    die(&mut watched).await;

    replicas.all_answer(kept, "suspended").await;
    replicas.all_answer(lifted, "suspended").await;
    replicas.all_answer(lost, "sent").await;
    for relay in &replicas.relays {
        assert_eq!(operator_limit(relay, kept).await, 30);
        assert_eq!(operator_limit(relay, lost).await, Value::Null);
    }
    // What is said from now on holds.
    replicas
        .say(1, lost, "suspend", json!({ "reason": "spam" }))
        .await;
    replicas.say(1, lifted, "resume", json!({})).await;
    replicas.all_answer(lost, "suspended").await;
    replicas.all_answer(lifted, "sent").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_keys_hold_and_outcomes_that_were_lost_are_still_known_to_who_sent_them() {
    let mut watched = Watched::start();
    let replicas = Replicas::of(&watched.url()).await;
    let [sender, other] = &replicas.relays[..] else {
        unreachable!()
    };
    let kept = fresh_push();
    assert_eq!(sender.push(&replicas.instance, &kept).await.word(), "sent");
    copied(&watched);
    cut_off(&watched);
    let (lost, enrolled) = (fresh_push(), sender.enroll().await);
    assert_eq!(sender.push(&replicas.instance, &lost).await.word(), "sent");
    die(&mut watched).await;
    replicas.have_found(&watched.replicas[0]).await;

    replicas.is_remembered(other, &kept).await;
    replicas.is_remembered(sender, &lost).await;
    let again = other.push(&replicas.instance, &lost).await;
    assert!(again.word() == "sent" && !again.headers.contains_key("idempotent-replayed"));
    replicas.all_answer(&enrolled, "sent").await;
    assert_eq!(
        Answer::from(sender.request(Method::POST, "/v1/enroll"))
            .await
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_an_instance_gets_again_what_it_had_spent_since_the_copy_and_no_more() {
    let mut watched = Watched::start();
    let limit = RelayOptions::new().set("RELAY_PUSHES_PER_MINUTE", PER_MINUTE.to_string());
    let replicas = Replicas::with(&watched.url(), limit).await;
    let began = Instant::now();
    let before = replicas.sends(0, 150).await + replicas.sends(1, 150).await;
    assert_eq!(before, 300);
    copied(&watched);
    cut_off(&watched);
    let lost = replicas.sends_all().await;
    die(&mut watched).await;
    replicas.have_found(&watched.replicas[0]).await;
    let mut after = 0;
    // Also what was leased in the meantime.
    for _ in 0..3 {
        after += replicas.sends_all().await;
    }
    let alone = f64::from(PER_MINUTE) * (1.0 + began.elapsed().as_secs_f64() / 60.0);
    let (total, most) = (f64::from(before + lost + after), alone + f64::from(lost));
    let most = most * replicas.beyond().await;
    assert!(total <= most, "{before}, {lost} and {after}: more than {most}");
    assert!(after > lost / 2, "nothing was lost: {before}, {lost} and {after}");
}
