//! Limits and memories as instances meet them.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use sovereign_relay_protocol::platform::Platform;
use sovereign_relay_simulator::{SimulatorOptions, apns::verdict};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpSocket, TcpStream},
};

use crate::support::{
    DEADLINE,
    clock::HandClock,
    in_process::InProcess,
    relay::{Answer, Instance, RelayOptions},
    until,
    world::World,
};

fn enrollment(url: &str, address: &str) -> RequestBuilder {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.post(format!("{url}/v1/enroll"));
    request.header("x-forwarded-for", address)
}

async fn enroll_from(url: &str, address: &str) -> Answer {
    Answer::from(enrollment(url, address)).await
}

fn message(token: u64) -> Value {
    json!({ "deviceToken": format!("{token:064x}"), "platform": "ios", "encryptedPayload": "sealed" })
}

fn instance(enrolled: &Answer) -> Instance {
    let text = |name: &str| enrolled.body[name].as_str().unwrap().to_owned();
    Instance {
        id: text("instanceId"),
        key: text("instanceKey"),
    }
}

/// How many of a batch's results hold `result` or `error`.
fn count(answer: &Answer, word: &str) -> usize {
    let results = answer.body["results"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer:?}"));
    results
        .iter()
        .filter(|result| result["result"] == word || result["error"] == word)
        .count()
}

/// Pushes or enrollments that a budget gave back since then.
fn refilled(per_minute: usize, since: Instant) -> usize {
    (since.elapsed().as_secs_f64() * per_minute as f64 / 60.0).ceil() as usize
}

#[tokio::test]
async fn one_address_enrolls_ten_a_minute_and_a_forged_header_does_not_help() {
    let relay = InProcess::start(HandClock::new().ports()).await;
    let enroll_from = |address| enroll_from(&relay.url, address);
    for _ in 0..10 {
        assert_eq!(enroll_from("203.0.113.9").await.status, 200);
    }
    let refused = enroll_from("203.0.113.9").await;
    assert_eq!((refused.status.as_u16(), refused.word()), (429, "rate_limited"));
    assert!((1..=60).contains(&refused.retry_after()));
    let behind_a_forgery = enroll_from("8.8.8.8, 203.0.113.9").await;
    assert_eq!(behind_a_forgery.status, 429, "the last entry is the proxy's");
    let forged = enrollment(&relay.url, "203.0.113.9")
        .header("forwarded", "for=8.8.4.4")
        .header("x-real-ip", "8.8.4.4");
    assert_eq!(Answer::from(forged).await.status, 429);
    let neighbour = enroll_from("203.0.113.10").await;
    assert_eq!(neighbour.status, 200, "a neighbour is another address");
}

#[tokio::test]
async fn enrollments_of_one_address_share_one_budget_while_they_are_young() {
    let world = World::start().await;
    world.simulators.set_recording(false);
    let mut sent = 0;
    let since = Instant::now();
    for number in 0..4 {
        let enrolled = enroll_from(&world.relay.url, "203.0.113.20").await;
        let messages: Vec<Value> = (0..500).map(|token| message(number * 500 + token)).collect();
        sent += count(&world.relay.batch(&instance(&enrolled), &messages).await, "sent");
    }
    assert!(
        (1200..=1200 + refilled(1200, since)).contains(&sent),
        "the address's 1,200 a minute, not four times 500: {sent}"
    );
    let elsewhere = enroll_from(&world.relay.url, "203.0.113.21").await;
    assert_eq!(
        count(
            &world.relay.batch(&instance(&elsewhere), &[message(1)]).await,
            "sent"
        ),
        1
    );
}

#[tokio::test]
async fn a_hundred_enrollments_from_the_addresses_of_one_customer_stop_at_the_customers_budget() {
    let relay = InProcess::start(HandClock::new().ports()).await;
    // One address in IPv6 is a /64, and one customer often has a whole /48.
    let mut made = 0;
    for number in 0..15 {
        for host in 1..=10 {
            let address = format!("2001:db8:77:{number:x}::{host:x}");
            made += usize::from(enroll_from(&relay.url, &address).await.status == 200);
        }
        let eleventh = enroll_from(&relay.url, &format!("2001:db8:77:{number:x}:5::1")).await;
        assert_eq!(eleventh.word(), "rate_limited", "the same /64");
    }
    assert_eq!(made, 100, "ten times an address's ten a minute");
    let neighbour = enroll_from(&relay.url, "2001:db8:78::1").await;
    assert_eq!(neighbour.status, 200, "another customer is not held up");
}

#[tokio::test]
async fn an_instance_has_600_a_minute_unless_the_operator_says_otherwise_and_the_named_moment_is_the_right_one()
 {
    let world = World::start().await;
    world.simulators.set_recording(false);
    let owner = world.relay.enroll().await;
    let mut sent = 0;
    let since = Instant::now();
    for batch in 0..2 {
        let messages: Vec<Value> = (0..400).map(|token| message(batch * 400 + token)).collect();
        sent += count(&world.relay.batch(&owner, &messages).await, "sent");
    }
    assert!((600..=600 + refilled(600, since)).contains(&sent), "{sent}");
    let limit = format!("/admin/v1/instances/{}/limit", owner.id);
    let changed = world
        .relay
        .admin(Method::POST, &limit, Some(json!({ "perMinute": 30 })))
        .await;
    assert!(changed.status.is_success(), "{changed:?}");
    // The first refusals may name less: what is left of the two seconds.
    let (refused, refusal_asked_at, refused_at) = loop {
        let asked_at = Instant::now();
        let answer = world.relay.push(&owner, &message(9)).await;
        if answer.status == 429 && answer.retry_after() == 2 {
            break (answer, asked_at, Instant::now());
        }
    };
    // Rounded up to whole seconds: not a second too late, and never too early.
    let named = Duration::from_secs(refused.retry_after());
    assert_eq!(
        named,
        Duration::from_secs(2),
        "a push each two seconds: {refused:?}"
    );
    let passed_after = tokio::time::timeout(DEADLINE, async {
        loop {
            let sent_after = refused_at.elapsed();
            let answer = world.relay.push(&owner, &message(9)).await;
            match answer.status.as_u16() {
                200 => break refusal_asked_at.elapsed(),
                429 => assert!(
                    sent_after < named,
                    "refused {sent_after:?} later, named {named:?}"
                ),
                _ => panic!("{answer:?}"),
            }
        }
    });
    let passed_after = passed_after.await.expect("it passes");
    let earliest = named.checked_sub(Duration::from_secs(1)).unwrap();
    assert!(
        passed_after >= earliest,
        "passed {passed_after:?} later, named {named:?}"
    );
}

