//! Many callers at once against a slow provider.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::json;
use sovereign_relay_simulator::{Behaviour, SimulatorOptions};
use tokio::task::JoinSet;

use crate::support::{
    relay::{Instance, RelayOptions},
    until,
    world::World,
};

const SECRET: &str = "the secret of a relay under load, 40 b..";
const CALLERS: u64 = 2000;
const ROUNDS: u64 = 6;
/// A quarter of the callers share one instance, which so meets its own limits.
const GREEDY_SHARE: u64 = 4;

/// A grown instance: the key of the earlier relay, which needs no enrollment.
fn grown_instance(number: u64) -> Instance {
    let id = uuid::Uuid::from_u128(0x4000_8000_0000_0000_0000 + u128::from(number)).to_string();
    let claims = json!({ "instanceId": id, "iat": 1_700_000_000 });
    let secret = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    let key = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &secret).unwrap();
    Instance { id, key }
}

async fn round(world: &Arc<World>, round: u64) -> BTreeMap<String, u64> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let world = Arc::clone(world);
        callers.spawn(async move {
            let instance = grown_instance(if caller % GREEDY_SHARE == 0 { 0 } else { caller });
            let token = format!("{:064x}", round * CALLERS + caller);
            let push = json!({ "deviceToken": token, "platform": "ios", "encryptedPayload": "sealed" });
            let answer = world.relay.push(&instance, &push).await;
            format!("{} {}", answer.status.as_u16(), answer.word())
        });
    }
    let mut answers = BTreeMap::new();
    while let Some(answer) = callers.join_next().await {
        *answers.entry(answer.unwrap()).or_default() += 1;
    }
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_callers_against_a_slow_provider_get_only_intended_answers_and_memory_stays_flat() {
    let options = RelayOptions::new()
        .set("RELAY_ENROLLMENT_SECRET", SECRET)
        // So many at once take a slow machine longer than ten seconds.
        .set("RELAY_PUSH_DEADLINE", "17s")
        .set("RELAY_DRAIN_GRACE", "0s")
        .set("RELAY_LOG", "warn,sovereign_relay::app=info");
    let world = Arc::new(World::start_with(SimulatorOptions::default(), options).await);
    world
        .simulators
        .apns
        .script()
        .always(Behaviour::accept().after(Duration::from_millis(50)));
    let (mut resident, mut refused) = (Vec::new(), 0);
    for number in 0..ROUNDS {
        let answers = round(&world, number).await;
        let intended = ["200 sent", "429 rate_limited", "503 overloaded"];
        assert!(
            answers.keys().all(|answer| intended.contains(&answer.as_str())),
            "{answers:?}"
        );
        assert!(
            answers["200 sent"] >= CALLERS * 3 / 4,
            "those within their limits are served: {answers:?}"
        );
        refused += answers.get("429 rate_limited").copied().unwrap_or_default();
        resident.push(world.relay.resident_kib());
    }
    assert!(
        refused > 0,
        "one instance has at most 256 at once and 600 a minute"
    );
    let (early, last) = (resident[1], resident[resident.len() - 1]);
    assert!(
        last < early + early / 4,
        "resident KiB after each round: {resident:?}"
    );
    assert_eq!(world.simulators.apns.limit_violations(), 0);
    assert_eq!(world.simulators.apns.resets_received(), 0);
    until("none is left behind", async || {
        world.relay.metric("relay_pushes_in_flight", "").await == 0.0
    })
    .await;
}
