//! Nothing of the content and none of the secrets is found anywhere: marked ones are planted in every way a request
//! can go, then everything the relay wrote is searched for them.

use std::path::Path;

use reqwest::Method;
use serde_json::json;
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{
    Behaviour, SimulatorOptions, apns::verdict as apns, fcm::verdict as fcm, wns::verdict as wns,
};

use crate::support::{
    relay::{Answer, RelayOptions},
    world::World,
};

const MARK: &str = "MARKEDBYTHETEST";
/// In a form that may be a hexadecimal token.
const HEX_MARK: &str = "feedfacecafebeef00c0ffee";
const ADDRESS: &str = "198.51.100.77";

/// Everything planted, as text.
struct Planted(Vec<String>);

impl Planted {
    fn new() -> Self {
        Self(vec![
            MARK.into(),
            MARK.to_lowercase(),
            HEX_MARK.into(),
            HEX_MARK.to_uppercase(),
            ADDRESS.into(),
        ])
    }

    fn search(&self, place: &str, haystack: &[u8]) {
        for planted in &self.0 {
            let found = haystack
                .windows(planted.len())
                .position(|window| window == planted.as_bytes());
            if let Some(at) = found {
                let around = &haystack[at.saturating_sub(200)..(at + 100).min(haystack.len())];
                panic!("{planted} found in {place}: {}", String::from_utf8_lossy(around));
            }
        }
    }

    fn search_directory(&self, directory: &Path) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.search_directory(&path);
            } else {
                self.search(&path.display().to_string(), &std::fs::read(&path).unwrap());
            }
        }
    }
}

async fn push_everywhere(world: &World, key: &str) -> Vec<Answer> {
    let mut answers = Vec::new();
    let channel = format!("{}%2f{MARK}", world.simulators.wns.new_channel());
    let tokens = [
        (Platform::Ios, format!("{HEX_MARK}{}", "ab".repeat(20))),
        (Platform::Macos, format!("not hexadecimal {MARK}")),
        (Platform::Android, format!("{MARK}:APA91b")),
        (Platform::Windows, channel),
        (Platform::Windows, format!("https://{MARK}.example/?token={MARK}")),
    ];
    for (platform, token) in tokens {
        let body = json!({
            "deviceToken": token, "platform": platform.as_str(), "encryptedPayload": format!("{MARK}sealed"),
            "collapseId": MARK, "idempotencyKey": format!("{MARK}-{}", answers.len()), "instanceKey": key,
        });
        let request = world
            .relay
            .request(Method::POST, "/v1/push")
            .header("x-forwarded-for", ADDRESS);
        answers.push(Answer::from(request.json(&body)).await);
    }
    answers
}

#[tokio::test]
async fn marked_content_keys_and_addresses_are_found_in_no_log_metric_store_or_error() {
    let options = RelayOptions::new()
        .set("RELAY_LOG", "trace")
        .set("RELAY_PUSH_DEADLINE", "1s");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let mut planted = Planted::new();
    let enroll = world
        .relay
        .request(Method::POST, "/v1/enroll")
        .header("x-forwarded-for", ADDRESS);
    let enrolled = Answer::from(enroll).await;
    let key = enrolled.body["instanceKey"].as_str().unwrap().to_owned();
    planted.0.push(key.rsplit('.').next().unwrap().to_owned());
    let invite = world
        .relay
        .admin(
            Method::POST,
            "/admin/v1/invites",
            Some(json!({ "ttlSeconds": 60 })),
        )
        .await;
    planted.0.push(invite.body["invite"].as_str().unwrap().to_owned());

    let mut answers = push_everywhere(&world, &key).await;
    let echo = |behaviour: Behaviour| behaviour.header("x-echo", MARK);
    for (on_apns, on_fcm, on_wns) in [
        (apns::unregistered(1), fcm::unregistered(), wns::channel_expired()),
        (
            apns::refused(403, MARK),
            fcm::error(403, "X", MARK, vec![]),
            wns::refused(410, MARK),
        ),
        (
            Behaviour::kill_connection(),
            Behaviour::kill_connection(),
            Behaviour::kill_connection(),
        ),
        (
            Behaviour::never_answer(),
            Behaviour::never_answer(),
            Behaviour::never_answer(),
        ),
    ] {
        world.simulators.apns.script().always(echo(on_apns));
        world.simulators.fcm.script().always(echo(on_fcm));
        world.simulators.wns.script().always(echo(on_wns));
        answers.extend(push_everywhere(&world, &key).await);
    }
    let malformed =
        format!("{{\"deviceToken\":\"{MARK}\",\"platform\":\"{MARK}\",\"encryptedPayload\":[\"{MARK}\"]");
    let request = world
        .relay
        .request(Method::POST, "/v1/push")
        .bearer_auth(format!("{MARK}.{MARK}.{MARK}"));
    answers.push(Answer::from(request.body(malformed.clone())).await);
    answers.push(Answer::from(world.relay.request(Method::POST, "/v1/push").body(malformed)).await);
    answers.push(world.relay.get(&format!("/v1/{MARK}?{MARK}={MARK}")).await);
    let named = json!({ "name": format!("{MARK}\u{7}"), "contact": format!("{MARK}@") });
    answers.push(Answer::from(world.relay.request(Method::POST, "/v1/enroll").json(&named)).await);

    assert!(answers.iter().any(|answer| answer.body["result"] == "sent"));
    assert!(
        answers
            .iter()
            .any(|answer| answer.body["result"] == "invalid_token")
    );
    assert!(
        answers.iter().any(|answer| answer.status == 400)
            && answers.iter().any(|answer| answer.status == 401)
    );
    for answer in &answers {
        planted.search(
            "an answer",
            format!("{:?}{}", answer.headers, answer.body).as_bytes(),
        );
    }
    planted.search("/metrics", world.relay.metrics().await.as_bytes());
    planted.search(
        "/readyz",
        world.relay.get("/readyz").await.body.to_string().as_bytes(),
    );
    let instances = world.relay.admin(Method::GET, "/admin/v1/instances", None).await;
    planted.search("the admin API", instances.body.to_string().as_bytes());
    planted.search_directory(world.relay.data_dir());
    world.relay.terminate();
    let (_, log) = world.stopped().await;
    assert!(
        log.contains("\"TRACE\"") || log.contains("\"DEBUG\""),
        "the log was verbose"
    );
    planted.search("the log", log.as_bytes());
}