#[tokio::test]
async fn a_token_just_called_gone_is_not_called_so_from_memory_and_another_instance_is_not_affected() {
    let world = World::start().await;
    let (first, second) = (world.relay.enroll().await, world.relay.enroll().await);
    let device = world.device(Platform::Ios);
    let push = device.push(&json!({ "title": "Hello" }));
    world
        .simulators
        .apns
        .script()
        .device(&device.token)
        .next(1, verdict::unregistered(1_700_000_000_000));
    assert_eq!(world.relay.push(&first, &push).await.word(), "invalid_token");
    let again = world.relay.push(&first, &push).await;
    assert_eq!((again.word(), again.reason()), ("failed", "recently_invalid"));
    assert!((1..=60).contains(&again.body["retryAfterSeconds"].as_u64().unwrap()));
    assert_eq!(again.body["retryable"], true);
    assert_eq!(world.simulators.apns.requests().total(), 1, "it cost no call");
    assert_eq!(
        world.relay.push(&second, &push).await.word(),
        "sent",
        "the device registered again elsewhere"
    );
}

#[tokio::test]
async fn a_payload_that_does_not_fit_reaches_no_provider_and_one_byte_less_goes_through() {
    let world = World::start().await;
    let owner = world.relay.enroll().await;
    let apns_envelope =
        r#"{"aps":{"mutable-content":1,"alert":{"title":" "},"sound":"default"},"encryptedPayload":""}"#
            .len();
    let limits = [
        (Platform::Ios, 4096 - apns_envelope),
        (Platform::Macos, 4096 - apns_envelope),
        (Platform::Android, 4096 - "encryptedPayload".len()),
        (Platform::Windows, 5000),
    ];
    for (number, (platform, fits)) in limits.into_iter().enumerate() {
        let mut push = world.device(platform).push(&json!({}));
        push["encryptedPayload"] = json!("x".repeat(fits + 1));
        let refused = world.relay.push(&owner, &push).await;
        assert_eq!(
            (refused.status.as_u16(), refused.word()),
            (413, "payload_too_large"),
            "{platform:?}"
        );
        push["encryptedPayload"] = json!("x".repeat(fits));
        assert_eq!(
            world.relay.push(&owner, &push).await.word(),
            "sent",
            "{platform:?}"
        );
        let simulators = &world.simulators;
        let calls = simulators.apns.requests().total()
            + simulators.fcm.requests().total()
            + simulators.wns.requests().total();
        assert_eq!(calls, number as u64 + 1);
    }
}

#[tokio::test]
async fn the_expiration_is_absolute_seconds_in_the_future_and_0_only_for_now_or_never() {
    let world = World::start().await;
    let owner = world.relay.enroll().await;
    let now = || i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    for (ttl, lasts) in [(None, 2_419_200), (Some(60), 60), (Some(1), 1), (Some(0), 0)] {
        let began = now();
        let mut push = world.device(Platform::Ios).push(&json!({}));
        push["ttlSeconds"] = json!(ttl);
        assert_eq!(world.relay.push(&owner, &push).await.word(), "sent");
        let expiration = world
            .simulators
            .apns
            .inbox()
            .all()
            .pop()
            .unwrap()
            .expiration
            .unwrap();
        // Rounded up to whole seconds.
        let expected = if lasts == 0 {
            0..=0
        } else {
            began + lasts..=now() + 1 + lasts
        };
        assert!(
            expected.contains(&expiration),
            "{ttl:?}: {expiration}, not in {expected:?}"
        );
    }
}

/// An address of the loopback network stands for a stranger, which macOS has only one of.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_stranger_who_opens_all_the_connections_gets_a_quarter_and_a_push_finds_one() {
    let options = RelayOptions::new()
        .set("RELAY_CONNECTIONS", "100")
        .set("RELAY_TRUSTED_PROXIES", "none");
    let world = World::start_with(SimulatorOptions::default(), options).await;
    let relay = &world.relay;
    let address = relay.url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut held: Vec<TcpStream> = Vec::new();
    for number in 0..100 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        let head = [
            "GET /livez HTTP/1.1\r\nHost: relay\r\n\r\n",
            "GET /v1/signal HTTP/1.1\r\n",
        ][number % 2];
        // One that was closed at once may say so here.
        let _ = stream.write_all(head.as_bytes()).await;
        held.push(stream);
    }
    let instance = relay.enroll().await;
    let push = json!({ "deviceToken": world.address(Platform::Ios), "platform": "ios", "encryptedPayload": "sealed" });
    assert_eq!(relay.push(&instance, &push).await.word(), "sent");
    until("three quarters are refused", async || {
        relay.metric("relay_connections_refused_total", "").await == 75.0
    })
    .await;
}
