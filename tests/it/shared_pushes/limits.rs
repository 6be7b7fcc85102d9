//! One limit, whatever replica is asked.

use super::*;
use crate::support::grown::grown_instance;

/// How long replicas are flooded.
const FLOOD: Duration = Duration::from_secs(12);
const PER_MINUTE: u32 = 600;

fn messages(count: u64) -> Vec<Value> {
    let message = |_| {
        let mut token = [0; 32];
        #[allow(clippy::disallowed_methods, reason = "tests have no entropy port")]
        getrandom::fill(&mut token).unwrap();
        let token: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "deviceToken": token, "platform": "ios", "encryptedPayload": "sealed" })
    };
    (0..count).map(message).collect()
}

fn sent(answer: &Answer) -> u32 {
    let results = answer.body["results"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer:?}"));
    let sent = results.iter().filter(|result| result["result"] == "sent").count();
    u32::try_from(sent).unwrap()
}

/// What came of a flood.
struct Flood {
    sent: u32,
    /// Until it asked for the last time for more than there was.
    spent: Duration,
    took: Duration,
}

/// Pushes for a while, and on until it is refused some.
async fn flood(relay: &Relay, instance: &Instance, size: u64) -> Flood {
    let (began, mut total) = (Instant::now(), 0);
    loop {
        let asked = began.elapsed();
        let passed = sent(&relay.batch(instance, &messages(size)).await);
        total += passed;
        if asked >= FLOOD && u64::from(passed) < size {
            let took = began.elapsed();
            return Flood {
                sent: total,
                spent: asked,
                took,
            };
        }
    }
}

async fn flood_all(relays: &[&Relay], instance: &Instance) -> Flood {
    let floods = relays.iter().map(|relay| flood(relay, instance, 40));
    let floods = join_all(floods).await;
    Flood {
        sent: floods.iter().map(|flood| flood.sent).sum(),
        spent: floods.iter().map(|flood| flood.spent).min().unwrap(),
        took: floods.iter().map(|flood| flood.took).max().unwrap(),
    }
}

/// What one replica alone would let through: a full budget, and what comes back meanwhile.
fn alone(took: Duration) -> f64 {
    f64::from(PER_MINUTE) * (1.0 + took.as_secs_f64() / 60.0)
}

#[tokio::test(flavor = "multi_thread")]
async fn three_replicas_together_let_an_instance_do_what_one_alone_would_within_five_percent() {
    let place = Place::of(3).await;
    place.world.simulators.set_recording(false);
    place.know_each_other().await;
    let instance = grown_instance();
    let relays: Vec<_> = place.replicas().collect();
    let flood = flood_all(&relays, &instance).await;
    let (least, most) = (alone(flood.spent) * 0.95, place.most(alone(flood.took)).await);
    assert!(
        (least..=most).contains(&f64::from(flood.sent)),
        "{}, not {least} to {most}",
        flood.sent
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_budget_of_an_instance_that_one_replica_has_spent_is_spent_at_the_others_too() {
    let place = Place::of(2).await;
    place.world.simulators.set_recording(false);
    place.know_each_other().await;
    let instance = grown_instance();
    let began = Instant::now();
    let flood = flood_all(&[&place.world.relay], &instance).await;
    assert!(
        f64::from(flood.sent) >= alone(flood.spent) * 0.95,
        "{}",
        flood.sent
    );
    let answer = place.others[0].batch(&instance, &messages(450)).await;
    let most = place.most(alone(began.elapsed())).await;
    assert!(f64::from(flood.sent + sent(&answer)) <= most, "{answer:?}");
    let refused = answer.body["results"].as_array().unwrap().last().unwrap();
    assert_eq!(refused["error"], "rate_limited");
    assert!(
        (1..=2).contains(&refused["retryAfterSeconds"].as_u64().unwrap()),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn young_instances_of_one_address_share_one_budget_over_replicas() {
    let place = Place::of(2).await;
    place.world.simulators.set_recording(false);
    place.know_each_other().await;
    let (began, mut total) = (Instant::now(), 0);
    for relay in place.replicas() {
        for _ in 0..2 {
            let young = relay.enroll_from("203.0.113.20").await;
            total += sent(&relay.batch(&young, &messages(450)).await);
        }
    }
    let most = place
        .most(1200.0 * (1.0 + began.elapsed().as_secs_f64() / 60.0))
        .await;
    assert!(
        (1140.0..=most).contains(&f64::from(total)),
        "1,200, not four times 450: {total} of {most}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_limit_holds_at_all_replicas() {
    let place = Place::of(2).await;
    place.world.simulators.set_recording(false);
    let instance = grown_instance();
    for relay in place.replicas() {
        assert_eq!(sent(&relay.batch(&instance, &messages(50)).await), 50);
    }
    let began = Instant::now();
    place.admin(&instance, "limit", json!({ "perMinute": 30 })).await;
    place.all_hear().await;
    let relays: Vec<_> = place.replicas().collect();
    let wanted = messages(100);
    let answers = join_all(relays.iter().map(|relay| relay.batch(&instance, &wanted))).await;
    let total: u32 = answers.iter().map(sent).sum();
    let most = place
        .most(30.0 * (1.1 + began.elapsed().as_secs_f64() / 60.0))
        .await;
    assert!(
        (28.0..=most).contains(&f64::from(total)),
        "a fresh budget of 30 for both: {total} of {most}"
    );
}

fn enroll(relay: &Relay, address: &str) -> impl Future<Output = Answer> {
    let request = relay.request(Method::POST, "/v1/enroll");
    Answer::from(request.header("x-forwarded-for", address))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_enrolls_as_often_at_two_replicas_as_at_one() {
    let place = Place::of(2).await;
    let replicas: Vec<_> = place.replicas().collect();
    let (began, mut enrolled) = (Instant::now(), 0);
    let refused = loop {
        let answer = enroll(replicas[enrolled % 2], "203.0.113.1").await;
        if answer.status != 200 {
            break answer;
        }
        enrolled += 1;
    };
    // Ten, and one for each six seconds that it took.
    let most = place.most(10.0 + began.elapsed().as_secs_f64() / 6.0).await;
    assert!(enrolled >= 10 && enrolled as f64 <= most, "{enrolled} of {most}");
    assert_eq!((refused.status.as_u16(), refused.word()), (429, "rate_limited"));
    assert!((1..=6).contains(&refused.retry_after()), "{refused:?}");
    for replica in replicas {
        assert_eq!(enroll(replica, "203.0.113.2").await.status, 200);
    }
}
