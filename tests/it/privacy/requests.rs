//! Every way a request can go, each with planted values in all its parts.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{ADDRESS, HEX_MARK, MARK};
use crate::support::{DEADLINE, relay::Answer, world::World};

/// Headers that no proxy or client is kept from sending.
fn marked(request: RequestBuilder) -> RequestBuilder {
    request
        .header("x-forwarded-for", ADDRESS)
        .header("user-agent", MARK)
        .header("referer", format!("https://{MARK}.example/{MARK}"))
        .header("cookie", format!("session={MARK}"))
        .header("x-request-id", HEX_MARK.repeat(2))
}

/// The addresses of devices that go in: right, wrong and hostile.
fn tokens(world: &World) -> Vec<(Platform, String)> {
    let apns = format!("{HEX_MARK}{}", "ab".repeat(20));
    let channel = format!("{}%2f{MARK}", world.simulators.wns.new_channel());
    vec![
        (Platform::Ios, apns.clone()),
        (Platform::Macos, apns),
        (Platform::Macos, format!("not hexadecimal {MARK}")),
        (Platform::Android, format!("{MARK}:APA91b")),
        (Platform::Android, format!("\u{e9}{MARK}")),
        (Platform::Windows, channel),
        (Platform::Windows, format!("https://{MARK}.example/?token={MARK}")),
    ]
}

/// One push to each, alone and in a batch, twice each under one idempotency key.
pub async fn push_everywhere(world: &World, key: &str, turn: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut messages = Vec::new();
    for (number, (platform, token)) in tokens(world).into_iter().enumerate() {
        let mut body = json!({
            "deviceToken": token, "platform": platform.as_str(), "encryptedPayload": format!("{MARK}sealed"),
            "collapseId": MARK, "idempotencyKey": format!("{MARK}-{turn}-{number}"), "instanceKey": key,
        });
        for payload in [format!("{MARK}sealed"), format!("{MARK}another")] {
            body["encryptedPayload"] = json!(payload);
            let request = world.relay.request(Method::POST, "/v1/push");
            answers.push(Answer::from(marked(request.json(&body))).await);
        }
        body["idempotencyKey"] = json!(format!("{MARK}-{turn}-{number}-batch"));
        messages.push(body);
    }
    let request = world
        .relay
        .request(Method::POST, "/v1/push/batch")
        .bearer_auth(key);
    answers.push(Answer::from(marked(request.json(&json!({ "messages": messages })))).await);
    answers
}

/// Requests that are wrong in every part.
pub async fn malformed(world: &World, key: &str) -> Vec<Answer> {
    let relay = &world.relay;
    let push = || marked(relay.request(Method::POST, "/v1/push"));
    let broken =
        format!("{{\"deviceToken\":\"{MARK}\",\"platform\":\"{MARK}\",\"encryptedPayload\":[\"{MARK}\"]");
    let mistyped = json!({ "deviceToken": [MARK], "platform": MARK, "encryptedPayload": { MARK: MARK } });
    let right = json!({ "deviceToken": "ab", "platform": "ios", "encryptedPayload": MARK });
    let forged = format!("{MARK}.{MARK}.{MARK}");
    let admin = |path: &str| {
        reqwest::Client::builder()
            .no_proxy()
            .build()
            .unwrap()
            .post(format!("{}{path}", relay.admin_url))
            .bearer_auth(MARK)
    };
    let requests = vec![
        push().bearer_auth(&forged).body(broken.clone()),
        push().bearer_auth(key).body(broken.clone()),
        push().body(broken),
        push().bearer_auth(key).json(&mistyped),
        push()
            .bearer_auth(key)
            .header("content-type", format!("text/{MARK}"))
            .body(MARK),
        push()
            .bearer_auth(key)
            .json(&right)
            .header("idempotency-key", MARK.repeat(20)),
        push()
            .bearer_auth(key)
            .header("x-forwarded-for", MARK)
            .json(&right),
        push().bearer_auth(key).body(MARK.repeat(16 * 1024)),
        push()
            .bearer_auth(key)
            .json(&json!({ "deviceToken": HEX_MARK, "platform": "ios",
            "encryptedPayload": MARK.repeat(400) })),
        push()
            .header("authorization", format!("{MARK} {MARK}"))
            .json(&right),
        marked(relay.request(Method::GET, &format!("/v1/{MARK}?{MARK}={MARK}"))),
        marked(relay.request(Method::from_bytes(MARK.as_bytes()).unwrap(), "/v1/push")),
        marked(relay.request(Method::POST, "/v1/enroll"))
            .json(&json!({ "name": format!("{MARK}\u{7}"), "contact": format!("{MARK}@") })),
        marked(relay.request(Method::POST, "/v1/keys/rotate")).bearer_auth(&forged),
        marked(relay.request(Method::DELETE, "/v1/enrollment")).bearer_auth(&forged),
        admin("/admin/v1/instances"),
        admin(&format!("/admin/v1/instances/{MARK}/revoke")),
        relay.admin_request(Method::POST, &format!("/admin/v1/instances/{MARK}/revoke")),
        relay.admin_request(Method::GET, &format!("/admin/v1/instances?after={MARK}")),
        relay
            .admin_request(Method::POST, "/admin/v1/invites")
            .json(&json!({ MARK: MARK })),
    ];
    let mut answers = Vec::new();
    for request in requests {
        answers.push(Answer::from(request).await);
    }
    answers
}

/// What is no HTTP at all, on the public listener.
pub async fn garbage(world: &World) {
    let address = world.relay.url.trim_start_matches("http://");
    for line in [
        format!("{MARK} {MARK} {MARK}\r\n\r\n"),
        format!("GET /{MARK} HTTP/1.1\r\nhost: a\r\n{MARK}\u{1}: {MARK}\r\n\r\n"),
        format!("POST /v1/push HTTP/1.1\r\nhost: {MARK}\r\ncontent-length: {MARK}\r\n\r\n{MARK}"),
        format!("POST /v1/push HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{MARK}\r\n"),
        format!(
            "GET / HTTP/1.1\r\nhost: a\r\nx-long: {}\r\n\r\n",
            MARK.repeat(20_000)
        ),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // It may be cut while we still send.
        let _ = stream.write_all(line.as_bytes()).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = timeout(DEADLINE, stream.read_to_end(&mut answer))
            .await
            .expect("an end");
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains(MARK), "{answer}");
    }
}

/// Name and contact of an instance, which its record alone may hold.
pub async fn enroll_with_a_name(world: &World, name: &str, contact: &str) -> Value {
    let request = marked(world.relay.request(Method::POST, "/v1/enroll"));
    let answer = Answer::from(request.json(&json!({ "name": name, "contact": contact }))).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body
}
