//! Every error code of the contract, provoked: a code that no request brings about is no part of the interface.
//!
//! [`provoke`] is the table. It matches all codes, so a new one does not compile until it has its line here.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sovereign_relay::{app::Ports, http::Tuning};
use sovereign_relay_protocol::{error::ErrorCode, platform::Platform, signal::SUBPROTOCOL};
use sovereign_relay_simulator::{Simulator, SimulatorOptions, simulator::Provider};

use crate::support::{
    DEADLINE,
    in_process::{InProcess, Treacherous},
    raw,
    relay::{Answer, Instance, Relay, RelayOptions},
    world::World,
};

/// Pushes at the same time: more than the 20 calls that a breaker wants to have seen.
const ROUND: usize = 25;

/// How a code is proved.
enum Proof {
    /// By this answer.
    Here(Answer),
    /// By the tests of the HTTP side, where a relay can be made that no operator can run. The reason why.
    Inside(&'static str),
}

async fn provoke(code: ErrorCode, world: &World) -> Proof {
    use ErrorCode as Code;
    let relay = &world.relay;
    let answer = match code {
        Code::InvalidRequest => push(relay, &someone(relay, 1).await, json!({})).await,
        Code::Unauthorized => Answer::from(post(relay, "/v1/push/batch")).await,
        Code::Revoked => after(relay, 2, &["revoke"]).await,
        Code::Suspended => after(relay, 3, &["suspend", "--reason", "a test", "--for", "1h"]).await,
        Code::EnrollmentClosed => on_another("RELAY_ENROLLMENT", "closed", Method::POST, "/v1/enroll").await,
        Code::NotFound => relay.get("/v1/nothing").await,
        Code::MethodNotAllowed => relay.get("/v1/push").await,
        Code::RequestTimeout => request_timeout().await,
        Code::SessionFull => at_a_rendezvous(relay, 50, &["required"; 3]).await,
        Code::SettingsConflict => at_a_rendezvous(relay, 60, &["required", "optional"]).await,
        Code::OriginNotAllowed => origin_not_allowed().await,
        Code::IdempotencyConflict => idempotency_conflict(world).await,
        Code::PayloadTooLarge => {
            let mut body = world.device(Platform::Ios).push(&json!({}));
            body["encryptedPayload"] = json!("x".repeat(5000));
            push(relay, &someone(relay, 4).await, body).await
        }
        Code::UnsupportedMediaType => {
            let text = post(relay, "/v1/push").header("content-type", "text/plain");
            Answer::from(text.body("{}")).await
        }
        Code::RateLimited => rate_limited(relay).await,
        Code::InternalError => internal_error().await,
        Code::SendFailed => unreachable(world, &world.simulators.fcm, Platform::Android, "send_failed").await,
        Code::NotConfigured => {
            return Proof::Inside("a relay without an enrollment secret makes one");
        }
        Code::PlatformNotConfigured => {
            let bare = Relay::start(RelayOptions::new()).await;
            let body = world.device(Platform::Ios).push(&json!({}));
            push(&bare, &bare.enroll().await, body).await
        }
        Code::Overloaded => unreachable(world, &world.simulators.wns, Platform::Windows, "overloaded").await,
        Code::Draining => draining().await,
    };
    Proof::Here(answer)
}

/// An instance from an address of its own.
async fn someone(relay: &Relay, number: u8) -> Instance {
    relay.enroll_from(&format!("203.0.113.{number}")).await
}

fn post(relay: &Relay, path: &str) -> RequestBuilder {
    relay.request(Method::POST, path)
}

async fn push(relay: &Relay, instance: &Instance, body: Value) -> Answer {
    relay.push(instance, &body).await
}

/// A push after the operator did something to the instance.
async fn after(relay: &Relay, number: u8, verb: &[&str]) -> Answer {
    let instance = someone(relay, number).await;
    let arguments = [&["instances", verb[0], &*instance.id], &verb[1..]].concat();
    relay.cli(&arguments).await.done();
    push(
        relay,
        &instance,
        json!({ "deviceToken": "ab", "platform": "ios", "encryptedPayload": "sealed" }),
    )
    .await
}

/// A request to a relay without credentials and with one setting.
async fn on_another(name: &str, value: &str, method: Method, path: &str) -> Answer {
    let relay = Relay::start(RelayOptions::new().set(name, value)).await;
    Answer::from(relay.request(method, path)).await
}

async fn request_timeout() -> Answer {
    let tuning = Tuning {
        body_time: Duration::from_millis(100),
        ..Tuning::default()
    };
    let relay = InProcess::start(Ports {
        tuning,
        ..Ports::default()
    })
    .await;
    raw::exchange(
        &relay.url,
        "POST /v1/push HTTP/1.1\r\nhost: relay\r\ncontent-length: 9\r\n\r\n{",
    )
    .await
}

async fn idempotency_conflict(world: &World) -> Answer {
    let instance = someone(&world.relay, 5).await;
    let mut body = world.device(Platform::Ios).push(&json!({ "number": 1 }));
    body["idempotencyKey"] = json!("a-key");
    assert_eq!(world.relay.push(&instance, &body).await.word(), "sent");
    body["encryptedPayload"] = json!("another");
    push(&world.relay, &instance, body).await
}

/// As many instances as there are words meet with their `e2e`; the last one's answer.
async fn at_a_rendezvous(relay: &Relay, first: u8, e2e: &[&str]) -> Answer {
    let mut last = None;
    for (number, e2e) in (first..).zip(e2e) {
        let instance = someone(relay, number).await;
        let body = json!({ "rendezvous": format!("{first:043}"), "e2e": e2e });
        let request = post(relay, "/v1/signal/sessions").bearer_auth(&instance.key);
        last = Some(Answer::from(request.json(&body)).await);
    }
    last.unwrap()
}

/// The handshake of a page that the operator didn't name.
async fn origin_not_allowed() -> Answer {
    let options = RelayOptions::new().set("RELAY_ALLOWED_ORIGINS", "https://app.example");
    let relay = Relay::start(options).await;
    let request = relay.request(Method::GET, "/v1/signal");
    let handshake = request
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", SUBPROTOCOL)
        .header("origin", "https://other.example");
    Answer::from(handshake).await
}

async fn rate_limited(relay: &Relay) -> Answer {
    loop {
        let enrollment = post(relay, "/v1/enroll").header("x-forwarded-for", "203.0.113.6");
        let answer = Answer::from(enrollment).await;
        if answer.status != 200 {
            return answer;
        }
    }
}

async fn internal_error() -> Answer {
    let provider = Treacherous::new();
    let providers = Some(provider.everywhere());
    let relay = InProcess::start(Ports {
        providers,
        ..Ports::default()
    })
    .await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let enrolled = Answer::from(http.post(format!("{}/v1/enroll", relay.url))).await;
    provider.panic_next();
    let body = json!({ "deviceToken": "ab", "platform": "ios", "encryptedPayload": "sealed" });
    let request = http.post(format!("{}/v1/push", relay.url)).json(&body);
    Answer::from(request.bearer_auth(enrolled.body["instanceKey"].as_str().unwrap())).await
}

/// Pushes to a provider whose port is closed, until one is answered so.
async fn unreachable<P: Provider>(
    world: &World,
    provider: &Simulator<P>,
    platform: Platform,
    word: &str,
) -> Answer {
    let instance = someone(&world.relay, 10 + platform as u8).await;
    let one = || push(&world.relay, &instance, world.device(platform).push(&json!({})));
    let first = one().await;
    assert_eq!(first.word(), "sent", "{first:?}");
    provider.refuse_connections(true).await.unwrap();
    provider.kill_connections();
    let asking = async {
        loop {
            let answers = join_all((0..ROUND).map(|_| one())).await;
            if let Some(answer) = answers.into_iter().find(|answer| answer.word() == word) {
                return answer;
            }
        }
    };
    tokio::time::timeout(DEADLINE, asking)
        .await
        .unwrap_or_else(|_| panic!("no {word}"))
}

async fn draining() -> Answer {
    let mut relay = Relay::start(RelayOptions::new()).await;
    relay.terminate();
    relay.logged("\"stopping\"").await;
    relay.get("/readyz").await
}

/// Whether waiting helps, so that the answer must say for how long; `None` where it depends.
fn names_a_moment(code: ErrorCode) -> Option<bool> {
    match (code, code.status()) {
        (ErrorCode::Suspended, _) => None,
        (ErrorCode::NotConfigured | ErrorCode::PlatformNotConfigured, _) => Some(false),
        (_, status) => Some(matches!(status, 429 | 502 | 503)),
    }
}

fn check(code: ErrorCode, answer: &Answer) {
    assert_eq!(
        (answer.status.as_u16(), answer.word()),
        (code.status(), code.as_str()),
        "{answer:?}"
    );
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(answer.headers.contains_key("x-request-id"));
    let message = answer.body["message"].as_str().unwrap();
    assert!(message.split(' ').count() >= 3, "{message}");
    if let Some(expected) = names_a_moment(code) {
        assert_eq!(answer.headers.contains_key("retry-after"), expected, "{answer:?}");
        assert!(!expected || answer.retry_after() >= 1);
    }
}

#[tokio::test]
async fn every_error_code_is_brought_about_by_some_request_and_has_the_one_form() {
    // Short, since some codes come only when it is over; all are provoked at once.
    let options = RelayOptions::new().set("RELAY_PUSH_DEADLINE", "5s");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let document = world.relay.get("/openapi.json").await.body;
    let paths = document["paths"].to_string();
    let proofs = ErrorCode::ALL.map(async |code| (code, provoke(code, &world).await));
    for (code, proof) in join_all(proofs).await {
        match proof {
            Proof::Here(answer) => check(code, &answer),
            Proof::Inside(why) => assert!(paths.contains(code.as_str()), "no route says {code:?} ({why})"),
        }
    }
}
