//! kill -9 at any moment loses no acknowledged revocation.

use std::{collections::HashSet, sync::Arc, time::Duration};

use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::support::relay::{Answer, Instance, Relay, RelayOptions};

const ROUNDS: usize = 4;
const INSTANCES: usize = 40;
/// Of a round's calls, this many are acknowledged before the kill; the rest are under way.
const ACKNOWLEDGED_FIRST: usize = 12;

fn options(directory: &TempDir) -> RelayOptions {
    RelayOptions::new().data_dir(directory.path())
}

/// Enrolls from a different address each time, since one address may enroll ten a minute.
async fn enroll(relay: &Relay, number: usize) -> Instance {
    let address = format!("198.51.{}.{}", number / 200, number % 200 + 1);
    let request = relay
        .request(Method::POST, "/v1/enroll")
        .header("x-forwarded-for", address);
    let answer = Answer::from(request).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = |name: &str| answer.body[name].as_str().unwrap().to_owned();
    Instance {
        id: text("instanceId"),
        key: text("instanceKey"),
    }
}

/// Ends an instance, by the operator or by itself. `true` when that was acknowledged.
async fn end(relay: &Relay, instance: &Instance, number: usize) -> bool {
    let request = if number.is_multiple_of(2) {
        relay.admin_request(
            Method::POST,
            &format!("/admin/v1/instances/{}/revoke", instance.id),
        )
    } else {
        let address = format!("203.0.113.{}", number % 200 + 1);
        relay
            .request(Method::DELETE, "/v1/enrollment")
            .header("x-forwarded-for", address)
            .bearer_auth(&instance.key)
    };
    request
        .timeout(Duration::from_secs(10))
        .send()
        .await
        .is_ok_and(|response| response.status().is_success())
}

async fn refusal(relay: &Relay, instance: &Instance) -> String {
    let push = json!({ "deviceToken": "ab", "platform": "ios", "encryptedPayload": "x" });
    relay.push(instance, &push).await.word().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acknowledged_revocation_holds_after_kill_9() {
    let directory = TempDir::new().unwrap();
    let mut revoked: Vec<Instance> = Vec::new();
    for round in 0..ROUNDS {
        let relay = Arc::new(Relay::start(options(&directory)).await);
        let mut instances = Vec::new();
        for number in 0..INSTANCES {
            instances.push(enroll(&relay, round * INSTANCES + number).await);
        }
        let mut calls = JoinSet::new();
        for (number, instance) in instances.iter().cloned().enumerate() {
            let relay = Arc::clone(&relay);
            calls.spawn(async move { (end(&relay, &instance, number).await, instance) });
        }
        let mut acknowledged = Vec::new();
        while acknowledged.len() < ACKNOWLEDGED_FIRST + round {
            let (done, instance) = calls.join_next().await.unwrap().unwrap();
            acknowledged.extend(done.then_some(instance));
        }
        relay.kill_now();
        while let Some(call) = calls.join_next().await {
            let (done, instance) = call.unwrap();
            acknowledged.extend(done.then_some(instance));
        }
        drop(relay);
        revoked.extend(acknowledged);
    }
    let relay = Relay::start(options(&directory)).await;
    let distinct: HashSet<_> = revoked.iter().map(|instance| &instance.id).collect();
    assert!(distinct.len() >= ROUNDS * ACKNOWLEDGED_FIRST);
    for instance in &revoked {
        assert_eq!(refusal(&relay, instance).await, "revoked");
    }
    let fresh = enroll(&relay, ROUNDS * INSTANCES).await;
    assert_eq!(
        refusal(&relay, &fresh).await,
        "platform_not_configured",
        "others go on"
    );
}
